"""Which entries of the quadratic part's matrix can differ from zero: the pattern of trees."""

from __future__ import annotations

import numpy as np
import warp as wp

MIN_TREES = 8
"""From so many trees on, the Hessian is held as a forest's (`forest_hessian`), else by a row envelope."""


@wp.struct
class TreeSparsity:
    """A symmetric matrix over unknowns numbered so that each tree's come after one another, roots first.

    Row d holds d itself, then the unknowns it depends on, up to the root of its tree.
    """

    nv: wp.int32  # unknowns
    row_start: wp.array(dtype=wp.int32)  # (nv + 1,)
    row_column: wp.array(dtype=wp.int32)  # (row_start[nv],)
    dof_prescribed: wp.array(dtype=wp.int32)  # (nv,) 1: the unknown keeps the value it comes with
    trees: wp.int32
    tree_start: wp.array(dtype=wp.int32)  # (trees + 1,) first unknown of each tree
    dof_tree: wp.array(dtype=wp.int32)  # (nv,)


def tree_sparsity(nv: int, row_start: wp.array, row_column: wp.array, dof_prescribed: wp.array) -> TreeSparsity:
    """The pattern, with the trees found in it: a root depends on nothing but itself."""
    lengths = np.diff(row_start.numpy()[: nv + 1])
    starts = np.append(np.flatnonzero(lengths == 1), nv).astype(np.int32)
    trees = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
    t = TreeSparsity()
    t.nv, t.row_start, t.row_column, t.dof_prescribed = nv, row_start, row_column, dof_prescribed
    t.trees = len(starts) - 1
    t.tree_start = wp.array(starts, dtype=wp.int32, device=row_start.device)
    t.dof_tree = wp.array(trees, dtype=wp.int32, device=row_start.device)
    return t


def hessian_sizes(t: TreeSparsity) -> tuple[int, int]:
    """Most reals and integers that the Hessian's factor and its lists take in one world."""
    nv, trees = int(t.nv), int(t.trees)
    if trees < MIN_TREES:
        return nv * (nv + 1) // 2, nv
    squares = int((np.diff(t.tree_start.numpy()).astype(np.int64) ** 2).sum())
    words = -(-trees // 32)
    return (nv * nv + squares) // 2 + 2 * nv, 5 * trees + 1 + trees * (trees - 1) // 2 + trees * words
