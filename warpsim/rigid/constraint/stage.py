"""The constraint stage of a step: contacts ▸ rows ▸ Newton; on the tape, forces and the implicit adjoint.

The solver minimizes over accelerations with the mass matrix M alone; Euler's implicit damping and "implicitfast" then
solve A q̈ = M a* (A = M + h·damping …). For an incoming adjoint of q̈ the two solves give λ₂ = A⁻ᵀ q̈̄ and μ = H⁻¹ M
λ₂; the residual of the second equation gets −λ₂, that of the first −(μ − λ₂), and so every force, constraint forces
included, gets μ in all.
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.contacts import Contacts, ShapePoses, find_contacts, rebuild_contacts
from warpsim.core.indexing import natural
from warpsim.core.precision import real
from warpsim.core.stages import stage
from warpsim.rigid.constraint.axes_rows import _axes_force_kernel, _axes_rows_kernel
from warpsim.rigid.constraint.contact_rows import _contact_force_kernel, _contact_rows_kernel
from warpsim.rigid.constraint.coupling_rows import _coupling_force_kernel, _coupling_rows_kernel
from warpsim.rigid.constraint.equality_rows import _equality_force_kernel, _equality_rows_kernel
from warpsim.rigid.constraint.joint_rows import _dry_rows_kernel, _joint_force_kernel, _limit_rows_kernel
from warpsim.rigid.constraint.loop_rows import _loop_force_kernel, _loop_rows_kernel
from warpsim.rigid.constraint.tendon_rows import (
    _tendon_dry_rows_kernel,
    _tendon_force_kernel,
    _tendon_limit_rows_kernel,
)
from warpsim.rigid.dynamics.kinematics import twists_of_rates
from warpsim.rigid.dynamics.shape_poses import shape_poses
from warpsim.rigid.dynamics.tendon_inertia import bias_kernel
from warpsim.rigid.model.model import Model
from warpsim.rigid.work.constraint_work import ConstraintScratch, ConstraintWork
from warpsim.rigid.work.row_settings import ContactSettings, EqualitySettings, LoopRowSettings, TendonRowSettings
from warpsim.rigid.work.state import State, Work
from warpsim.rigid.work.tendon_work import tendon_motion
from warpsim.scene.convergence import solver_limits
from warpsim.solve.native import mass_product
from warpsim.solve.newton import NEWTON_KERNELS
from warpsim.solve.rows import clear_rows
from warpsim.solve.softening import contact_reach, refactor
from warpsim.solve.sparsity import TreeSparsity


@stage
def collide(
    m: Model, work: Work, c: ConstraintWork, scratch: ConstraintScratch, *, reach: wp.array | None = None
) -> None:
    """Contacts of the current poses: which, untaped; where, taped. `reach` (W, np), m, replaces the margins."""
    if m.max_contacts:
        shape_poses(m, work)
        _contacts(m, work, scratch, scratch.contact_settings, c.contacts, reach)


def _contacts(
    m: Model,
    work: Work,
    scratch: ConstraintScratch,
    settings: ContactSettings,
    contacts: Contacts,
    reach: wp.array | None = None,
) -> None:
    poses = ShapePoses(work.shape_position, work.shape_rotation, m.shape.size)
    if settings.softening > 0.0:
        reach = scratch.reach
        contact_reach(m.pair.margin, settings.softening, reach)
    elif reach is None:
        reach = m.pair.margin
    find_contacts(m.pair_table, poses, reach, scratch.search, contacts)
    rebuild_contacts(m.pair_table, poses, contacts)


@stage
def soften(m: Model, s: State, work: Work, c: ConstraintWork, scratch: ConstraintScratch) -> None:
    """For the adjoint alone: softened contacts (their places taped), and H's factor with them at the same a*."""
    _contacts(m, work, scratch, scratch.soft_settings, c.soft_contacts)
    _rows(m, s, work, c, scratch, scratch.soft_settings, c.soft_contacts)
    y, matrix, implicit = scratch.vectors.y, work.mass_matrix, work.dof_implicit
    refactor(m.sparsity, scratch.rows, matrix, implicit, c.qdd_fixed, y, c.factor, c.envelope)


