"""The factor of one pattern for a number of worlds: its arrays, and launches that factor and solve."""

from __future__ import annotations

import numpy as np
import warp as wp

from warpsim.core.errors import InputError
from warpsim.core.indexing import natural
from warpsim.core.precision import mat33, real, vec3
from warpsim.solve.block_ldl.numeric import block_factor, block_solve
from warpsim.solve.block_ldl.pattern import BlockPattern
from warpsim.solve.block_ldl.plan import LANES, BlockPlan, PlanSizes, make_plan

wp.set_module_options({"enable_backward": False})


@wp.kernel(enable_backward=False)
def _factor_kernel(
    plan: BlockPlan,
    diagonal: wp.array2d(dtype=mat33),
    coupling: wp.array2d(dtype=mat33),
    shift: real,
    panels: wp.array2d(dtype=real),
    work: wp.array2d(dtype=real),
    shifted: wp.array(dtype=wp.int32),
):
    w = natural(wp.tid())
    shifted[w] = block_factor(plan, w, diagonal, coupling, shift, panels, work)


@wp.kernel(enable_backward=False)
def _solve_kernel(
    plan: BlockPlan, panels: wp.array2d(dtype=real), work: wp.array2d(dtype=real), x: wp.array2d(dtype=vec3)
):
    w = natural(wp.tid())
    block_solve(plan, w, panels, work, x)


class BlockLdl:
    """LDLᵀ of symmetric matrices of 3 × 3 blocks, one per world. Nothing is taped, nothing allocated after the start.

    In kernels of one's own: `block_factor(ldl.plan, w, …, ldl.panels, ldl.work)` and `block_solve`.
    """

    plan: BlockPlan
    sizes: PlanSizes
    panels: wp.array
    """(W, sizes.panels) real: the factor."""
    work: wp.array
    """(W, …) real: scratch; nothing in it outlives a call."""
    nonpositive: wp.array
    """(W,) int32: pivots of the last factor that were not positive; 0: A is positive definite."""

    def __init__(
        self,
        pattern: BlockPattern,
        worlds: int = 1,
        *,
        places: np.ndarray | None = None,
        device: wp.DeviceLike = None,
    ) -> None:
        """Orders the pattern and allocates.

        Args:
            pattern: Which blocks are coupled.
            worlds: Matrices.
            places: (n, 3), m: where the blocks' nodes are, if that is known; gives a better order.
            device: Where the arrays live.

        Raises:
            InputError: No block, or places of another number of them.
        """
        if pattern.count < 1:
            raise InputError("a block pattern needs at least one block")
        if places is not None and np.shape(places) != (pattern.count, 3):
            raise InputError(f"places of shape {np.shape(places)}; {pattern.count} blocks need ({pattern.count}, 3)")
        self.pattern, self.worlds = pattern, worlds
        self.plan, self.sizes = make_plan(pattern, places, device)
        vector = -(-3 * pattern.count // LANES) * LANES + self.sizes.vector
        self.panels = wp.zeros((worlds, self.sizes.panels), dtype=real, device=device)
        self.work = wp.zeros((worlds, max(self.sizes.work, vector)), dtype=real, device=device)
        self.nonpositive = wp.zeros(worlds, dtype=wp.int32, device=device)

    def factor(self, diagonal: wp.array, coupling: wp.array, *, shift: float = 0.0) -> None:
        """Factors; `panels` and `nonpositive` are written.

        Args:
            diagonal: (W, n) mat33, symmetric.
            coupling: (W, m) mat33: the block (i, j) of each pair (i, j) of the pattern.
            shift: Above 0: share of its own diagonal entry of A that a pivot which is not positive is raised to at
                least, see `block_factor`.
        """
        self._check("diagonal", diagonal, mat33, self.pattern.count)
        self._check("coupling", coupling, mat33, len(self.pattern.pairs))
        wp.launch(
            _factor_kernel,
            dim=self.worlds,
            inputs=[self.plan, diagonal, coupling, shift],
            outputs=[self.panels, self.work, self.nonpositive],
            device=self.panels.device,
            record_tape=False,
        )

    def solve(self, x: wp.array) -> None:
        """Solves A x = b in place, (W, n) vec3."""
        self._check("x", x, vec3, self.pattern.count)
        wp.launch(
            _solve_kernel,
            dim=self.worlds,
            inputs=[self.plan, self.panels],
            outputs=[self.work, x],
            device=self.panels.device,
            record_tape=False,
        )

    def _check(self, name: str, array: wp.array, dtype: type, count: int) -> None:
        if array.shape != (self.worlds, count) or array.dtype is not dtype or not array.is_contiguous:
            raise InputError(
                f"{name} has shape {array.shape} of {array.dtype.__name__}; "
                f"needs ({self.worlds}, {count}) of {dtype.__name__}, contiguous"
            )
