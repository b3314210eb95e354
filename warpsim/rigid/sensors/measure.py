"""Measurements at the start of a step, with its accelerations and forces: what MuJoCo calls `sensordata`."""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from warpsim.core.precision import quat, real, vec3, vec6
from warpsim.core.spatial import (
    angular,
    linear,
    motion_cross,
    quat_conj,
    quat_mul,
    quat_rotate,
    quat_rotate_back,
    read_quat,
    spatial,
)
from warpsim.core.stages import stage
from warpsim.rigid.model.actuators import TENDON, ActuatorTopology
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.tendons import TendonMotion, TendonTopology, tendon_length, tendon_rate
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.sensors.contact_sensors import measure_contacts
from warpsim.rigid.sensors.drives import measure_drives
from warpsim.rigid.sensors.layout import SensorLayout, SensorTopology
from warpsim.rigid.sensors.loads import Touches, measure_loads
from warpsim.rigid.sensors.range import RangeWork, make_range_work, measure_ranges
from warpsim.rigid.sensors.subtree import measure_subtrees
from warpsim.rigid.work.state import Control, State, Work
from warpsim.rigid.work.tendon_work import tendon_motion
from warpsim.tape.arena import Arena


@wp.struct
class Motion:
    """Poses, velocities and accelerations that frames are measured from."""

    origin: wp.array2d(dtype=vec3)
    link_position: wp.array2d(dtype=vec3)
    link_rotation: wp.array2d(dtype=quat)
    velocity: wp.array2d(dtype=vec6)
    acceleration: wp.array2d(dtype=vec6)


@wp.struct
class Frames:
    """Frames that are fixed in bodies, m and unit quaternions in the body's frame."""

    site_position: wp.array2d(dtype=vec3)
    site_rotation: wp.array2d(dtype=quat)
    shape_position: wp.array2d(dtype=vec3)
    shape_rotation: wp.array2d(dtype=quat)
    com: wp.array2d(dtype=vec3)  # per body
    inertia_rotation: wp.array2d(dtype=quat)  # principal axes


def _frames(m: Model) -> Frames:
    frames = Frames()
    frames.site_position, frames.site_rotation = m.site.position, m.site.rotation
    frames.shape_position, frames.shape_rotation = m.shape.position, m.shape.rotation
    frames.com, frames.inertia_rotation = m.body.com, m.fluid.rotation
    return frames


@dataclass
class SensorWork:
    """Intermediates of one step's measurements."""

    acceleration: wp.array  # (W, nv + 1) vec6, gravity included
    shape_force: wp.array  # (W, nshape) vec3, N: contact forces on shapes, where a sensor reads them
    range: RangeWork | None  # None without range finders
    sign: wp.array  # (W, contact sensors, mc) int32, see `contact_sensors`
    slot: wp.array  # (W, contact sensors, slots) int32
    uncut: wp.array | None  # (W, size): measurements before cutoffs; None without cutoffs


def make_sensor_work(m: Model, layout: SensorLayout, arena: Arena) -> SensorWork:
    """Allocates them."""
    shapes = len(m.layout.shape_names) if layout.has_contact else 0
    rays, watching = layout.topology.ray.shape[0], layout.topology.watch.shape[0]
    return SensorWork(
        acceleration=arena.array((m.worlds, m.nv + 1), vec6),
        shape_force=arena.array((m.worlds, shapes), vec3),
        range=make_range_work(m, rays, arena) if rays else None,
        sign=arena.array((m.worlds, watching, m.max_contacts), wp.int32, differentiable=False),
        slot=arena.array((m.worlds, watching, layout.slots), wp.int32, differentiable=False),
        uncut=arena.array((m.worlds, layout.size), real) if layout.has_cutoff else None,
    )


@wp.kernel
def _acceleration_kernel(
    t: Topology,
    gravity: wp.array(dtype=vec3),
    qd: wp.array2d(dtype=real),
    qdd: wp.array2d(dtype=real),
    axis: wp.array2d(dtype=vec6),
    velocity: wp.array2d(dtype=vec6),
    acceleration: wp.array2d(dtype=vec6),
):
    w = wp.tid()
    acceleration[w, 0] = spatial(vec3(real(0.0), real(0.0), real(0.0)), -gravity[w])
    for d in range(t.nv):
        s = axis[w, d]
        carried = motion_cross(velocity[w, t.dof_base[d]], s) * qd[w, d]
        acceleration[w, d + 1] = acceleration[w, t.dof_prev[d]] + carried + s * qdd[w, d]


@wp.func
def _frame_body(c: SensorTopology, frame: int, i: int) -> int:
    if i < 0:
        return 0
    if frame == 0:
        return c.site_body[i]
    if frame == 2:
        return c.shape_body[i]
    return i


