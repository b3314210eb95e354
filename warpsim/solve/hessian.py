"""The Hessian of the contact problem, H = M + JᵀWJ: formed, factored and solved with. Not taped.

Few trees are held by a row envelope, many as a forest of which those that touch are coupled: nothing is spent on bodies
that do not touch, and heaps are eliminated in an order that fills in little.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real
from warpsim.solve.envelope_hessian import factor_envelope, solve_envelope
from warpsim.solve.forest_hessian import factor_forest, solve_forest
from warpsim.solve.rows import Rows
from warpsim.solve.sparsity import MIN_TREES, TreeSparsity


@wp.func
def factor_hessian(
    rows: Rows,
    t: TreeSparsity,
    w: int,
    y: wp.array2d(dtype=real),
    matrix: wp.array2d(dtype=real),
    implicit: wp.array2d(dtype=real),
    known: int,
    factor: wp.array2d(dtype=real),
    envelope: wp.array2d(dtype=wp.int32),
) -> int:
    """Forms and factors H at y; 0 if it is positive definite.

    Args:
        rows: Constraint rows.
        t: Pattern of M.
        w: World.
        y: J a − aref.
        matrix: M.
        implicit: What adds to M's diagonal.
        known: 1 if `factor` and `rows.mode` are those of the same rows at another y: where H is the same, it stays.
        factor: Written.
        envelope: Which entries the factor holds, written.
    """
    if t.trees >= MIN_TREES:
        return factor_forest(rows, t, w, y, matrix, implicit, known, factor, envelope)
    return factor_envelope(rows, t, w, y, matrix, implicit, known, factor, envelope)


@wp.func
def solve_hessian(
    t: TreeSparsity,
    w: int,
    factor: wp.array2d(dtype=real),
    envelope: wp.array2d(dtype=wp.int32),
    x: wp.array2d(dtype=real),
):
    """Solves H x = b in place."""
    if t.trees >= MIN_TREES:
        solve_forest(t, w, factor, envelope, x)
    else:
        solve_envelope(t.nv, w, factor, envelope, x)
