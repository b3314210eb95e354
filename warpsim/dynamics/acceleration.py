"""Forward dynamics: solve (M + implicit terms) a = τ − c, and the adjoint of that solve by the implicit function theorem.

For an incoming adjoint ā the residual gets −λ with A λ = ā; the tape then carries it through `residual_at_solution`. Rows of
prescribed dofs (kinematic bodies) are replaced by a = 0.
"""

from __future__ import annotations

import warp as wp

from warpsim.dynamics.free_bodies import free_body_accelerations, free_body_adjoint
from warpsim.dynamics.sparse_ldl import ldl_factor, ldl_solve
from warpsim.model.model import Model
from warpsim.model.state import Scratch, State, Work
from warpsim.model.topology import Topology
from warpsim.precision import real


@wp.func
def _fix_prescribed(t: Topology, w: int, factor: wp.array2d(dtype=real), x: wp.array2d(dtype=real)):
    for d in range(t.nv):
        if t.dof_prescribed[d] == 1:
            x[w, d] = real(0.0)
        for e in range(t.row_start[d], t.row_start[d + 1]):
            c = t.row_column[e]
            if t.dof_prescribed[d] == 1 or t.dof_prescribed[c] == 1:
                factor[w, e] = real(0.0)
                if c == d:
                    factor[w, e] = real(1.0)


@wp.kernel(enable_backward=False)
def _acceleration_kernel(
    # topology
    t: Topology,
    # work in
    mass_matrix: wp.array2d(dtype=real),
    dof_implicit: wp.array2d(dtype=real),
    residual: wp.array2d(dtype=real),
    # work out
    factor: wp.array2d(dtype=real),
    qdd: wp.array2d(dtype=real),
):
    w = wp.tid()
    for e in range(t.row_start[t.nv]):
        factor[w, e] = mass_matrix[w, e]
    for d in range(t.nv):
        factor[w, t.row_start[d]] = factor[w, t.row_start[d]] + dof_implicit[w, d]
        qdd[w, d] = -residual[w, d]
    if t.prescribed_count > 0:
        _fix_prescribed(t, w, factor, qdd)
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
    w = wp.tid()
    for d in range(t.nv):
        residual_adjoint[w, d] = -qdd_adjoint[w, d]
        if t.dof_prescribed[d] == 1:
            residual_adjoint[w, d] = real(0.0)
    ldl_solve(t.nv, t.row_start, t.row_column, w, factor, residual_adjoint)


def acceleration(m: Model, s: State, work: Work, scratch: Scratch) -> None:
    """`work.qdd` from the mass matrix and `scratch.residual`; keeps the factor in `work.factor`. Not taped."""
    wp.launch(
        _acceleration_kernel,
        dim=m.worlds,
        inputs=[m.topology, work.mass_matrix, work.dof_implicit, scratch.residual],
        outputs=[work.factor, work.qdd],
        device=m.device,
        record_tape=False,
    )
    free_body_accelerations(m, s.qd, work, scratch)


def record_acceleration_adjoint(m: Model, work: Work, tape: wp.Tape) -> None:
    """Puts the implicit adjoint on the tape; call after `residual_at_solution`."""

    def adjoint() -> None:
        wp.launch(
            _acceleration_adjoint_kernel,
            dim=m.worlds,
            inputs=[m.topology, work.factor, work.qdd.grad],
            outputs=[work.residual.grad],
            device=m.device,
            record_tape=False,
        )
        free_body_adjoint(m, work)

    tape.record_func(adjoint, arrays=[work.qdd, work.residual])
