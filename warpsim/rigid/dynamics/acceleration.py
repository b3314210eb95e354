"""Forward dynamics: solve (M + implicit terms) a = τ − c, and the implicit adjoint of that solve.

For an incoming adjoint ā the residual gets −λ with A λ = ā; the tape then carries it through `residual_at_solution`.
Prescribed dofs (kinematic bodies) have a = 0.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real
from warpsim.core.stages import stage
from warpsim.rigid.dynamics.free_bodies import free_body_accelerations, free_body_adjoint
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.state import Scratch, State, Work
from warpsim.solve.sparse_ldl import ldl_factor, ldl_solve


@wp.kernel(enable_backward=False)
def _acceleration_kernel(
    # topology
    t: Topology,
    # work in
    matrix: wp.array2d(dtype=real),
    dof_implicit: wp.array2d(dtype=real),
    dof_integrator: wp.array2d(dtype=real),
    residual: wp.array2d(dtype=real),
    # work out
    factor: wp.array2d(dtype=real),
    qdd: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    for e in range(t.row_start[t.nv]):
        factor[w, e] = matrix[w, e]
    for d in range(t.nv):
        factor[w, t.row_start[d]] = factor[w, t.row_start[d]] + dof_implicit[w, d] + dof_integrator[w, d]
        qdd[w, d] = -residual[w, d]
        if t.dof_prescribed[d] == 1:
            qdd[w, d] = real(0.0)
    ldl_factor(t.nv, t.row_start, t.row_column, w, factor)
    ldl_solve(t.nv, t.row_start, t.row_column, w, factor, qdd)


@wp.kernel(enable_backward=False)
def _acceleration_adjoint_kernel(
    # topology
    t: Topology,
    # work in
    factor: wp.array2d(dtype=real),
    qdd_adjoint: wp.array2d(dtype=real),
    # work out
    residual_adjoint: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    for d in range(t.nv):
        residual_adjoint[w, d] = -qdd_adjoint[w, d]
        if t.dof_prescribed[d] == 1:
            residual_adjoint[w, d] = real(0.0)
    ldl_solve(t.nv, t.row_start, t.row_column, w, factor, residual_adjoint)


@stage
def smooth_acceleration(m: Model, work: Work, scratch: Scratch, qdd: wp.array) -> None:
    """`qdd` = what the motion would be without constraints and integrator terms: where the solver starts. Not taped."""
    wp.launch(
        _acceleration_kernel,
        dim=m.worlds,
        inputs=[m.topology, work.mass_matrix, work.dof_implicit, m.zero_dofs, scratch.residual],
        outputs=[scratch.factor, qdd],
        device=m.device,
        record_tape=False,
    )


@stage
def acceleration(m: Model, s: State, work: Work, matrix: wp.array, residual: wp.array) -> None:
    """`work.qdd` solves (matrix + implicit terms) qdd = −residual; keeps the factor in `work.factor`. Not taped."""
    wp.launch(
        _acceleration_kernel,
        dim=m.worlds,
        inputs=[m.topology, matrix, work.dof_implicit, work.dof_integrator, residual],
        outputs=[work.factor, work.qdd],
        device=m.device,
        record_tape=False,
    )
    free_body_accelerations(m, s.qd, work, matrix, residual)


def acceleration_adjoint(m: Model, work: Work) -> None:
    """−λ with Aᵀλ = adjoint of `work.qdd`, into the adjoint of `work.residual`. Not taped: part of an adjoint."""
    wp.launch(
        _acceleration_adjoint_kernel,
        dim=m.worlds,
        inputs=[m.topology, work.factor, work.qdd.grad],
        outputs=[work.residual.grad],
        device=m.device,
        record_tape=False,
    )
    free_body_adjoint(m, work)