def _equality_inputs(m: Model, c: EqualitySettings) -> list:
    return [c, m.equality_topology, m.equality, m.weight.body, m.world.timestep]


def _coupling_inputs(m: Model, work: Work, c: EqualitySettings) -> list:
    parameters = [m.equality, tendon_motion(m, work.tendon), m.weight.tendon_length, m.joint.reference]
    weights = [m.weight.dof, m.weight.tendon, m.world.timestep]
    return [c, m.equality_topology, m.tendon_topology, *parameters, *weights]


def _loop_inputs(m: Model, c: LoopRowSettings) -> list:
    topology = [m.topology, m.equality_topology, m.loop_topology, c]
    return [*topology, m.equality, m.loop, m.drive, m.weight.body, m.world.timestep]


def _tendon_inputs(m: Model, work: Work, c: TendonRowSettings) -> list:
    motion = tendon_motion(m, work.tendon)
    return [m.tendon_topology, c, motion, m.tendon_limit, m.weight.tendon, m.world.timestep]


@stage
def bias_accelerations(m: Model, s: State, work: Work, c: ConstraintWork, scratch: ConstraintScratch) -> None:
    """`c.bias`, which equalities between bodies read."""
    if scratch.equality_settings.body_count or scratch.equality_settings.axes_count:
        inputs = [m.topology, s.qd, work.axis, work.velocity]
        wp.launch(bias_kernel, dim=m.worlds, inputs=inputs, outputs=[c.bias], device=m.device)


@stage
def build_rows(
    m: Model,
    s: State,
    work: Work,
    c: ConstraintWork,
    scratch: ConstraintScratch,
    *,
    velocity: wp.array | None = None,
) -> None:
    """Rows of all active constraints, for the solver. Not taped. `velocity`: the twists that contacts see."""
    _rows(m, s, work, c, scratch, scratch.contact_settings, c.contacts, velocity)


def _rows(
    m: Model,
    s: State,
    work: Work,
    c: ConstraintWork,
    scratch: ConstraintScratch,
    settings: ContactSettings,
    contacts: Contacts,
    velocity: wp.array | None = None,
) -> None:
    rows, joint, tendon, loop = scratch.rows, scratch.joint_settings, scratch.tendon_settings, scratch.loop_settings
    clear_rows(m.worlds, rows, m.device)

    def launch(kernel: wp.Kernel, *inputs) -> None:
        wp.launch(kernel, dim=m.worlds, inputs=[*inputs, rows], device=m.device, record_tape=False)

    equality = scratch.equality_settings
    poses = [work.origin, work.link_position, work.link_rotation, work.axis, work.velocity, c.bias]
    if equality.body_count:
        launch(_equality_rows_kernel, m.topology, *_equality_inputs(m, equality), *poses)
    if equality.axes_count:
        launch(_axes_rows_kernel, m.topology, *_equality_inputs(m, equality), *poses)
    if equality.coupling_count:
        launch(_coupling_rows_kernel, m.topology, *_coupling_inputs(m, work, equality), s.q, s.qd)
    if loop.count:
        launch(_loop_rows_kernel, *_loop_inputs(m, loop), work.saturated, *poses)
    if joint.friction_count:
        launch(_dry_rows_kernel, joint, m.limit, m.weight.dof, m.world.timestep, s.qd)
    if tendon.friction_count:
        launch(_tendon_dry_rows_kernel, m.topology, *_tendon_inputs(m, work, tendon), s.qd)
    if joint.limit_count:
        launch(_limit_rows_kernel, joint, m.limit, m.weight.dof, m.world.timestep, s.q, s.qd)
    if tendon.limit_count:
        launch(_tendon_limit_rows_kernel, m.topology, *_tendon_inputs(m, work, tendon), s.q, s.qd)
    if m.max_contacts:
        x = contacts
        launch(
            _contact_rows_kernel,
            m.topology,
            settings,
            m.pair,
            m.weight.body,
            m.world.timestep,
            c.role,
            c.lift,
            x.count,
            x.pair,
            x.distance,
            x.point,
            x.frame,
            work.origin,
            work.axis,
            work.velocity if velocity is None else velocity,
        )


