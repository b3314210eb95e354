"""The Hessian of the contact problem, H = M + JᵀWJ: the ways in which it is held, factored and solved with. Not taped.

Few trees are held by a row envelope, many as a forest of which those that touch are coupled: nothing is spent on bodies
that do not touch, and heaps are eliminated in an order that fills in little.

A kernel that factors or solves is made once for each way: the text of both in one kernel costs the envelope a tenth of
its time, though it never takes the other branch.
"""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from warpsim.solve.envelope_hessian import factor_envelope, solve_envelope
from warpsim.solve.forest_hessian import factor_forest, solve_forest
from warpsim.solve.sparsity import MIN_TREES, TreeSparsity


@dataclass(frozen=True)
class HessianStorage:
    """One way to hold H, as functions for kernels.

    Attributes:
        name: For names of kernels.
        factor: `factor(rows, t, w, y, matrix, implicit, known, factor, envelope) -> int` forms and factors H at y; 0 if
            it is positive definite. `known` is 1 if `factor` and `rows.mode` are those of the same rows at another y:
            where H is the same, it stays. `envelope` receives which entries the factor holds.
        solve: `solve(t, w, factor, envelope, x)` solves H x = b in place.
    """

    name: str
    factor: wp.Function
    solve: wp.Function


ENVELOPE = HessianStorage("envelope", factor_envelope, solve_envelope)
FOREST = HessianStorage("forest", factor_forest, solve_forest)


@dataclass(frozen=True)
class HessianKernels:
    """The forms of one kernel.

    Attributes:
        envelope: For few trees.
        forest: For many.
    """

    envelope: wp.Kernel
    forest: wp.Kernel

    def of(self, t: TreeSparsity) -> wp.Kernel:
        """The form for a pattern of trees."""
        return self.forest if int(t.trees) >= MIN_TREES else self.envelope