@wp.func
def _offset(x: Frames, w: int, frame: int, i: int) -> vec3:
    if i >= 0 and frame == 0:
        return x.site_position[w, i]
    if i >= 0 and frame == 2:
        return x.shape_position[w, i]
    if i >= 0 and frame == 3:
        return x.com[w, i]
    return vec3(real(0.0), real(0.0), real(0.0))


@wp.func
def _turn(x: Frames, w: int, frame: int, i: int) -> quat:
    if i >= 0 and frame == 0:
        return x.site_rotation[w, i]
    if i >= 0 and frame == 2:
        return x.shape_rotation[w, i]
    if i >= 0 and frame == 3:
        return x.inertia_rotation[w, i]
    return quat(real(1.0), real(0.0), real(0.0), real(0.0))


@wp.func
def _arm(t: Topology, x: Motion, w: int, b: int, p: vec3) -> vec3:
    """A point less the reference point of the body's tree."""
    if b == 0:
        return vec3(real(0.0), real(0.0), real(0.0))
    return p - x.origin[w, t.body_tree[b]]


@wp.func
def _store3(out: wp.array2d(dtype=real), w: int, k: int, v: vec3):
    out[w, k] = v[0]
    out[w, k + 1] = v[1]
    out[w, k + 2] = v[2]


@wp.func
def _store4(out: wp.array2d(dtype=real), w: int, k: int, v: quat):
    out[w, k] = v[0]
    out[w, k + 1] = v[1]
    out[w, k + 2] = v[2]
    out[w, k + 3] = v[3]


@wp.kernel
def _frame_sensor_kernel(
    # topology, parameters
    c: SensorTopology,
    t: Topology,
    f: Frames,
    # work in
    x: Motion,
    # out
    out: wp.array2d(dtype=real),
):
    w, i = wp.tid()
    kind = c.kind[i]
    if kind >= 7 and kind <= 18:
        k = c.start[i]
        b = _frame_body(c, c.frame[i], c.target[i])
        a = _frame_body(c, c.reference_frame[i], c.reference[i])
        rb = x.link_rotation[w, t.body_link[b]]
        ra = x.link_rotation[w, t.body_link[a]]
        p = x.link_position[w, t.body_link[b]] + quat_rotate(rb, _offset(f, w, c.frame[i], c.target[i]))
        r = quat_mul(rb, _turn(f, w, c.frame[i], c.target[i]))
        p0 = x.link_position[w, t.body_link[a]] + quat_rotate(ra, _offset(f, w, c.reference_frame[i], c.reference[i]))
        r0 = quat_mul(ra, _turn(f, w, c.reference_frame[i], c.reference[i]))
        v = x.velocity[w, t.body_last_dof[b]]
        v0 = x.velocity[w, t.body_last_dof[a]]
        v_point = linear(v) + wp.cross(angular(v), _arm(t, x, w, b, p))
        v0_point = linear(v0) + wp.cross(angular(v0), _arm(t, x, w, a, p0))
        if kind == 7:
            _store3(out, w, k, quat_rotate_back(r0, p - p0))
        elif kind == 8:
            _store4(out, w, k, quat_mul(quat_conj(r0), r))
        elif kind <= 11:
            direction = vec3(real(kind == 9), real(kind == 10), real(kind == 11))
            _store3(out, w, k, quat_rotate_back(r0, quat_rotate(r, direction)))
        elif kind == 12:
            _store3(out, w, k, quat_rotate_back(r0, v_point - v0_point - wp.cross(angular(v0), p - p0)))
        elif kind == 13:
            _store3(out, w, k, quat_rotate_back(r0, angular(v) - angular(v0)))
        elif kind == 16:
            _store3(out, w, k, quat_rotate_back(r, v_point))
        elif kind == 17:
            _store3(out, w, k, quat_rotate_back(r, angular(v)))
        else:
            g = x.acceleration[w, t.body_last_dof[b]]
            push = linear(g) + wp.cross(angular(g), _arm(t, x, w, b, p)) + wp.cross(angular(v), v_point)
            if kind == 14:
                _store3(out, w, k, push)
            elif kind == 15:
                _store3(out, w, k, angular(g))
            else:
                _store3(out, w, k, quat_rotate_back(r, push))


@wp.func
def _tendon_actuation(a: ActuatorTopology, force: wp.array2d(dtype=real), w: int, tendon: int) -> real:
    """Sum of the forces of a tendon's actuators."""
    total = real(0.0)
    for i in range(a.count):
        if a.transmission[i] == TENDON and a.target[i] == tendon:
            total += force[w, i]
    return total


