"""Forces that need no actuator: applied forces and wrenches, springs, dampers, tendons, weight compensation, drag."""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import quat, real, vec3, vec6
from warpsim.core.spatial import (
    angular,
    linear,
    quat_mul,
    quat_rotate,
    quat_rotate_back,
    spatial,
)
from warpsim.core.stages import stage
from warpsim.rigid.dynamics.passive_pass import passive_pass
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.parameters import (
    BodyParameters,
    FluidParameters,
    JointParameters,
    TendonParameters,
    WorldParameters,
)
from warpsim.rigid.model.tendons import TendonMotion, TendonTopology, tendon_length, tendon_rate
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.pass_arrays import ForceArrays, force_arrays
from warpsim.rigid.work.state import Control, State, Work
from warpsim.rigid.work.tendon_work import tendon_motion


@wp.kernel
def _passive_kernel(
    # topology
    t: Topology,
    # parameters
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
    out: ForceArrays,
):
    w = natural(wp.tid())
    passive_pass(t, body, joint, world, implicit_damping, q, qd, joint_force, applied_wrench, com, out, w)


@wp.kernel
def _tendon_kernel(
    # topology, parameters
    t: TendonTopology,
    tendon: TendonParameters,
    x: TendonMotion,
    # state
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    # work out
    dof_force: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    for i in range(t.count):
        length = tendon_length(t, x, q, w, i)
        rate = tendon_rate(t, x.moment, qd, w, i)
        slack = tendon.spring_range[w, i]
        force = -tendon.damping[w, i] * rate
        if length > slack[1]:
            force = force - tendon.stiffness[w, i] * (length - slack[1])
        if length < slack[0]:
            force = force - tendon.stiffness[w, i] * (length - slack[0])
        for k in range(t.start[i], t.start[i + 1]):
            dof_force[w, t.dof[k]] += x.moment[w, k] * force


@wp.func
def drag_wrench(omega: vec3, v: vec3, box: vec3, density: real, viscosity: real) -> vec6:
    """Drag on the box of equal inertia, at its center, in its own axes (MuJoCo's model: see its docs, "Inertia-based").

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
        inputs=[m.topology, m.body, m.joint, m.world, int(m.implicit_damping)]
        + [s.q, s.qd, u.joint_force, u.wrench, work.com],
        outputs=[force_arrays(work, work.dof_integrator)],
        device=m.device,
    )
    if m.has_tendon_forces:
        wp.launch(
            _tendon_kernel,
            dim=m.worlds,
            inputs=[m.tendon_topology, m.tendon, tendon_motion(m, work.tendon), s.q, s.qd],
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
