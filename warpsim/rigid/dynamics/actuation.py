"""Actuators and joint drives: inputs → forces on dofs and bodies, with ranges, activation and saturation reports.

A range that cuts gives a zero derivative; `work.saturated` says where, so that a vanishing gradient has a name.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real, vec2, vec3, vec6
from warpsim.core.spatial import clamp_range, spatial
from warpsim.core.stages import stage
from warpsim.rigid.dynamics import muscle_actuators, plain_actuators
from warpsim.rigid.dynamics.adhesion import adhesion
from warpsim.rigid.dynamics.joint_drives import joint_drives
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.state import Control, State, Work
from warpsim.rigid.work.tendon_work import tendon_motion


@wp.kernel
def _sum_kernel(
    # topology, parameters
    t: Topology,
    limit: wp.array2d(dtype=vec2),
    # work in
    dof_actuation: wp.array2d(dtype=real),
    # work out
    dof_force: wp.array2d(dtype=real),
):
    """Adds the actuators' joint forces, each within its joint's range."""
    w = natural(wp.tid())
    for d in range(t.nv):
        dof_force[w, d] += clamp_range(dof_actuation[w, d], limit[w, d][0], limit[w, d][1])


@wp.kernel
def _compensation_kernel(
    # topology, parameters
    t: Topology,
    by_actuators: wp.array(dtype=wp.int32),
    mass: wp.array2d(dtype=real),
    gravity_compensation: wp.array2d(dtype=real),
    gravity: wp.array(dtype=vec3),
    # work in
    com: wp.array2d(dtype=vec3),
    axis: wp.array2d(dtype=vec6),
    # work out
    dof_actuation: wp.array2d(dtype=real),
    dof_force: wp.array2d(dtype=real),
):
    """Weight compensation that joints count among their actuators' forces: moved there from the passive forces."""
    w = natural(wp.tid())
    for b in range(1, t.nbody):
        last = t.body_last_dof[b]
        if last > 0:
            force = gravity[w] * (-mass[w, b] * gravity_compensation[w, b])
            wrench = spatial(wp.cross(com[w, b], force), force)
            for e in range(t.row_start[last - 1], t.row_start[last]):
                d = t.row_column[e]
                if by_actuators[d] == 1:
                    dof_actuation[w, d] += wp.dot(axis[w, d], wrench)
                    dof_force[w, d] += -wp.dot(axis[w, d], wrench)


@stage
def actuation(m: Model, s: State, u: Control, work: Work) -> None:
    """Adds actuator and drive forces to `work.dof_force` and the drives' implicit part to `work.dof_implicit`."""
    dof_actuation = work.dof_actuation if m.has_force_limits else work.dof_force
    if m.has_joint_actuators:
        _joint_actuators(m, s, u, work, dof_actuation)
    if m.has_site_actuators:
        _site_actuators(m, s, u, work, dof_actuation)
    if m.has_adhesion:
        adhesion(m, s, u, work, dof_actuation)
    if m.actuators_compensate:
        wp.launch(
            _compensation_kernel,
            dim=m.worlds,
            inputs=[
                m.topology,
                m.dof_compensated,
                m.body.mass,
                m.body.gravity_compensation,
                m.world.gravity,
                work.com,
                work.axis,
            ],
            outputs=[work.dof_actuation, work.dof_force],
            device=m.device,
        )
    if m.has_force_limits:
        wp.launch(
            _sum_kernel,
            dim=m.worlds,
            inputs=[m.topology, m.joint_force_range, work.dof_actuation],
            outputs=[work.dof_force],
            device=m.device,
        )
    if m.nd:
        joint_drives(m, s, u, work)


def _joint_actuators(m: Model, s: State, u: Control, work: Work, dof_actuation: wp.array) -> None:
    """Forces of the actuators of joints and tendons."""
    wp.launch(
        (muscle_actuators if m.has_special_laws else plain_actuators).joint_actuator_kernel,
        dim=m.worlds,
        inputs=[
            m.actuator_topology,
            m.tendon_topology,
            m.actuator,
            tendon_motion(m, work.tendon),
            m.world.timestep,
            s.q,
            s.qd,
            s.activation if m.na else m.no_activation,
            u.actuator,
        ],
        outputs=[dof_actuation, work.actuator_force, work.actuator_slope, work.activation_rate, work.saturated],
        device=m.device,
    )


def _site_actuators(m: Model, s: State, u: Control, work: Work, dof_actuation: wp.array) -> None:
    """Forces of the actuators of sites."""
    wp.launch(
        (muscle_actuators if m.has_special_laws else plain_actuators).site_actuator_kernel,
        dim=m.worlds,
        inputs=[
            m.topology,
            m.actuator_topology,
            m.actuator,
            m.site,
            m.world.timestep,
            s.activation if m.na else m.no_activation,
            u.actuator,
            work.origin,
            work.link_position,
            work.link_rotation,
            work.axis,
            work.velocity,
        ],
        outputs=[dof_actuation, work.actuator_force, work.actuator_slope, work.activation_rate, work.saturated],
        device=m.device,
    )
