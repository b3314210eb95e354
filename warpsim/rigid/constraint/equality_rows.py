"""Equalities between bodies (connect, weld, distance): rows for the solver (untaped), forces at its solution (taped).

Violations are those of a relative to b: the vector between the two held points and, for a weld, the vector part of the
quaternion that is left over, s·vec(q̄_b q_a r) with r the rotation of b in a and s the torque scale. All rows of one
equality are as soft as the norm of its violation says.

The two points differ while the equality is violated, so dofs that move both bodies count too. As in MuJoCo, the rows of
connect and weld hold the full acceleration J q̈ + J̇ q̇, so a spinning linkage does not stretch; those of distances, like
those of limits, leave J̇ q̇ to the spring.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import quat, real, vec2, vec3, vec6
from warpsim.core.spatial import angular, point_rate, quat_mul, spatial
from warpsim.rigid.constraint.held_frames import (
    dof_motion,
    held_points,
    point_acceleration,
    turn_acceleration,
    turn_left,
    turn_rate,
    turn_torque,
)
from warpsim.rigid.model.equalities import CONNECT, DISTANCE, WELD, EqualityTopology
from warpsim.rigid.model.parameters import EqualityParameters
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.row_settings import EqualitySettings
from warpsim.solve.impedance import impedance, reference_acceleration, spring_damper, stiffness_weight
from warpsim.solve.row_forces import bilateral_force, bilateral_forces, unilateral_force
from warpsim.solve.rows import EQUALITY, UNILATERAL, Rows, close_group, close_single

_SMALL = wp.constant(real(1e-15))


@wp.func
def _direction(gap: vec3, distance: real) -> vec3:
    """From b's point to a's; where they coincide, any fixed direction."""
    if distance > _SMALL:
        return gap / distance
    return vec3(real(1.0), real(0.0), real(0.0))


@wp.func
def _distance_violation(distance: real, reach: vec2) -> vec2:
    """(violation, sign of its rate against the distance's); not negative: nothing acts, unless both ends are one."""
    if reach[1] <= reach[0]:
        return vec2(distance - real(0.5) * (reach[0] + reach[1]), real(1.0))
    if distance < reach[0]:
        return vec2(distance - reach[0], real(1.0))
    return vec2(reach[1] - distance, real(-1.0))


@wp.func
def _distance_force(
    e: EqualityParameters,
    w: int,
    i: int,
    distance: real,
    inverse: real,
    rate: real,
    acceleration: real,
    h: real,
    safe: int,
) -> real:
    """Force that drives the points apart; rate and acceleration are those of the distance."""
    reach = e.range[w, i]
    v = _distance_violation(distance, reach)
    if reach[1] <= reach[0]:
        return bilateral_force(e.solref[w, i], e.solimp[w, i], inverse, v[0], rate, acceleration, h, safe)
    if v[0] < real(0.0):
        s = v[1]
        f = unilateral_force(e.solref[w, i], e.solimp[w, i], inverse, v[0], s * rate, s * acceleration, h, safe)
        return s * f
    return real(0.0)


@wp.func
def _weld_turn(rotation_b: quat, target: quat, scale: real, va: vec6, vb: vec6, alpha: vec3):
    """Rotational violation of a weld, its rate and its acceleration."""
    omega_a = angular(va)
    omega_b = angular(vb)
    turn = turn_left(rotation_b, target, scale)
    spin = turn_rate(rotation_b, target, scale, omega_a - omega_b)
    twirl = turn_acceleration(rotation_b, target, scale, omega_a, omega_b, alpha)
    return turn, spin, twirl


@wp.kernel
def _equality_force_kernel(
    # topology, parameters
    t: Topology,
    c: EqualitySettings,
    x: EqualityTopology,
    e: EqualityParameters,
    body_weight: wp.array2d(dtype=vec2),
    timestep: wp.array(dtype=real),
    # work in
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
    for n in range(c.body_count):
        i = c.body_equality[n]
        a = x.a[i]
        b = x.b[i]
        ka = t.body_last_dof[a]
        kb = t.body_last_dof[b]
        ra = link_rotation[w, t.body_link[a]]
        rb = link_rotation[w, t.body_link[b]]
        point_a, point_b = held_points(t, e, link_position, w, i, a, b, ra, rb)
        arm_a = point_a - origin[w, t.body_tree[a]]
        arm_b = point_b - origin[w, t.body_tree[b]]
        gap = point_a - point_b
        rate = point_rate(velocity[w, ka], arm_a) - point_rate(velocity[w, kb], arm_b)
        weights = body_weight[w, a] + body_weight[w, b]
        if x.kind[i] == DISTANCE:
            change = point_rate(twist[w, ka], arm_a) - point_rate(twist[w, kb], arm_b)
            distance = wp.length(gap)
            along = _direction(gap, distance)
            push = along * _distance_force(
                e, w, i, distance, weights[0], wp.dot(along, rate), wp.dot(along, change), h, c.safe
            )
            wrench[w, a] += spatial(wp.cross(arm_a, push), push)
            wrench[w, b] += -spatial(wp.cross(arm_b, push), push)
        elif x.kind[i] == CONNECT:
            change = point_acceleration(velocity[w, ka], bias[w, ka] + twist[w, ka], arm_a)
            change -= point_acceleration(velocity[w, kb], bias[w, kb] + twist[w, kb], arm_b)
            push = bilateral_forces(
                e.solref[w, i], e.solimp[w, i], weights[0], wp.length(gap), gap, rate, change, h, c.safe
            )
            wrench[w, a] += spatial(wp.cross(arm_a, push), push)
            wrench[w, b] += -spatial(wp.cross(arm_b, push), push)
        else:
            change = point_acceleration(velocity[w, ka], bias[w, ka] + twist[w, ka], arm_a)
            change -= point_acceleration(velocity[w, kb], bias[w, kb] + twist[w, kb], arm_b)
            target = quat_mul(ra, e.relative_rotation[w, i])
            scale = e.torque_scale[w, i]
            alpha = angular(bias[w, ka] + twist[w, ka]) - angular(bias[w, kb] + twist[w, kb])
            turn, spin, twirl = _weld_turn(rb, target, scale, velocity[w, ka], velocity[w, kb], alpha)
            size = wp.length(spatial(turn, gap))
            push = bilateral_forces(e.solref[w, i], e.solimp[w, i], weights[0], size, gap, rate, change, h, c.safe)
            f = bilateral_forces(e.solref[w, i], e.solimp[w, i], weights[1], size, turn, spin, twirl, h, c.safe)
            torque = turn_torque(rb, target, scale, f)
            wrench[w, a] += spatial(torque + wp.cross(arm_a, push), push)
            wrench[w, b] += -spatial(torque + wp.cross(arm_b, push), push)


@wp.struct
class _Pair:
    """The held points of an equality and the dofs that move them."""

    ka: wp.int32  # last dofs of the two bodies, into arrays of length nv + 1
    kb: wp.int32
    arm_a: vec3
    arm_b: vec3
    along: vec3  # distance: signed direction in which the row measures
    rotation_b: quat  # weld
    target: quat
    scale: real


@wp.func
def _append_columns(rows: Rows, t: Topology, axis: wp.array2d(dtype=vec6), w: int, p: _Pair, dim: int) -> int:
    """Columns of all dofs that move either body and are not prescribed; returns their number.

    Dof numbers fall towards the root on both chains, so the larger one is next, and equal ones are the same dof.
    """
    n = int(0)
    da = p.ka - 1
    db = p.kb - 1
    while da >= 0 or db >= 0:
        d = wp.max(da, db)
        s = axis[w, d]
        move, omega = dof_motion(s, da == d, db == d, p.arm_a, p.arm_b)
        if t.dof_prescribed[d] == 0:
            first = rows.used[w, 3] + n * dim
            rows.column[w, rows.used[w, 2] + n] = d
            if dim == 1:
                rows.entry[w, first] = wp.dot(p.along, move)
            else:
                turn = turn_rate(p.rotation_b, p.target, p.scale, omega)
                for r in range(3):
                    rows.entry[w, first + r] = move[r]
                    if dim == 6:
                        rows.entry[w, first + 3 + r] = turn[r]
            n += 1
        if da == d:
            da = t.dof_prev[d] - 1
        if db == d:
            db = t.dof_prev[d] - 1
    return n


@wp.func
def _write_rows(
    rows: Rows, w: int, first: int, kb: vec2, d: real, inverse: real, violation: vec3, rate: vec3, bias: vec3
):
    """Weights and references of three rows; `bias` is J̇ q̇."""
    for r in range(3):
        rows.weight[w, first + r] = stiffness_weight(d, inverse)
        rows.reference[w, first + r] = reference_acceleration(kb, d, violation[r], rate[r]) - bias[r]


@wp.func
def _add_distance(
    rows: Rows,
    t: Topology,
    axis: wp.array2d(dtype=vec6),
    e: EqualityParameters,
    w: int,
    i: int,
    p: _Pair,
    gap: vec3,
    rate: vec3,
    inverse: real,
    h: real,
    safe: int,
):
    reach = e.range[w, i]
    distance = wp.length(gap)
    v = _distance_violation(distance, reach)
    held = reach[1] <= reach[0]
    if held or v[0] < real(0.0):
        p.along = v[1] * _direction(gap, distance)
        d = impedance(e.solimp[w, i], v[0])
        kb = spring_damper(e.solref[w, i], e.solimp[w, i], h, safe)
        columns = _append_columns(rows, t, axis, w, p, 1)
        reference = reference_acceleration(kb, d, v[0], wp.dot(p.along, rate))
        kind = wp.where(held, EQUALITY, UNILATERAL)
        close_single(rows, w, kind, columns, stiffness_weight(d, inverse), reference, real(0.0))


@wp.kernel(enable_backward=False)
def _equality_rows_kernel(
    # topology, parameters
    t: Topology,
    c: EqualitySettings,
    x: EqualityTopology,
    e: EqualityParameters,
    body_weight: wp.array2d(dtype=vec2),
    timestep: wp.array(dtype=real),
    # work in
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
    for n in range(c.body_count):
        i = c.body_equality[n]
        a = x.a[i]
        b = x.b[i]
        kind = x.kind[i]
        ra = link_rotation[w, t.body_link[a]]
        p = _Pair()
        p.ka = t.body_last_dof[a]
        p.kb = t.body_last_dof[b]
        p.rotation_b = link_rotation[w, t.body_link[b]]
        p.target = quat_mul(ra, e.relative_rotation[w, i])
        p.scale = e.torque_scale[w, i]
        point_a, point_b = held_points(t, e, link_position, w, i, a, b, ra, p.rotation_b)
        p.arm_a = point_a - origin[w, t.body_tree[a]]
        p.arm_b = point_b - origin[w, t.body_tree[b]]
        gap = point_a - point_b
        rate = point_rate(velocity[w, p.ka], p.arm_a) - point_rate(velocity[w, p.kb], p.arm_b)
        weights = body_weight[w, a] + body_weight[w, b]
        if kind == DISTANCE:
            _add_distance(rows, t, axis, e, w, i, p, gap, rate, weights[0], h, c.safe)
        else:
            alpha = angular(bias[w, p.ka]) - angular(bias[w, p.kb])
            turn, spin, twirl = _weld_turn(p.rotation_b, p.target, p.scale, velocity[w, p.ka], velocity[w, p.kb], alpha)
            size = wp.length(gap)
            dim = int(3)
            if kind == WELD:
                size = wp.length(spatial(turn, gap))
                dim = int(6)
            d = impedance(e.solimp[w, i], size)
            kb = spring_damper(e.solref[w, i], e.solimp[w, i], h, c.safe)
            columns = _append_columns(rows, t, axis, w, p, dim)
            r = rows.used[w, 1]
            carried = point_acceleration(velocity[w, p.ka], bias[w, p.ka], p.arm_a)
            carried -= point_acceleration(velocity[w, p.kb], bias[w, p.kb], p.arm_b)
            _write_rows(rows, w, r, kb, d, weights[0], gap, rate, carried)
            if kind == WELD:
                _write_rows(rows, w, r + 3, kb, d, weights[1], turn, spin, twirl)
            if columns > 0:
                close_group(rows, w, EQUALITY, dim, columns)
