"""Actuators and joint drives: inputs → forces on dofs and bodies, with ranges, activation and saturation reports.

A range that cuts gives a zero derivative; `work.saturated` says where, so that a vanishing gradient has a name.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import quat, real, vec2, vec3, vec6
from warpsim.core.spatial import clamp_range, outside, quat_log, quat_mul, quat_rotate, read_quat, spatial
from warpsim.core.stages import stage
from warpsim.rigid.dynamics.muscle import muscle_bias, muscle_gain, muscle_gain_slope, muscle_rate
from warpsim.rigid.model.actuators import (
    BALL_JOINT,
    FILTER_EXACT,
    FREE_JOINT,
    INTEGRATOR,
    JOINT,
    MUSCLE,
    NO_DYNAMICS,
    SITE,
    TENDON,
    ActuatorTopology,
    DriveTopology,
)
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.parameters import (
    ActuatorParameters,
    DriveParameters,
    SiteParameters,
)
from warpsim.rigid.model.tendons import TendonMotion, TendonTopology, tendon_length, tendon_rate
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.state import Control, State, Work
from warpsim.rigid.work.tendon_work import tendon_motion


@wp.func
def activation_rate_of(kind: int, control: real, activation: real, time_constant: real) -> real:
    """Rate of the activation, 1/s times its unit."""
    if kind == INTEGRATOR:
        return control
    return (control - activation) / time_constant


@wp.func
def grown_activation(kind: int, activation: real, rate: real, time_constant: real, h: real) -> real:
    """Activation after one step of length h, before its range cuts; "filterexact" integrates its lag exactly."""
    if kind == FILTER_EXACT:
        return activation + rate * time_constant * (real(1.0) - wp.exp(-h / time_constant))
    return activation + h * rate


@wp.func
def next_activation(kind: int, activation: real, rate: real, time_constant: real, limits: vec2, h: real) -> real:
    """Activation after one step of length h."""
    return clamp_range(grown_activation(kind, activation, rate, time_constant, h), limits[0], limits[1])


@wp.func
def site_wrench(
    t: Topology,
    a: ActuatorTopology,
    site: SiteParameters,
    link_position: wp.array2d(dtype=vec3),
    link_rotation: wp.array2d(dtype=quat),
    origin: wp.array2d(dtype=vec3),
    w: int,
    i: int,
    gear: vec6,
) -> vec6:
    """Unit wrench (torque, force) of a site transmission about the tree's reference point; gear is (force, torque)."""
    b = a.site_body[i]
    link = t.body_link[b]
    r = link_rotation[w, link]
    frame = quat_mul(r, site.rotation[w, i])
    point = link_position[w, link] + quat_rotate(r, site.position[w, i]) - origin[w, t.body_tree[b]]
    force = quat_rotate(frame, vec3(gear[0], gear[1], gear[2]))
    torque = quat_rotate(frame, vec3(gear[3], gear[4], gear[5]))
    return spatial(torque + wp.cross(point, force), force)


@wp.func
def dof_count(transmission: int) -> int:
    """How many dofs a joint transmission pushes."""
    if transmission == BALL_JOINT:
        return 3
    if transmission == FREE_JOINT:
        return 6
    return 1


@wp.func
def _length(
    a: ActuatorTopology,
    tt: TendonTopology,
    x: TendonMotion,
    q: wp.array2d(dtype=real),
    w: int,
    i: int,
    gear: vec6,
) -> real:
    kind = a.transmission[i]
    if kind == JOINT:
        return gear[0] * q[w, a.q[i]]
    if kind == TENDON:
        return gear[0] * tendon_length(tt, x, q, w, a.target[i])
    if kind == BALL_JOINT:
        return wp.dot(vec3(gear[0], gear[1], gear[2]), quat_log(read_quat(q, w, a.q[i])))
    return real(0.0)


