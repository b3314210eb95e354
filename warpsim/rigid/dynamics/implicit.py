"""Velocity derivatives for the "implicitfast" integrator: (M − hD) a = τ − c with D = ∂(passive, actuator forces)/∂qd.

Joint damping is diagonal and lives in `dof_integrator`, drives in `dof_implicit`; here are tendon damping,
velocity-dependent actuators and drag. As in MuJoCo, D keeps only entries of the mass matrix's pattern: of a tendon
across branches, the cross terms drop. D is symmetric. `implicit_matrix` adds −hD to the matrix, untaped; here D·a is
formed at the solution, for the residual.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import quat, real, vec2, vec3, vec6
from warpsim.core.spatial import angular, linear, quat_mul, quat_rotate, quat_rotate_back, spatial
from warpsim.core.stages import stage
from warpsim.rigid.dynamics.free_bodies import free_body_residual
from warpsim.rigid.dynamics.kinematics import twists_of_rates
from warpsim.rigid.dynamics.transmission import dof_count, site_wrench
from warpsim.rigid.model.actuators import BALL_JOINT, FREE_JOINT, JOINT, SITE, TENDON, ActuatorTopology
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.parameters import FluidParameters, SiteParameters, WorldParameters
from warpsim.rigid.model.tendons import TendonTopology
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.state import State, Work
from warpsim.rigid.work.tendon_work import tendon_motion


@wp.func
def _magnitude(x: real) -> real:
    """|x| whose derivative at 0 is 0, the mean of both sides, where `wp.abs` has 1: bodies at rest are common."""
    if x > real(0.0):
        return x
    if x < real(0.0):
        return -x
    return real(0.0)


@wp.func
def _drag_slopes(omega: vec3, v: vec3, box: vec3, density: real, viscosity: real) -> vec6:
    """Diagonal of ∂(drag wrench)/∂(twist) in the box's axes at its center."""
    pi = real(wp.static(3.141592653589793))
    diameter = (box[0] + box[1] + box[2]) / real(3.0)
    b2 = wp.cw_mul(box, box)
    b4 = wp.cw_mul(b2, b2)
    area = vec3(box[1] * box[2], box[0] * box[2], box[0] * box[1])
    moment = vec3(box[0] * (b4[1] + b4[2]), box[1] * (b4[0] + b4[2]), box[2] * (b4[0] + b4[1]))
    turn = -pi * diameter * diameter * diameter * viscosity
    move = real(-3.0) * pi * diameter * viscosity
    abs_o = vec3(_magnitude(omega[0]), _magnitude(omega[1]), _magnitude(omega[2]))
    abs_v = vec3(_magnitude(v[0]), _magnitude(v[1]), _magnitude(v[2]))
    one = vec3(real(1.0), real(1.0), real(1.0))
    return spatial(
        one * turn - wp.cw_mul(moment, abs_o) * (density / real(32.0)), one * move - wp.cw_mul(area, abs_v) * density
    )


@wp.func
def drag_derivative_product(r: quat, com: vec3, slopes: vec6, twist: vec6) -> vec6:
    """Change of the drag wrench (about the tree's reference point) along a twist (about the same point)."""
    turn = quat_rotate_back(r, angular(twist))
    move = quat_rotate_back(r, linear(twist) + wp.cross(angular(twist), com))
    force = quat_rotate(r, wp.cw_mul(linear(slopes), move))
    torque = quat_rotate(r, wp.cw_mul(angular(slopes), turn))
    return spatial(torque + wp.cross(com, force), force)


@wp.func
def body_drag_slopes(
    world: WorldParameters, fluid: FluidParameters, r: quat, com: vec3, v: vec6, w: int, b: int
) -> vec6:
    """`_drag_slopes` of a body from its twist about the tree's reference point."""
    at_com = linear(v) + wp.cross(angular(v), com) - world.wind[w]
    return _drag_slopes(
        quat_rotate_back(r, angular(v)),
        quat_rotate_back(r, at_com),
        fluid.box[w, b],
        world.medium_density[w],
        world.medium_viscosity[w],
    )


@wp.func
def _inside(x: wp.array2d(dtype=real), limits: wp.array2d(dtype=vec2), w: int, d: int) -> int:
    """1 where the joint's force range does not cut the summed actuator force."""
    if x[w, d] > limits[w, d][0] and x[w, d] < limits[w, d][1]:
        return 1
    return 0


@wp.kernel
def _slope_kernel(
    # topology, parameters
    a: ActuatorTopology,
    tt: TendonTopology,
    gear: wp.array2d(dtype=vec6),
    damping: wp.array2d(dtype=real),
    timestep: wp.array(dtype=real),
    force_range: wp.array2d(dtype=vec2),
    limited: int,
    # work in
    slope: wp.array2d(dtype=real),
    dof_actuation: wp.array2d(dtype=real),
    # work out
    tendon_slope: wp.array2d(dtype=real),
    dof_integrator: wp.array2d(dtype=real),
):
    """d force / d rate of each tendon, its own damping and its actuators'; joint actuators go to the diagonal."""
    w = natural(wp.tid())
    for i in range(tt.count):
        tendon_slope[w, i] = -damping[w, i]
    for i in range(a.count):
        g = gear[w, i][0]
        if a.transmission[i] == JOINT:
            d = a.dof[i]
            if limited == 0 or _inside(dof_actuation, force_range, w, d) == 1:
                dof_integrator[w, d] += -timestep[w] * g * g * slope[w, i]
        elif a.transmission[i] == TENDON:
            tendon_slope[w, a.target[i]] += g * g * slope[w, i]


