"""Forces that need no actuator: applied forces and wrenches, springs, dampers, tendons, weight compensation, drag."""

from __future__ import annotations

import warp as wp

from warpsim.indexing import natural
from warpsim.model.model import Model
from warpsim.model.parameters import BodyParameters, FluidParameters, JointParameters, TendonParameters, WorldParameters
from warpsim.model.state import Control, State, Work
from warpsim.model.tendons import TendonTopology, tendon_length, tendon_rate
from warpsim.model.topology import BALL, FREE, HINGE, SLIDE, Topology
from warpsim.precision import quat, real, vec3, vec6
from warpsim.spatial import (
    angular,
    linear,
    quat_conj,
    quat_log,
    quat_mul,
    quat_rotate,
    quat_rotate_back,
    quat_unit,
    read_quat,
    spatial,
)
from warpsim.stages import stage


@wp.func
def rotation_from_rest(joint: JointParameters, q: wp.array2d(dtype=real), w: int, a: int) -> vec3:
    """Rotation vector from the rest orientation stored at coordinate a to that of q, in the turned frame, rad."""
    rest = quat_unit(quat(joint.rest[w, a], joint.rest[w, a + 1], joint.rest[w, a + 2], joint.rest[w, a + 3]))
    return quat_log(quat_mul(quat_conj(rest), read_quat(q, w, a)))