@wp.func
def _dof_rate(qd: wp.array2d(dtype=real), w: int, d: int, gear: vec6, count: int) -> real:
    rate = real(0.0)
    for e in range(count):
        rate += gear[e] * qd[w, d + e]
    return rate


@wp.func
def _rate(
    a: ActuatorTopology,
    tt: TendonTopology,
    x: TendonMotion,
    qd: wp.array2d(dtype=real),
    w: int,
    i: int,
    gear: vec6,
) -> real:
    if a.transmission[i] == TENDON:
        return gear[0] * tendon_rate(tt, x.moment, qd, w, a.target[i])
    return _dof_rate(qd, w, a.dof[i], gear, dof_count(a.transmission[i]))


@wp.func
def _rate_of(kind: int, actuator: ActuatorParameters, control: real, activation: real, w: int, i: int) -> real:
    """Rate of the activation of actuator i."""
    if kind == MUSCLE:
        rise = actuator.time_constant[w, i]
        return muscle_rate(
            control, activation, rise, actuator.deactivation_time[w, i], actuator.activation_smoothing[w, i]
        )
    return activation_rate_of(kind, control, activation, actuator.time_constant[w, i])


@wp.func
def _input(
    a: ActuatorTopology,
    actuator: ActuatorParameters,
    timestep: wp.array(dtype=real),
    activation: wp.array2d(dtype=real),
    control: wp.array2d(dtype=real),
    w: int,
    i: int,
) -> real:
    """What multiplies the gain: the control within its range or, with dynamics, the activation."""
    c = clamp_range(control[w, i], actuator.control_range[w, i][0], actuator.control_range[w, i][1])
    kind = a.dynamics[i]
    if kind == NO_DYNAMICS:
        return c
    x = activation[w, a.activation[i]]
    if a.early[i] == 0:
        return x
    tau = actuator.time_constant[w, i]
    rate = _rate_of(kind, actuator, c, x, w, i)
    return next_activation(kind, x, rate, tau, actuator.activation_range[w, i], timestep[w])


@wp.func
def _activation_rate(
    a: ActuatorTopology,
    actuator: ActuatorParameters,
    activation: wp.array2d(dtype=real),
    control: wp.array2d(dtype=real),
    w: int,
    i: int,
) -> real:
    c = clamp_range(control[w, i], actuator.control_range[w, i][0], actuator.control_range[w, i][1])
    return _rate_of(a.dynamics[i], actuator, c, activation[w, a.activation[i]], w, i)


@wp.func
def _affine(coefficients: vec3, length: real, rate: real) -> real:
    return coefficients[0] + coefficients[1] * length + coefficients[2] * rate


@wp.func
def _gain(muscle: int, actuator: ActuatorParameters, length: real, rate: real, w: int, i: int) -> real:
    if muscle % 2 == 1:
        normal = actuator.muscle_range[w, i]
        over = actuator.muscle_length_range[w, i]
        return muscle_gain(actuator.muscle_force[w, i], normal, over, actuator.muscle_curve[w, i], length, rate)
    return _affine(actuator.gain[w, i], length, rate)


@wp.func
def _bias(muscle: int, actuator: ActuatorParameters, length: real, rate: real, w: int, i: int) -> real:
    if muscle >= 2:
        normal = actuator.muscle_range[w, i]
        over = actuator.muscle_length_range[w, i]
        return muscle_bias(actuator.muscle_force[w, i], normal, over, actuator.muscle_curve[w, i], length)
    return _affine(actuator.bias[w, i], length, rate)


@wp.func
def _slope(gain: vec3, bias: vec3, u: real, raw: real, limits: vec2) -> real:
    """d force / d rate; none where the range cuts."""
    if raw <= limits[0] or raw >= limits[1]:
        return real(0.0)
    return gain[2] * u + bias[2]


