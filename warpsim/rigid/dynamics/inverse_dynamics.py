"""Newton–Euler inverse dynamics (Featherstone, ch. 5): the residual of the equation of motion at a given acceleration.

r(a) = M a + c − τ − Jᵀ(external wrenches), by body accelerations → body forces → dofs. Launched untaped with a = 0 it
gives the right-hand side of the forward dynamics; launched on the tape at the solution a* it is what the implicit
function theorem differentiates: ∂a*/∂θ = −M⁻¹ ∂r/∂θ, so neither M nor its factor needs an adjoint.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real, vec3, vec6
from warpsim.core.stages import stage
from warpsim.rigid.dynamics.newton_euler_pass import newton_euler_pass
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.constraint_work import ConstraintWork
from warpsim.rigid.work.state import Scratch, State, Work


@wp.kernel
def _inverse_dynamics_kernel(
    # topology, parameters
    t: Topology,
    mass: wp.array2d(dtype=real),
    armature: wp.array2d(dtype=real),
    gravity: wp.array(dtype=vec3),
    # state and the acceleration it is evaluated at
    qd: wp.array2d(dtype=real),
    qdd: wp.array2d(dtype=real),
    # work in
    axis: wp.array2d(dtype=vec6),
    com: wp.array2d(dtype=vec3),
    inertia: wp.array2d(dtype=vec6),
    velocity: wp.array2d(dtype=vec6),
    wrench: wp.array2d(dtype=vec6),
    dof_force: wp.array2d(dtype=real),
    dof_implicit: wp.array2d(dtype=real),
    dof_integrator: wp.array2d(dtype=real),
    # work out
    acceleration: wp.array2d(dtype=vec6),
    body_force: wp.array2d(dtype=vec6),
    residual: wp.array2d(dtype=real),
):
    newton_euler_pass(
        t,
        mass,
        armature,
        gravity,
        qd,
        qdd,
        axis,
        com,
        inertia,
        velocity,
        wrench,
        dof_force,
        dof_implicit,
        dof_integrator,
        acceleration,
        body_force,
        residual,
        natural(wp.tid()),
    )


def _launch(
    m: Model, s: State, work: Work, qdd: wp.array, integrator: wp.array, outputs: list[wp.array], record: bool
) -> None:
    wp.launch(
        _inverse_dynamics_kernel,
        dim=m.worlds,
        inputs=[
            m.topology,
            m.body.mass,
            m.joint.armature,
            m.world.gravity,
            s.qd,
            qdd,
            work.axis,
            work.com,
            work.inertia,
            work.velocity,
            work.wrench,
            work.dof_force,
            work.dof_implicit,
            integrator,
        ],
        outputs=outputs,
        device=m.device,
        record_tape=record,
    )


@stage
def residual_at_rest(m: Model, s: State, work: Work, scratch: Scratch) -> None:
    """`scratch.residual` = r(0) = bias − all smooth forces. Not taped."""
    outputs = [scratch.acceleration, scratch.body_force, scratch.residual]
    _launch(m, s, work, m.zero_dofs, m.zero_dofs, outputs, record=False)


@stage
def residual_at_solution(m: Model, s: State, work: Work) -> None:
    """`work.residual` = r(a) ≈ 0 on the tape, at the step's acceleration, held fixed: what the adjoint is taken of."""
    outputs = [work.acceleration, work.body_force, work.residual]
    _launch(m, s, work, work.qdd_fixed, work.dof_integrator, outputs, record=True)


@stage
def residual_at_optimum(m: Model, s: State, work: Work, c: ConstraintWork) -> None:
    """`c.residual` ≈ 0 on the tape, at the contact solver's a*, which knows no integrator terms."""
    _launch(m, s, work, c.qdd_fixed, m.zero_dofs, [c.acceleration, c.body_force, c.residual], record=True)
