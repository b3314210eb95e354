"""Which entries of the quadratic part's matrix can differ from zero: the pattern of trees."""

from __future__ import annotations

import warp as wp


@wp.struct
class TreeSparsity:
    """A symmetric matrix over unknowns numbered so that each tree's come after one another, roots first.

    Row d holds d itself, then the unknowns it depends on, up to the root of its tree.
    """

    nv: wp.int32  # unknowns
    row_start: wp.array(dtype=wp.int32)  # (nv + 1,)
    row_column: wp.array(dtype=wp.int32)  # (row_start[nv],)
    dof_prescribed: wp.array(dtype=wp.int32)  # (nv,) 1: the unknown keeps the value it comes with