@wp.kernel
def _passive_kernel(
    # topology, parameters
    t: Topology,
    body: BodyParameters,
    joint: JointParameters,
    world: WorldParameters,
    implicit_damping: int,
    # state, control
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    joint_force: wp.array2d(dtype=real),
    applied_wrench: wp.array2d(dtype=vec6),
    # work in
    com: wp.array2d(dtype=vec3),
    # work out
    wrench: wp.array2d(dtype=vec6),
    dof_force: wp.array2d(dtype=real),
    dof_integrator: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    h = world.timestep[w]
    for b in range(1, t.nbody):
        f = applied_wrench[w, b]
        force = vec3(f[0], f[1], f[2]) - world.gravity[w] * (body.mass[w, b] * body.gravity_compensation[w, b])
        wrench[w, b] = spatial(vec3(f[3], f[4], f[5]) + wp.cross(com[w, b], force), force)
    for i in range(1, t.nlink):
        kind = t.link_kind[i]
        d = t.link_dof[i]
        a = t.link_q[i]
        j = t.link_joint[i]
        if kind == HINGE or kind == SLIDE:
            spring = joint.stiffness[w, j] * (q[w, a] - joint.rest[w, a])
            dof_force[w, d] = joint_force[w, d] - joint.damping[w, d] * qd[w, d] - spring
        elif kind == BALL:
            k = joint.stiffness[w, j]
            turn = rotation_from_rest(joint, q, w, a)
            for e in range(3):
                dof_force[w, d + e] = joint_force[w, d + e] - joint.damping[w, d + e] * qd[w, d + e] - k * turn[e]
        elif kind == FREE:
            k = joint.stiffness[w, j]
            turn = rotation_from_rest(joint, q, w, a + 3)
            for e in range(3):
                shift = q[w, a + e] - joint.rest[w, a + e]
                dof_force[w, d + e] = joint_force[w, d + e] - joint.damping[w, d + e] * qd[w, d + e] - k * shift
                r = d + 3 + e
                dof_force[w, r] = joint_force[w, r] - joint.damping[w, r] * qd[w, r] - k * turn[e]
    for d in range(t.nv):
        dof_integrator[w, d] = h * joint.damping[w, d] * real(implicit_damping)


@wp.kernel
def _tendon_kernel(
    # topology, parameters
    t: TendonTopology,
    tendon: TendonParameters,
    # state
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    # work out
    dof_force: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    for i in range(t.count):
        length = tendon_length(t, tendon.coefficient, q, w, i)
        rate = tendon_rate(t, tendon.coefficient, qd, w, i)
        slack = tendon.spring_range[w, i]
        force = -tendon.damping[w, i] * rate
        if length > slack[1]:
            force = force - tendon.stiffness[w, i] * (length - slack[1])
        if length < slack[0]:
            force = force - tendon.stiffness[w, i] * (length - slack[0])
        for k in range(t.start[i], t.start[i + 1]):
            dof_force[w, t.dof[k]] += tendon.coefficient[w, k] * force


@wp.func
def drag_wrench(omega: vec3, v: vec3, box: vec3, density: real, viscosity: real) -> vec6:
    """Drag on the box of equal inertia, at its centre, in its own axes (MuJoCo's model: see its docs, "Inertia-based").

    Args:
        omega: Angular velocity, rad/s.
        v: Velocity relative to the medium, m/s.
        box: Full edges, m.
        density: Of the medium, kg/m³.
        viscosity: Of the medium, Pa·s.
    """
    pi = real(wp.static(3.141592653589793))
    diameter = (box[0] + box[1] + box[2]) / real(3.0)
    torque = omega * (-pi * diameter * diameter * diameter * viscosity)
    force = v * (real(-3.0) * pi * diameter * viscosity)
    b2 = wp.cw_mul(box, box)
    b4 = wp.cw_mul(b2, b2)
    area = vec3(box[1] * box[2], box[0] * box[2], box[0] * box[1])
    moment = vec3(box[0] * (b4[1] + b4[2]), box[1] * (b4[0] + b4[2]), box[2] * (b4[0] + b4[1]))
    v_abs_v = vec3(wp.abs(v[0]) * v[0], wp.abs(v[1]) * v[1], wp.abs(v[2]) * v[2])
    o_abs_o = vec3(wp.abs(omega[0]) * omega[0], wp.abs(omega[1]) * omega[1], wp.abs(omega[2]) * omega[2])
    return spatial(
        torque - wp.cw_mul(moment, o_abs_o) * (density / real(64.0)),
        force - wp.cw_mul(area, v_abs_v) * (real(0.5) * density),
    )


@wp.kernel
def _drag_kernel(
    # topology, parameters
    t: Topology,
    fluid: FluidParameters,
    world: WorldParameters,
    # work in
    link_rotation: wp.array2d(dtype=quat),
    com: wp.array2d(dtype=vec3),
    velocity: wp.array2d(dtype=vec6),
    # work out
    wrench: wp.array2d(dtype=vec6),
):
    w = natural(wp.tid())
    for b in range(1, t.nbody):
        r = quat_mul(link_rotation[w, t.body_link[b]], fluid.rotation[w, b])
        v = velocity[w, t.body_last_dof[b]]
        at_com = linear(v) + wp.cross(angular(v), com[w, b]) - world.wind[w]
        local = drag_wrench(
            quat_rotate_back(r, angular(v)),
            quat_rotate_back(r, at_com),
            fluid.box[w, b],
            world.medium_density[w],
            world.medium_viscosity[w],
        )
        force = quat_rotate(r, linear(local))
        wrench[w, b] += spatial(quat_rotate(r, angular(local)) + wp.cross(com[w, b], force), force)


@stage
def passive(m: Model, s: State, u: Control, work: Work) -> None:
    """Writes `work.dof_force`, `work.wrench`, `work.dof_integrator`; actuation adds to the first."""
    wp.launch(
        _passive_kernel,
        dim=m.worlds,
        inputs=[
            m.topology,
            m.body,
            m.joint,
            m.world,
            int(m.implicit_damping),
            s.q,
            s.qd,
            u.joint_force,
            u.wrench,
            work.com,
        ],
        outputs=[work.wrench, work.dof_force, work.dof_integrator],
        device=m.device,
    )
    if m.has_tendon_forces:
        wp.launch(
            _tendon_kernel,
            dim=m.worlds,
            inputs=[m.tendon_topology, m.tendon, s.q, s.qd],
            outputs=[work.dof_force],
            device=m.device,
        )
    if m.has_medium:
        wp.launch(
            _drag_kernel,
            dim=m.worlds,
            inputs=[m.topology, m.fluid, m.world, work.link_rotation, work.com, work.velocity],
            outputs=[work.wrench],
            device=m.device,
        )
