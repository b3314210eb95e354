"""Limits of joints that close loops, and what their drives owe to the acceleration: rows (untaped), forces (taped).

Like the rows that lock the joint's other axes, these hold the full second derivative of the coordinate, so a limit acts
as it would on a joint of the tree. A drive's force at the end of the step is that of `rigid.dynamics.loop_drives`
less h (d + h k) times it: a row of that weight whose reference is zero.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import quat, real, vec2, vec3, vec6
from warpsim.core.spatial import angular, quat_mul, quat_rotate
from warpsim.rigid.constraint.held_frames import relative_acceleration
from warpsim.rigid.dynamics.loop_coordinates import loop_direction, loop_drift, loop_value, loop_wrench
from warpsim.rigid.model.equalities import EqualityTopology
from warpsim.rigid.model.loops import SLIDE, LoopTopology
from warpsim.rigid.model.parameters import DriveParameters, EqualityParameters, LoopParameters
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.row_settings import LoopRowSettings
from warpsim.solve.impedance import impedance, reference_acceleration, spring_damper, stiffness_weight
from warpsim.solve.row_forces import unilateral_force
from warpsim.solve.rows import EQUALITY, UNILATERAL, Rows, close_single


@wp.struct
class LoopMotion:
    """One coordinate and how it moves."""

    value: real
    rate: real
    acceleration: real
    unit_a: vec6  # wrenches of a unit force: −unit_a on a, unit_b on b
    unit_b: vec6
    inverse: real  # inverse inertia that scales softness


@wp.func
def _motion(
    t: Topology,
    x: EqualityTopology,
    l: LoopTopology,
    e: EqualityParameters,
    body_weight: wp.array2d(dtype=vec2),
    origin: wp.array2d(dtype=vec3),
    link_position: wp.array2d(dtype=vec3),
    link_rotation: wp.array2d(dtype=quat),
    velocity: wp.array2d(dtype=vec6),
    w: int,
    c: int,
    acceleration_a: vec6,
    acceleration_b: vec6,
) -> LoopMotion:
    q = l.equality[c]
    kind = l.kind[c]
    body_a = x.a[q]
    body_b = x.b[q]
    ra = link_rotation[w, t.body_link[body_a]]
    rb = link_rotation[w, t.body_link[body_b]]
    a = quat_mul(quat_mul(ra, e.relative_rotation[w, q]), e.axes[w, q])
    b = quat_mul(rb, e.axes[w, q])
    point_a = link_position[w, t.body_link[body_a]] + quat_rotate(ra, e.anchor_a[w, q])
    point_b = link_position[w, t.body_link[body_b]] + quat_rotate(rb, e.anchor_b[w, q])
    arm_a = point_b - origin[w, t.body_tree[body_a]]
    arm_b = point_b - origin[w, t.body_tree[body_b]]
    va = velocity[w, t.body_last_dof[body_a]]
    vb = velocity[w, t.body_last_dof[body_b]]
    along = loop_direction(kind, l.turns[c], l.i[c], l.j[c], a, b)
    weights = body_weight[w, body_a] + body_weight[w, body_b]
    p = LoopMotion()
    p.value = loop_value(kind, l.i[c], l.j[c], a, b, point_b - point_a)
    p.unit_a = loop_wrench(kind, along, arm_a)
    p.unit_b = loop_wrench(kind, along, arm_b)
    p.rate = wp.dot(p.unit_b, vb) - wp.dot(p.unit_a, va)
    if kind == SLIDE:
        p.acceleration = -wp.dot(along, relative_acceleration(va, vb, acceleration_a, acceleration_b, arm_a, arm_b))
        p.inverse = weights[0]
    else:
        drift = loop_drift(kind, l.turns[c], l.i[c], l.j[c], a, b, angular(va), angular(vb))
        p.acceleration = wp.dot(along, angular(acceleration_b) - angular(acceleration_a) + drift)
        p.inverse = weights[1]
    return p


@wp.func
def _drive_weight(
    s: LoopRowSettings, drive: DriveParameters, saturated: wp.array2d(dtype=wp.int32), w: int, c: int, h: real
) -> real:
    """What multiplies the coordinate's second derivative in the forces of its drives; those that are cut have none."""
    weight = real(0.0)
    for n in range(s.drive_start[c], s.drive_start[c + 1]):
        if saturated[w, s.drive_cut[n]] == 0:
            weight += h * (drive.damping[w, s.drive[n]] + h * drive.stiffness[w, s.drive[n]])
    return weight


@wp.func
def _limit_force(p: LoopMotion, limit: LoopParameters, w: int, c: int, h: real, safe: int) -> real:
    below = p.value - limit.range[w, c][0]
    above = limit.range[w, c][1] - p.value
    solref = limit.solref[w, c]
    solimp = limit.solimp[w, c]
    if below < real(0.0):
        return unilateral_force(solref, solimp, p.inverse, below, p.rate, p.acceleration, h, safe)
    if above < real(0.0):
        return -unilateral_force(solref, solimp, p.inverse, above, -p.rate, -p.acceleration, h, safe)
    return real(0.0)


