"""LᵀDL factorisation and solves on the tree-sparse rows of the mass matrix (Featherstone, §6.5). Warp functions, not taped.

Row d holds the entries (d, d), (d, parent of d), …: the row of an ancestor is the tail of the row of its descendant, so
every update runs over contiguous memory.
"""

from __future__ import annotations

import warp as wp

from warpsim.model.topology import Topology
from warpsim.precision import real


@wp.func
def ldl_factor(t: Topology, w: int, a: wp.array2d(dtype=real)):
    """Replaces A by D on the diagonal and the rows of unit L off it, A = LᵀDL."""
    for i in range(t.nv):
        k = t.nv - 1 - i
        start = t.row_start[k]
        end = t.row_start[k + 1]
        inverse = real(1.0) / a[w, start]
        for e in range(start + 1, end):
            ratio = a[w, e] * inverse
            row = t.row_start[t.row_column[e]]
            for f in range(e, end):
                a[w, row + f - e] = a[w, row + f - e] - ratio * a[w, f]
        # only now: the updates above read the unscaled row
        for e in range(start + 1, end):
            a[w, e] = a[w, e] * inverse


@wp.func
def ldl_solve(t: Topology, w: int, a: wp.array2d(dtype=real), x: wp.array2d(dtype=real)):
    """Solves A x = b in place, given the factor of `ldl_factor`."""
    for i in range(t.nv):
        k = t.nv - 1 - i
        for e in range(t.row_start[k] + 1, t.row_start[k + 1]):
            c = t.row_column[e]
            x[w, c] = x[w, c] - a[w, e] * x[w, k]
    for k in range(t.nv):
        start = t.row_start[k]
        value = x[w, k] / a[w, start]
        for e in range(start + 1, t.row_start[k + 1]):
            value -= a[w, e] * x[w, t.row_column[e]]
        x[w, k] = value