@wp.kernel
def _tendon_product_kernel(
    # topology, parameters
    tt: TendonTopology,
    moment: wp.array2d(dtype=real),
    timestep: wp.array(dtype=real),
    # work in
    tendon_slope: wp.array2d(dtype=real),
    qdd: wp.array2d(dtype=real),
    # work out
    residual: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    for k in range(tt.pair_count):
        i = tt.pair_a[k]
        j = tt.pair_b[k]
        c = timestep[w] * tendon_slope[w, tt.pair_tendon[k]] * moment[w, i] * moment[w, j]
        residual[w, tt.dof[i]] += -c * qdd[w, tt.dof[j]]


@wp.kernel
def _joint_product_kernel(
    # topology, parameters
    a: ActuatorTopology,
    gear: wp.array2d(dtype=vec6),
    timestep: wp.array(dtype=real),
    # work in
    slope: wp.array2d(dtype=real),
    qdd: wp.array2d(dtype=real),
    # work out
    residual: wp.array2d(dtype=real),
):
    """Actuators on ball and free joints."""
    w = natural(wp.tid())
    for i in range(a.count):
        if a.transmission[i] == BALL_JOINT or a.transmission[i] == FREE_JOINT:
            for e in range(dof_count(a.transmission[i])):
                c = timestep[w] * slope[w, i] * gear[w, i][e]
                for f in range(dof_count(a.transmission[i])):
                    residual[w, a.dof[i] + e] += -c * gear[w, i][f] * qdd[w, a.dof[i] + f]


@wp.kernel
def _site_product_kernel(
    # topology, parameters
    t: Topology,
    a: ActuatorTopology,
    gear: wp.array2d(dtype=vec6),
    site: SiteParameters,
    timestep: wp.array(dtype=real),
    # work in
    origin: wp.array2d(dtype=vec3),
    link_position: wp.array2d(dtype=vec3),
    link_rotation: wp.array2d(dtype=quat),
    axis: wp.array2d(dtype=vec6),
    slope: wp.array2d(dtype=real),
    twist: wp.array2d(dtype=vec6),
    # work out
    residual: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    for i in range(a.count):
        if a.transmission[i] == SITE:
            k = t.body_last_dof[a.site_body[a.target[i]]]
            if k > 0:
                unit = site_wrench(t, a, site, link_position, link_rotation, origin, w, a.target[i], gear[w, i])
                wrench = unit * (timestep[w] * slope[w, i] * wp.dot(unit, twist[w, k]))
                for e in range(t.row_start[k - 1], t.row_start[k]):
                    residual[w, t.row_column[e]] += -wp.dot(axis[w, t.row_column[e]], wrench)


@wp.kernel
def _drag_product_kernel(
    # topology, parameters
    t: Topology,
    fluid: FluidParameters,
    world: WorldParameters,
    # work in
    link_rotation: wp.array2d(dtype=quat),
    com: wp.array2d(dtype=vec3),
    axis: wp.array2d(dtype=vec6),
    velocity: wp.array2d(dtype=vec6),
    twist: wp.array2d(dtype=vec6),
    # work out
    residual: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    for b in range(1, t.nbody):
        k = t.body_last_dof[b]
        if k > 0:
            r = quat_mul(link_rotation[w, t.body_link[b]], fluid.rotation[w, b])
            slopes = body_drag_slopes(world, fluid, r, com[w, b], velocity[w, k], w, b)
            wrench = drag_derivative_product(r, com[w, b], slopes, twist[w, k]) * world.timestep[w]
            for e in range(t.row_start[k - 1], t.row_start[k]):
                residual[w, t.row_column[e]] += -wp.dot(axis[w, t.row_column[e]], wrench)


@stage
def implicit_slopes(m: Model, work: Work) -> None:
    """Velocity derivatives: of joint actuators into `work.dof_integrator`, of tendons into `work.tendon_slope`."""
    wp.launch(
        _slope_kernel,
        dim=m.worlds,
        inputs=[
            m.actuator_topology,
            m.tendon_topology,
            m.actuator.gear,
            m.tendon.damping,
            m.world.timestep,
            m.joint_force_range,
            int(m.has_force_limits),
            work.actuator_slope,
            work.dof_actuation,
        ],
        outputs=[work.tendon_slope, work.dof_integrator],
        device=m.device,
    )


@stage
def implicit_residual(m: Model, s: State, work: Work) -> None:
    """Completes `work.residual` at the solution a by −hD·a and the gyroscopic terms, on the tape."""

    def launch(kernel: wp.Kernel, *inputs) -> None:
        wp.launch(kernel, dim=m.worlds, inputs=inputs, outputs=[work.residual], device=m.device)

    h = m.world.timestep
    poses = (work.origin, work.link_position, work.link_rotation, work.axis)
    if m.layout.tendon_names:
        launch(
            _tendon_product_kernel,
            m.tendon_topology,
            tendon_motion(m, work.tendon).moment,
            h,
            work.tendon_slope,
            work.qdd_fixed,
        )
    if m.has_joint_actuators:
        launch(_joint_product_kernel, m.actuator_topology, m.actuator.gear, h, work.actuator_slope, work.qdd_fixed)
    if m.has_site_actuators or m.has_medium:
        twists_of_rates(m, work.qdd_fixed, work.axis, work.qdd_twist)
    if m.has_site_actuators:
        launch(
            _site_product_kernel,
            m.topology,
            m.actuator_topology,
            m.actuator.gear,
            m.site,
            h,
            *poses,
            work.actuator_slope,
            work.qdd_twist,
        )
    if m.has_medium:
        launch(
            _drag_product_kernel,
            m.topology,
            m.fluid,
            m.world,
            work.link_rotation,
            work.com,
            work.axis,
            work.velocity,
            work.qdd_twist,
        )
    free_body_residual(m, s.qd, work)