@wp.func
def _muscle_slope(
    muscle: int, actuator: ActuatorParameters, length: real, rate: real, u: real, raw: real, w: int, i: int
) -> real:
    """d force / d rate where the gain or the bias is a muscle's."""
    limits = actuator.force_range[w, i]
    if raw <= limits[0] or raw >= limits[1]:
        return real(0.0)
    total = real(0.0)
    if muscle % 2 == 1:
        normal = actuator.muscle_range[w, i]
        over = actuator.muscle_length_range[w, i]
        curve = actuator.muscle_curve[w, i]
        total = muscle_gain_slope(actuator.muscle_force[w, i], normal, over, curve, length, rate) * u
    else:
        total = actuator.gain[w, i][2] * u
    if muscle < 2:
        total = total + actuator.bias[w, i][2]
    return total


@wp.kernel
def _actuator_kernel(
    # topology, parameters
    a: ActuatorTopology,
    tt: TendonTopology,
    actuator: ActuatorParameters,
    x: TendonMotion,
    timestep: wp.array(dtype=real),
    # state, control
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    activation: wp.array2d(dtype=real),
    control: wp.array2d(dtype=real),
    # work out
    dof_actuation: wp.array2d(dtype=real),
    force: wp.array2d(dtype=real),
    slope: wp.array2d(dtype=real),
    activation_rate: wp.array2d(dtype=real),
    saturated: wp.array2d(dtype=wp.int32),
):
    w = natural(wp.tid())
    for i in range(a.count):
        kind = a.transmission[i]
        if kind != SITE:
            gear = actuator.gear[w, i]
            u = _input(a, actuator, timestep, activation, control, w, i)
            length = _length(a, tt, x, q, w, i, gear)
            rate = _rate(a, tt, x, qd, w, i, gear)
            muscle = a.muscle[i]
            raw = _gain(muscle, actuator, length, rate, w, i) * u + _bias(muscle, actuator, length, rate, w, i)
            limits = actuator.force_range[w, i]
            f = clamp_range(raw, limits[0], limits[1])
            force[w, i] = f
            if muscle > 0:
                slope[w, i] = _muscle_slope(muscle, actuator, length, rate, u, raw, w, i)
            else:
                slope[w, i] = _slope(actuator.gain[w, i], actuator.bias[w, i], u, raw, limits)
            saturated[w, i] = wp.where(
                outside(raw, limits) != 0, outside(raw, limits), outside(control[w, i], actuator.control_range[w, i])
            )
            if a.dynamics[i] != NO_DYNAMICS:
                activation_rate[w, a.activation[i]] = _activation_rate(a, actuator, activation, control, w, i)
            if kind == TENDON:
                for k in range(tt.start[a.target[i]], tt.start[a.target[i] + 1]):
                    dof_actuation[w, tt.dof[k]] += gear[0] * x.moment[w, k] * f
            else:
                for e in range(dof_count(kind)):
                    dof_actuation[w, a.dof[i] + e] += gear[e] * f


@wp.kernel
def _site_actuator_kernel(
    # topology, parameters
    t: Topology,
    a: ActuatorTopology,
    actuator: ActuatorParameters,
    site: SiteParameters,
    timestep: wp.array(dtype=real),
    # state, control
    activation: wp.array2d(dtype=real),
    control: wp.array2d(dtype=real),
    # work in
    origin: wp.array2d(dtype=vec3),
    link_position: wp.array2d(dtype=vec3),
    link_rotation: wp.array2d(dtype=quat),
    axis: wp.array2d(dtype=vec6),
    velocity: wp.array2d(dtype=vec6),
    # work out
    dof_actuation: wp.array2d(dtype=real),
    force: wp.array2d(dtype=real),
    slope: wp.array2d(dtype=real),
    activation_rate: wp.array2d(dtype=real),
    saturated: wp.array2d(dtype=wp.int32),
):
    w = natural(wp.tid())
    for i in range(a.count):
        if a.transmission[i] == SITE:
            u = _input(a, actuator, timestep, activation, control, w, i)
            last = t.body_last_dof[a.site_body[a.target[i]]]
            unit = site_wrench(t, a, site, link_position, link_rotation, origin, w, a.target[i], actuator.gear[w, i])
            rate = wp.dot(unit, velocity[w, last])
            zero = real(0.0)
            raw = _affine(actuator.gain[w, i], zero, rate) * u + _affine(actuator.bias[w, i], zero, rate)
            limits = actuator.force_range[w, i]
            f = clamp_range(raw, limits[0], limits[1])
            force[w, i] = f
            slope[w, i] = _slope(actuator.gain[w, i], actuator.bias[w, i], u, raw, limits)
            saturated[w, i] = wp.where(
                outside(raw, limits) != 0, outside(raw, limits), outside(control[w, i], actuator.control_range[w, i])
            )
            if a.dynamics[i] != NO_DYNAMICS:
                activation_rate[w, a.activation[i]] = _activation_rate(a, actuator, activation, control, w, i)
            if last > 0:
                for e in range(t.row_start[last - 1], t.row_start[last]):
                    dof_actuation[w, t.row_column[e]] += wp.dot(axis[w, t.row_column[e]], unit) * f


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