@stage
def newton(
    m: Model, s: State, work: Work, c: ConstraintWork, scratch: ConstraintScratch, rest: wp.array, *, keep: bool
) -> None:
    """`c.qdd`: the smooth acceleration comes in, the constrained one goes out; `keep` leaves H's factor."""
    limits = solver_limits(m.options)
    wp.launch(
        NEWTON_KERNELS.of(m.sparsity),
        dim=m.worlds,
        inputs=[
            m.sparsity,
            scratch.rows,
            limits.iterations,
            limits.tolerance,
            int(keep),
            work.mass_matrix,
            work.dof_implicit,
            rest,
            s.warm_start,
            scratch.vectors,
        ],
        outputs=[c.qdd_fixed, c.factor, c.envelope, c.status, c.error],
        device=m.device,
        record_tape=False,
    )


@stage
def constraint_forces(
    m: Model,
    s: State,
    work: Work,
    c: ConstraintWork,
    scratch: ConstraintScratch,
    *,
    softened: bool = False,
    velocity: wp.array | None = None,
) -> None:
    """Adds the constraints' forces at a*, held fixed, to `work.wrench` and `work.dof_force`, on the tape.

    `softened`: with the contacts that the adjoint sees. `velocity`: as in `build_rows`.
    """
    equality, joint, tendon = scratch.equality_settings, scratch.joint_settings, scratch.tendon_settings
    loop = scratch.loop_settings
    motion = [s.q, s.qd, c.qdd_fixed]

    def launch(kernel: wp.Kernel, inputs: list, out: wp.array) -> None:
        wp.launch(kernel, dim=m.worlds, inputs=inputs, outputs=[out], device=m.device)

    if equality.coupling_count:
        launch(_coupling_force_kernel, [*_coupling_inputs(m, work, equality), *motion], work.dof_force)
    if joint.limit_count or joint.friction_count:
        launch(_joint_force_kernel, [joint, m.limit, m.weight.dof, m.world.timestep, *motion], work.dof_force)
    if tendon.limit_count or tendon.friction_count:
        launch(_tendon_force_kernel, [*_tendon_inputs(m, work, tendon), *motion], work.dof_force)
    if equality.body_count or equality.axes_count or m.max_contacts:
        twists_of_rates(m, c.qdd_fixed, work.axis, c.twist)
    motion = [work.origin, work.link_position, work.link_rotation, work.velocity, c.bias, c.twist]
    if equality.body_count:
        launch(_equality_force_kernel, [m.topology, *_equality_inputs(m, equality), *motion], work.wrench)
    if equality.axes_count:
        launch(_axes_force_kernel, [m.topology, *_equality_inputs(m, equality), *motion], work.wrench)
    if loop.count:
        launch(_loop_force_kernel, [*_loop_inputs(m, loop), work.saturated, *motion], work.wrench)
    if m.max_contacts:
        x = c.soft_contacts if softened else c.contacts
        wp.launch(
            _contact_force_kernel,
            dim=m.worlds,
            inputs=[
                m.topology,
                scratch.soft_settings if softened else scratch.contact_settings,
                m.pair,
                m.weight.body,
                m.world.timestep,
                c.role,
                c.lift,
                x.count,
                x.pair,
                x.distance,
                x.point,
                x.frame,
                work.origin,
                work.velocity if velocity is None else velocity,
                c.twist,
            ],
            outputs=[c.contact_force, work.wrench],
            device=m.device,
        )


@wp.kernel(enable_backward=False)
def _right_hand_side_kernel(
    t: TreeSparsity,
    matrix: wp.array2d(dtype=real),
    implicit: wp.array2d(dtype=real),
    a: wp.array2d(dtype=real),
    out: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    mass_product(t, w, matrix, implicit, a, out)
    for d in range(t.nv):
        out[w, d] = -out[w, d]


def constrained_forces(m: Model, work: Work, c: ConstraintWork, scratch: ConstraintScratch) -> None:
    """`scratch.residual` = −M a* = −(smooth and constraint forces), for the integrator's solve. Not taped."""
    wp.launch(
        _right_hand_side_kernel,
        dim=m.worlds,
        inputs=[m.sparsity, work.mass_matrix, work.dof_implicit, c.qdd_fixed],
        outputs=[scratch.residual],
        device=m.device,
        record_tape=False,
    )
