"""Newton–Euler inverse dynamics (Featherstone, ch. 5): the residual of the equation of motion at a given acceleration.

r(a) = M a + c − τ − Jᵀ(external wrenches), by body accelerations → body forces → dofs. Launched untaped with a = 0 it
gives the right-hand side of the forward dynamics; launched on the tape at the solution a* it is what the implicit
function theorem differentiates: ∂a*/∂θ = −M⁻¹ ∂r/∂θ, so neither M nor its factor needs an adjoint.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real
from warpsim.core.stages import stage
from warpsim.rigid.dynamics.newton_euler_pass import newton_euler_pass
from warpsim.rigid.dynamics.tendon_inertia import add_tendon_residual
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.parameters import BodyParameters, JointParameters, WorldParameters
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.constraint_work import ConstraintWork
from warpsim.rigid.work.pass_arrays import (
    ForceArrays,
    MotionArrays,
    ResidualArrays,
    force_arrays,
    motion_arrays,
    residual_arrays,
)
from warpsim.rigid.work.state import Scratch, State, Work


@wp.kernel
def _inverse_dynamics_kernel(
    # topology, parameters
    t: Topology,
    body: BodyParameters,
    joint: JointParameters,
    world: WorldParameters,
    # state and the acceleration it is evaluated at
    qd: wp.array2d(dtype=real),
    qdd: wp.array2d(dtype=real),
    # work in
    motion: MotionArrays,
    force: ForceArrays,
    # work out
    out: ResidualArrays,
):
    newton_euler_pass(t, body, joint, world, qd, qdd, motion, force, out, natural(wp.tid()))


def _launch(
    m: Model, s: State, work: Work, qdd: wp.array, integrator: wp.array, out: ResidualArrays, record: bool
) -> None:
    wp.launch(
        _inverse_dynamics_kernel,
        dim=m.worlds,
        inputs=[m.topology, m.body, m.joint, m.world, s.qd, qdd, motion_arrays(work), force_arrays(work, integrator)],
        outputs=[out],
        device=m.device,
        record_tape=record,
    )
    if m.has_tendon_armature:
        add_tendon_residual(m, work, qdd, out.residual, record=record)


@stage
def residual_at_rest(m: Model, s: State, work: Work, scratch: Scratch) -> None:
    """`scratch.residual` = r(0) = bias − all smooth forces. Not taped."""
    out = residual_arrays(scratch.acceleration, scratch.body_force, scratch.residual)
    _launch(m, s, work, m.zero_dofs, m.zero_dofs, out, record=False)


@stage
def residual_at_solution(m: Model, s: State, work: Work) -> None:
    """`work.residual` = r(a) ≈ 0 on the tape, at the step's acceleration, held fixed: what the adjoint is taken of."""
    out = residual_arrays(work.acceleration, work.body_force, work.residual)
    _launch(m, s, work, work.qdd_fixed, work.dof_integrator, out, record=True)


@stage
def residual_at_optimum(m: Model, s: State, work: Work, c: ConstraintWork) -> None:
    """`c.residual` ≈ 0 on the tape, at the contact solver's a*, which knows no integrator terms."""
    out = residual_arrays(c.acceleration, c.body_force, c.residual)
    _launch(m, s, work, c.qdd_fixed, m.zero_dofs, out, record=True)