@wp.kernel
def _joint_sensor_kernel(
    # topology, parameters
    c: SensorTopology,
    a: ActuatorTopology,
    tt: TendonTopology,
    tendon: TendonMotion,
    # state
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    # work in
    qdd: wp.array2d(dtype=real),
    actuator_force: wp.array2d(dtype=real),
    shape_force: wp.array2d(dtype=vec3),
    # out
    out: wp.array2d(dtype=real),
):
    w, i = wp.tid()
    kind = c.kind[i]
    k = c.start[i]
    if kind == 0:
        out[w, k] = q[w, c.q[i]]
    elif kind == 1:
        out[w, k] = qd[w, c.dof[i]]
    elif kind == 2:
        _store4(out, w, k, read_quat(q, w, c.q[i]))
    elif kind == 3:
        _store3(out, w, k, vec3(qd[w, c.dof[i]], qd[w, c.dof[i] + 1], qd[w, c.dof[i] + 2]))
    elif kind == 4:
        out[w, k] = tendon_length(tt, tendon, q, w, c.target[i])
    elif kind == 5:
        out[w, k] = tendon_rate(tt, tendon.moment, qd, w, c.target[i])
    elif kind == 6:
        out[w, k] = actuator_force[w, c.target[i]]
    elif kind == 19:
        _store3(out, w, k, shape_force[w, c.target[i]])
    elif kind == 20:
        out[w, k] = qdd[w, c.dof[i]]
    elif kind == 25:
        out[w, k] = _tendon_actuation(a, actuator_force, w, c.target[i])


@wp.kernel
def _cutoff_kernel(c: SensorTopology, uncut: wp.array2d(dtype=real), out: wp.array2d(dtype=real)):
    """Cut to ±cutoff, beyond which there is no slope."""
    w, k = wp.tid()
    x = uncut[w, k]
    most = c.cutoff[k]
    if x > most:
        out[w, k] = most
    elif x < -most:
        out[w, k] = -most
    else:
        out[w, k] = x


@stage
def measure(
    m: Model,
    layout: SensorLayout,
    s: State,
    u: Control,
    work: Work,
    touches: Touches | None,
    sensor: SensorWork,
    out: wp.array,
) -> None:
    """Fills the measurement vector.

    Args:
        m: The model.
        layout: From `sensor_layout`.
        s: State at the step's start.
        u: Controls of the step.
        work: The step's intermediates.
        touches: Its contacts and their forces, where a sensor of `layout.has_touches` reads them.
        sensor: Space for accelerations; contact forces on shapes must be there if a sensor reads them.
        out: (W, size), written.
    """
    qdd = work.qdd if work.constraint is None else work.constraint.qdd
    measured = out if sensor.uncut is None else sensor.uncut
    wp.launch(
        _acceleration_kernel,
        dim=m.worlds,
        inputs=[m.topology, m.world.gravity, s.qd, qdd, work.axis, work.velocity],
        outputs=[sensor.acceleration],
        device=m.device,
    )
    motion = Motion()
    motion.origin, motion.link_position, motion.link_rotation = work.origin, work.link_position, work.link_rotation
    motion.velocity, motion.acceleration = work.velocity, sensor.acceleration
    dim = (m.worlds, len(layout.sensors))
    wp.launch(
        _frame_sensor_kernel,
        dim=dim,
        inputs=[layout.topology, m.topology, _frames(m), motion],
        outputs=[measured],
        device=m.device,
    )
    wp.launch(
        _joint_sensor_kernel,
        dim=dim,
        inputs=[
            layout.topology,
            m.actuator_topology,
            m.tendon_topology,
            tendon_motion(m, work.tendon),
            s.q,
            s.qd,
            qdd,
            work.actuator_force,
            sensor.shape_force,
        ],
        outputs=[measured],
        device=m.device,
    )
    if layout.has_subtree:
        measure_subtrees(m, layout.topology, work, measured)
    if layout.has_drives:
        measure_drives(m, layout.topology, s, work, qdd, int(m.options.limit_timeconst), measured)
    if touches is not None and layout.has_loads:
        measure_loads(m, layout.topology, work, touches, sensor.acceleration, u.wrench, measured)
    if touches is not None and layout.has("contact"):
        measure_contacts(m, layout.topology, work, touches, sensor.sign, sensor.slot, measured)
    if sensor.range is not None:
        measure_ranges(m, layout.topology, work, sensor.range, measured)
    if sensor.uncut is not None:
        wp.launch(_cutoff_kernel, dim=out.shape, inputs=[layout.topology, measured], outputs=[out], device=m.device)
