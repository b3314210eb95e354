"""Contacts that act from a small distance, for optimization (`Options.contact_softening`).

A body that does not touch gets no gradient from what it misses, and one that is about to touch gets a wrong one where
the force jumps at touch. With a softening s the margin grows by s, and the impedance rises smoothly from 0 at that
distance to the contact's own at the margin, d(x) = d₀ u²(3 − 2u) with u = 1 − x/s: forces start from zero, and act on
gradients from a distance (after Paulus et al. 2025, "Differentiable simulation of hard contacts with soft gradients").

The bias: resting bodies hover up to s above where they would lie, friction begins that much early, and a body passing
within s is pushed aside. "backward" leaves the motion as it is, bit for bit, and pays in the gradient: it is that of
softened contacts at the motion's own accelerations, so it is not the derivative of any rollout, and differences of the
loss do not confirm it; it says where to go where the true one is zero.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real, vec5
from warpsim.solve.hessian import ENVELOPE, FOREST, HessianKernels, HessianStorage
from warpsim.solve.impedance import impedance
from warpsim.solve.native import jacobian_product
from warpsim.solve.rows import Rows
from warpsim.solve.sparsity import TreeSparsity

_LEAST_IMPEDANCE = wp.constant(real(1e-6))  # keeps R = (1 − d)/d·Â, and its square in float32, finite


@wp.func
def soft_impedance(solimp: vec5, violation: real, softening: real) -> real:
    """d at a violation that counts from `softening` before the margin on; without softening, d itself."""
    inside = violation + softening
    if inside <= real(0.0):
        return impedance(solimp, inside)
    u = -violation / softening
    return wp.max(impedance(solimp, real(0.0)) * u * u * (real(3.0) - real(2.0) * u), _LEAST_IMPEDANCE)


@wp.kernel(enable_backward=False)
def _reach_kernel(margin: wp.array2d(dtype=real), softening: real, reach: wp.array2d(dtype=real)):
    w, i = wp.tid()
    reach[w, i] = margin[w, i] + softening


def contact_reach(margin: wp.array, softening: float, reach: wp.array) -> None:
    """`reach` (W, np), m: the distance below which softened contacts act. Not taped."""
    inputs = [margin, softening]
    wp.launch(_reach_kernel, dim=reach.shape, inputs=inputs, outputs=[reach], device=reach.device, record_tape=False)


def _refactor_kernel(storage: HessianStorage) -> wp.Kernel:
    factor_hessian = storage.factor

    @wp.kernel(enable_backward=False, name=f"refactor_{storage.name}_kernel")
    def refactor_kernel(
        # topology
        t: TreeSparsity,
        rows: Rows,
        # work in
        matrix: wp.array2d(dtype=real),
        implicit: wp.array2d(dtype=real),
        a: wp.array2d(dtype=real),
        # scratch
        y: wp.array2d(dtype=real),
        # out
        factor: wp.array2d(dtype=real),
        envelope: wp.array2d(dtype=wp.int32),
    ):
        w = natural(wp.tid())
        if rows.overflow[w] == 1:
            # too few places for softened contacts: gradients must not look right
            for i in range(factor.shape[1]):
                factor[w, i] = real(wp.static(float("nan")))
        jacobian_product(rows, w, a, 1, y)
        if rows.overflow[w] == 0:
            factor_hessian(rows, t, w, y, matrix, implicit, 0, factor, envelope)

    return refactor_kernel


_refactor_envelope_kernel = _refactor_kernel(ENVELOPE)
_refactor_forest_kernel = _refactor_kernel(FOREST)
_REFACTOR_KERNELS = HessianKernels(_refactor_envelope_kernel, _refactor_forest_kernel)


def refactor(
    t: TreeSparsity,
    rows: Rows,
    matrix: wp.array,
    implicit: wp.array,
    a: wp.array,
    y: wp.array,
    factor: wp.array,
    envelope: wp.array,
) -> None:
    """Factor of H = M + JᵀWJ with the rows as they are now, at accelerations found with others. Not taped."""
    wp.launch(
        _REFACTOR_KERNELS.of(t),
        dim=a.shape[0],
        inputs=[t, rows, matrix, implicit, a, y],
        outputs=[factor, envelope],
        device=a.device,
        record_tape=False,
    )