@wp.kernel
def _loop_force_kernel(
    # topology, parameters
    t: Topology,
    x: EqualityTopology,
    l: LoopTopology,
    s: LoopRowSettings,
    e: EqualityParameters,
    limit: LoopParameters,
    drive: DriveParameters,
    body_weight: wp.array2d(dtype=vec2),
    timestep: wp.array(dtype=real),
    # work in
    saturated: wp.array2d(dtype=wp.int32),
    origin: wp.array2d(dtype=vec3),
    link_position: wp.array2d(dtype=vec3),
    link_rotation: wp.array2d(dtype=quat),
    velocity: wp.array2d(dtype=vec6),
    bias: wp.array2d(dtype=vec6),
    twist: wp.array2d(dtype=vec6),  # J q̈
    # work out
    wrench: wp.array2d(dtype=vec6),
):
    w = natural(wp.tid())
    h = timestep[w]
    for c in range(s.count):
        body_a = x.a[l.equality[c]]
        body_b = x.b[l.equality[c]]
        ka = t.body_last_dof[body_a]
        kb = t.body_last_dof[body_b]
        aa = bias[w, ka] + twist[w, ka]
        ab = bias[w, kb] + twist[w, kb]
        p = _motion(t, x, l, e, body_weight, origin, link_position, link_rotation, velocity, w, c, aa, ab)
        f = _limit_force(p, limit, w, c, h, s.safe)
        f -= _drive_weight(s, drive, saturated, w, c, h) * p.acceleration
        wrench[w, body_a] += -f * p.unit_a
        wrench[w, body_b] += f * p.unit_b


@wp.func
def _append_columns(
    rows: Rows, t: Topology, axis: wp.array2d(dtype=vec6), w: int, ka: int, kb: int, unit_a: vec6, unit_b: vec6
) -> int:
    """Columns of all dofs that move either body and are not prescribed; returns their number."""
    n = int(0)
    da = ka - 1
    db = kb - 1
    while da >= 0 or db >= 0:
        d = wp.max(da, db)
        entry = real(0.0)
        if da == d:
            entry -= wp.dot(unit_a, axis[w, d])
            da = t.dof_prev[d] - 1
        if db == d:
            entry += wp.dot(unit_b, axis[w, d])
            db = t.dof_prev[d] - 1
        if t.dof_prescribed[d] == 0:
            rows.column[w, rows.used[w, 2] + n] = d
            rows.entry[w, rows.used[w, 3] + n] = entry
            n += 1
    return n


@wp.func
def _add_limit(
    rows: Rows,
    t: Topology,
    axis: wp.array2d(dtype=vec6),
    limit: LoopParameters,
    w: int,
    c: int,
    ka: int,
    kb: int,
    p: LoopMotion,
    sign: real,
    violation: real,
    h: real,
    safe: int,
):
    solimp = limit.solimp[w, c]
    d = impedance(solimp, violation)
    spring = spring_damper(limit.solref[w, c], solimp, h, safe)
    columns = _append_columns(rows, t, axis, w, ka, kb, sign * p.unit_a, sign * p.unit_b)
    reference = reference_acceleration(spring, d, violation, sign * p.rate) - sign * p.acceleration
    close_single(rows, w, UNILATERAL, columns, stiffness_weight(d, p.inverse), reference, real(0.0))


@wp.kernel(enable_backward=False)
def _loop_rows_kernel(
    # topology, parameters
    t: Topology,
    x: EqualityTopology,
    l: LoopTopology,
    s: LoopRowSettings,
    e: EqualityParameters,
    limit: LoopParameters,
    drive: DriveParameters,
    body_weight: wp.array2d(dtype=vec2),
    timestep: wp.array(dtype=real),
    # work in
    saturated: wp.array2d(dtype=wp.int32),
    origin: wp.array2d(dtype=vec3),
    link_position: wp.array2d(dtype=vec3),
    link_rotation: wp.array2d(dtype=quat),
    axis: wp.array2d(dtype=vec6),
    velocity: wp.array2d(dtype=vec6),
    bias: wp.array2d(dtype=vec6),
    # out
    rows: Rows,
):
    w = natural(wp.tid())
    h = timestep[w]
    for c in range(s.count):
        ka = t.body_last_dof[x.a[l.equality[c]]]
        kb = t.body_last_dof[x.b[l.equality[c]]]
        aa = bias[w, ka]
        ab = bias[w, kb]
        p = _motion(t, x, l, e, body_weight, origin, link_position, link_rotation, velocity, w, c, aa, ab)
        below = p.value - limit.range[w, c][0]
        above = limit.range[w, c][1] - p.value
        if below < real(0.0):
            _add_limit(rows, t, axis, limit, w, c, ka, kb, p, real(1.0), below, h, s.safe)
        elif above < real(0.0):
            _add_limit(rows, t, axis, limit, w, c, ka, kb, p, real(-1.0), above, h, s.safe)
        weight = _drive_weight(s, drive, saturated, w, c, h)
        if weight > real(0.0):
            columns = _append_columns(rows, t, axis, w, ka, kb, p.unit_a, p.unit_b)
            close_single(rows, w, EQUALITY, columns, weight, -p.acceleration, real(0.0))