@wp.kernel
def _drive_kernel(
    # topology, parameters
    d: DriveTopology,
    drive: DriveParameters,
    timestep: wp.array(dtype=real),
    implicit: int,
    first: int,
    # state, control
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    target: wp.array2d(dtype=real),
    target_velocity: wp.array2d(dtype=real),
    # work out
    dof_force: wp.array2d(dtype=real),
    dof_implicit: wp.array2d(dtype=real),
    saturated: wp.array2d(dtype=wp.int32),
):
    """Drive force at the end of the step: k(target − q − h·qd⁺) + d(target velocity − qd⁺), qd⁺ = qd + h·qdd.

    The part that multiplies qdd goes to the matrix's diagonal, which keeps drives of any stiffness stable.
    """
    w = natural(wp.tid())
    h = timestep[w] * real(implicit)
    for i in range(d.count):
        if d.loop[i] == -1:
            dof = d.dof[i]
            k = drive.stiffness[w, i]
            c = drive.damping[w, i]
            v = qd[w, dof]
            limit = drive.max_force[w, i]
            raw = k * (target[w, i] - q[w, d.q[i]] - h * v) + c * (target_velocity[w, i] - v)
            dof_force[w, dof] += clamp_range(raw, -limit, limit)
            cut = outside(raw, vec2(-limit, limit))
            saturated[w, first + i] = cut
            if cut == 0:
                dof_implicit[w, dof] += h * (c + h * k)


@stage
def actuation(m: Model, s: State, u: Control, work: Work) -> None:
    """Adds actuator and drive forces to `work.dof_force` and the drives' implicit part to `work.dof_implicit`."""
    activation = s.activation if m.na else m.no_activation
    dof_actuation = work.dof_actuation if m.has_force_limits else work.dof_force
    if m.has_joint_actuators:
        wp.launch(
            _actuator_kernel,
            dim=m.worlds,
            inputs=[
                m.actuator_topology,
                m.tendon_topology,
                m.actuator,
                tendon_motion(m, work.tendon),
                m.world.timestep,
                s.q,
                s.qd,
                activation,
                u.actuator,
            ],
            outputs=[
                dof_actuation,
                work.actuator_force,
                work.actuator_slope,
                work.activation_rate,
                work.saturated,
            ],
            device=m.device,
        )
    if m.has_site_actuators:
        wp.launch(
            _site_actuator_kernel,
            dim=m.worlds,
            inputs=[
                m.topology,
                m.actuator_topology,
                m.actuator,
                m.site,
                m.world.timestep,
                activation,
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
        wp.launch(
            _drive_kernel,
            dim=m.worlds,
            inputs=[
                m.drive_topology,
                m.drive,
                m.world.timestep,
                int(m.implicit_drives),
                m.nu,
                s.q,
                s.qd,
                u.drive_target,
                u.drive_velocity,
            ],
            outputs=[work.dof_force, work.dof_implicit, work.saturated],
            device=m.device,
        )
