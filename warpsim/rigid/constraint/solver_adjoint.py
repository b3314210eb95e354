"""The solver's part of a step's implicit adjoint: a solve with the Hessian of its optimum. Not taped."""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real
from warpsim.rigid.constraint.contact_output import force_feedback
from warpsim.rigid.model.model import Model
from warpsim.rigid.work.constraint_work import ConstraintScratch, ConstraintWork
from warpsim.rigid.work.state import Work
from warpsim.solve.hessian import ENVELOPE, FOREST, HessianKernels, HessianStorage
from warpsim.solve.native import mass_product
from warpsim.solve.sparsity import TreeSparsity


def _one_stage_adjoint_kernel(storage: HessianStorage) -> wp.Kernel:
    solve_hessian = storage.solve

    @wp.kernel(enable_backward=False, name=f"one_stage_adjoint_{storage.name}_kernel")
    def one_stage_adjoint_kernel(
        t: TreeSparsity,
        factor: wp.array2d(dtype=real),
        envelope: wp.array2d(dtype=wp.int32),
        qdd_adjoint: wp.array2d(dtype=real),
        residual_adjoint: wp.array2d(dtype=real),
    ):
        w = natural(wp.tid())
        for d in range(t.nv):
            residual_adjoint[w, d] = -qdd_adjoint[w, d]
            if t.dof_prescribed[d] == 1:
                residual_adjoint[w, d] = real(0.0)
        solve_hessian(t, w, factor, envelope, residual_adjoint)

    return one_stage_adjoint_kernel


_one_stage_adjoint_envelope_kernel = _one_stage_adjoint_kernel(ENVELOPE)
_one_stage_adjoint_forest_kernel = _one_stage_adjoint_kernel(FOREST)
_ONE_STAGE_ADJOINT_KERNELS = HessianKernels(_one_stage_adjoint_envelope_kernel, _one_stage_adjoint_forest_kernel)


def _two_stage_adjoint_kernel(storage: HessianStorage) -> wp.Kernel:
    solve_hessian = storage.solve

    @wp.kernel(enable_backward=False, name=f"two_stage_adjoint_{storage.name}_kernel")
    def two_stage_adjoint_kernel(
        t: TreeSparsity,
        matrix: wp.array2d(dtype=real),
        implicit: wp.array2d(dtype=real),
        factor: wp.array2d(dtype=real),
        envelope: wp.array2d(dtype=wp.int32),
        final_adjoint: wp.array2d(dtype=real),
        qdd_adjoint: wp.array2d(dtype=real),
        solver_adjoint: wp.array2d(dtype=real),
    ):
        """From −λ₂ on the final residual to −(μ − λ₂) on the solver's; `qdd_adjoint` is what reaches a* otherwise."""
        w = natural(wp.tid())
        mass_product(t, w, matrix, implicit, final_adjoint, solver_adjoint)
        for d in range(t.nv):
            solver_adjoint[w, d] = solver_adjoint[w, d] - qdd_adjoint[w, d]
            if t.dof_prescribed[d] == 1:
                solver_adjoint[w, d] = real(0.0)
        solve_hessian(t, w, factor, envelope, solver_adjoint)
        for d in range(t.nv):
            solver_adjoint[w, d] = solver_adjoint[w, d] - final_adjoint[w, d]

    return two_stage_adjoint_kernel


_two_stage_adjoint_envelope_kernel = _two_stage_adjoint_kernel(ENVELOPE)
_two_stage_adjoint_forest_kernel = _two_stage_adjoint_kernel(FOREST)
_TWO_STAGE_ADJOINT_KERNELS = HessianKernels(_two_stage_adjoint_envelope_kernel, _two_stage_adjoint_forest_kernel)


def impulse_adjoint(m: Model, work: Work, c: ConstraintWork) -> None:
    """The implicit adjoint of an impact's solve, whose forces no loss reads."""
    wp.launch(
        _ONE_STAGE_ADJOINT_KERNELS.of(m.sparsity),
        dim=m.worlds,
        inputs=[m.sparsity, c.factor, c.envelope, work.qdd.grad],
        outputs=[work.residual.grad],
        device=m.device,
        record_tape=False,
    )


def solver_adjoint(m: Model, work: Work, c: ConstraintWork, scratch: ConstraintScratch) -> None:
    """The solver's part of the implicit adjoint; with two stages, after that of the integrator's solve."""
    if m.max_contacts:
        force_feedback(m, work, c, scratch, c.qdd.grad)
    if m.two_stage:
        kernels, out = _TWO_STAGE_ADJOINT_KERNELS, c.residual.grad
        inputs = [work.mass_matrix, work.dof_implicit, c.factor, c.envelope, work.residual.grad, c.qdd.grad]
    else:
        kernels, out = _ONE_STAGE_ADJOINT_KERNELS, work.residual.grad
        inputs = [c.factor, c.envelope, c.qdd.grad]
    wp.launch(
        kernels.of(m.sparsity),
        dim=m.worlds,
        inputs=[m.sparsity, *inputs],
        outputs=[out],
        device=m.device,
        record_tape=False,
    )
