"""Equalities that hold some axes of one frame to another (axes): what a joint that closes a loop leaves locked.

A joint between frames A of body a and B of body b has coordinates: the translation of B's origin along A's axes, then
turns about x, y, z in that order. Rows are the locked ones:

- translations: A's axes · (A's origin − B's). The axes turn with a, so the rates are those of the two bodies' points at
  B's origin, and the acceleration has a Coriolis term.
- three or two locked turns: components of the quaternion that is left over, as for a weld, along B's axes. About a free
  axis it may turn any number of times: the other two components stay zero and well scaled.
- one locked turn (a universal joint): the first free axis, fixed in a, stays normal to the second, fixed in b.

As for connect and weld, rows hold the full acceleration, and all are as soft as the norm of their violations says.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import quat, real, vec2, vec3, vec6
from warpsim.core.spatial import angular, point_rate, quat_mul, quat_rotate, quat_rotate_back, spatial
from warpsim.rigid.constraint.held_frames import (
    dof_motion,
    held_points,
    relative_acceleration,
    turn_acceleration,
    turn_left,
    turn_rate,
    turn_torque,
)
from warpsim.rigid.model.equalities import EqualityTopology
from warpsim.rigid.model.parameters import EqualityParameters
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.row_settings import EqualitySettings
from warpsim.solve.impedance import impedance, reference_acceleration, spring_damper, stiffness_weight
from warpsim.solve.row_forces import bilateral_forces
from warpsim.solve.rows import EQUALITY, Rows, close_group


@wp.func
def _bit(locked: int, axis: int) -> int:
    return (locked >> axis) & 1


@wp.func
def _mask(locked: int, first: int) -> vec3:
    """1 for each locked one of three axes."""
    return vec3(real(_bit(locked, first)), real(_bit(locked, first + 1)), real(_bit(locked, first + 2)))


@wp.func
def _locked_turns(locked: int) -> int:
    return _bit(locked, 3) + _bit(locked, 4) + _bit(locked, 5)


@wp.func
def _first_axis(locked: int) -> vec3:
    """The first free axis of a universal joint."""
    if _bit(locked, 3) == 1:
        return vec3(real(0.0), real(1.0), real(0.0))
    return vec3(real(1.0), real(0.0), real(0.0))


@wp.func
def _second_axis(locked: int) -> vec3:
    if _bit(locked, 5) == 1:
        return vec3(real(0.0), real(1.0), real(0.0))
    return vec3(real(0.0), real(0.0), real(1.0))


@wp.func
def _cross_rate(n1: vec3, n2: vec3, omega_a: vec3, omega_b: vec3) -> vec3:
    """Rate of n₁ × n₂, n₁ fixed in a and n₂ in b."""
    return wp.cross(wp.cross(omega_a, n1), n2) + wp.cross(n1, wp.cross(omega_b, n2))


@wp.func
def _translations(held: quat, between: vec3, va: vec6, vb: vec6, aa: vec6, ab: vec6, arm_a: vec3, arm_b: vec3):
    """Of A's origin less B's along A's axes: violation, rate and acceleration."""
    gap = quat_rotate_back(held, between)
    rate = quat_rotate_back(held, point_rate(va, arm_a) - point_rate(vb, arm_b))
    change = quat_rotate_back(held, relative_acceleration(va, vb, aa, ab, arm_a, arm_b))
    return gap, rate, change


@wp.func
def _universal_turn(held: quat, frame_b: quat, scale: real, locked: int, va: vec6, vb: vec6, aa: vec6, ab: vec6):
    """n₁ × n₂ of a universal joint, with the scale, and violation, rate and acceleration of its one locked turn."""
    alpha = angular(aa) - angular(ab)
    omega = angular(va) - angular(vb)
    n1 = quat_rotate(held, _first_axis(locked))
    n2 = quat_rotate(frame_b, _second_axis(locked))
    along = (real(0.5) * scale) * wp.cross(n1, n2)
    lever = (real(0.5) * scale) * _cross_rate(n1, n2, angular(va), angular(vb))
    turn = real(0.5) * scale * wp.dot(n1, n2)
    return along, turn, wp.dot(omega, along), wp.dot(alpha, along) + wp.dot(omega, lever)


@wp.func
def _weld_turns(rotation_b: quat, target: quat, axes: quat, scale: real, va: vec6, vb: vec6, aa: vec6, ab: vec6):
    """Turns along B's axes, before locked ones are picked: violation, rate and acceleration."""
    alpha = angular(aa) - angular(ab)
    omega = angular(va) - angular(vb)
    turn = quat_rotate_back(axes, turn_left(rotation_b, target, scale))
    spin = quat_rotate_back(axes, turn_rate(rotation_b, target, scale, omega))
    full = turn_acceleration(rotation_b, target, scale, angular(va), angular(vb), alpha)
    return turn, spin, quat_rotate_back(axes, full)


@wp.kernel
def _axes_force_kernel(
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
    for n in range(c.axes_count):
        i = c.axes_equality[n]
        a = x.a[i]
        b = x.b[i]
        va = velocity[w, t.body_last_dof[a]]
        vb = velocity[w, t.body_last_dof[b]]
        aa = bias[w, t.body_last_dof[a]] + twist[w, t.body_last_dof[a]]
        ab = bias[w, t.body_last_dof[b]] + twist[w, t.body_last_dof[b]]
        locked = x.locked[i]
        ra = link_rotation[w, t.body_link[a]]
        rb = link_rotation[w, t.body_link[b]]
        target = quat_mul(ra, e.relative_rotation[w, i])
        held = quat_mul(target, e.axes[w, i])
        point_a, point_b = held_points(t, e, link_position, w, i, a, b, ra, rb)
        arm_a = point_b - origin[w, t.body_tree[a]]
        arm_b = point_b - origin[w, t.body_tree[b]]
        weights = body_weight[w, a] + body_weight[w, b]
        scale = e.torque_scale[w, i]
        mask = _mask(locked, 0)
        gap_a, rate_a, change_a = _translations(held, point_a - point_b, va, vb, aa, ab, arm_a, arm_b)
        gap = wp.cw_mul(mask, gap_a)
        rate = wp.cw_mul(mask, rate_a)
        change = wp.cw_mul(mask, change_a)
        if _locked_turns(locked) == 1:
            frame_b = quat_mul(rb, e.axes[w, i])
            along, violation, rate_of_turn, drift = _universal_turn(held, frame_b, scale, locked, va, vb, aa, ab)
            turn = vec3(violation, real(0.0), real(0.0))
            spin = vec3(rate_of_turn, real(0.0), real(0.0))
            twirl = vec3(drift, real(0.0), real(0.0))
            size = wp.length(spatial(turn, gap))
            push = bilateral_forces(e.solref[w, i], e.solimp[w, i], weights[0], size, gap, rate, change, h, c.safe)
            f = bilateral_forces(e.solref[w, i], e.solimp[w, i], weights[1], size, turn, spin, twirl, h, c.safe)
            force = quat_rotate(held, push)
            wrench[w, a] += spatial(f[0] * along + wp.cross(arm_a, force), force)
            wrench[w, b] += -spatial(f[0] * along + wp.cross(arm_b, force), force)
        else:
            kept = _mask(locked, 3)
            axes = e.axes[w, i]
            turn_b, spin_b, twirl_b = _weld_turns(rb, target, axes, scale, va, vb, aa, ab)
            turn = wp.cw_mul(kept, turn_b)
            spin = wp.cw_mul(kept, spin_b)
            twirl = wp.cw_mul(kept, twirl_b)
            size = wp.length(spatial(turn, gap))
            push = bilateral_forces(e.solref[w, i], e.solimp[w, i], weights[0], size, gap, rate, change, h, c.safe)
            f = bilateral_forces(e.solref[w, i], e.solimp[w, i], weights[1], size, turn, spin, twirl, h, c.safe)
            force = quat_rotate(held, push)
            torque = turn_torque(rb, target, scale, quat_rotate(axes, f))
            wrench[w, a] += spatial(torque + wp.cross(arm_a, force), force)
            wrench[w, b] += -spatial(torque + wp.cross(arm_b, force), force)


@wp.struct
class _Frames:
    """The two frames of one equality, and what its rotational rows measure."""

    locked: wp.int32
    ka: wp.int32  # last dofs of the two bodies, into arrays of length nv + 1
    kb: wp.int32
    arm_a: vec3  # of B's origin
    arm_b: vec3
    held: quat  # A's axes
    rotation_b: quat
    target: quat
    axes: quat
    scale: real
    along: vec3  # universal: n₁ × n₂ and the scale


@wp.func
def _turn_rows(p: _Frames, omega: vec3) -> vec3:
    """Rates of the rotational rows, before locked ones are picked, if a turns relative to b by `omega`."""
    if _locked_turns(p.locked) == 1:
        rate = wp.dot(omega, p.along)
        return vec3(rate, rate, rate)
    return quat_rotate_back(p.axes, turn_rate(p.rotation_b, p.target, p.scale, omega))


@wp.func
def _append_columns(rows: Rows, t: Topology, axis: wp.array2d(dtype=vec6), w: int, p: _Frames, dim: int) -> int:
    """Columns of all dofs that move either body and are not prescribed; returns their number."""
    n = int(0)
    da = p.ka - 1
    db = p.kb - 1
    while da >= 0 or db >= 0:
        d = wp.max(da, db)
        s = axis[w, d]
        move, omega = dof_motion(s, da == d, db == d, p.arm_a, p.arm_b)
        if t.dof_prescribed[d] == 0:
            local = quat_rotate_back(p.held, move)
            turn = _turn_rows(p, omega)
            rows.column[w, rows.used[w, 2] + n] = d
            r = rows.used[w, 3] + n * dim
            for k in range(3):
                if _bit(p.locked, k) == 1:
                    rows.entry[w, r] = local[k]
                    r += 1
            for k in range(3):
                if _bit(p.locked, k + 3) == 1:
                    rows.entry[w, r] = turn[k]
                    r += 1
            n += 1
        if da == d:
            da = t.dof_prev[d] - 1
        if db == d:
            db = t.dof_prev[d] - 1
    return n


@wp.func
def _write_rows(
    rows: Rows, w: int, first: int, bits: int, kb: vec2, d: real, inverse: real, violation: vec3, rate: vec3, bias: vec3
) -> int:
    """Weights and references of the rows whose bit is set; `bias` is J̇ q̇. Returns the place after the last."""
    r = first
    for k in range(3):
        if _bit(bits, k) == 1:
            rows.weight[w, r] = stiffness_weight(d, inverse)
            rows.reference[w, r] = reference_acceleration(kb, d, violation[k], rate[k]) - bias[k]
            r += 1
    return r


@wp.kernel(enable_backward=False)
def _axes_rows_kernel(
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
    for n in range(c.axes_count):
        i = c.axes_equality[n]
        a = x.a[i]
        b = x.b[i]
        p = _Frames()
        p.locked = x.locked[i]
        p.ka = t.body_last_dof[a]
        p.kb = t.body_last_dof[b]
        ra = link_rotation[w, t.body_link[a]]
        p.rotation_b = link_rotation[w, t.body_link[b]]
        p.target = quat_mul(ra, e.relative_rotation[w, i])
        p.axes = e.axes[w, i]
        p.held = quat_mul(p.target, p.axes)
        p.scale = e.torque_scale[w, i]
        point_a, point_b = held_points(t, e, link_position, w, i, a, b, ra, p.rotation_b)
        p.arm_a = point_b - origin[w, t.body_tree[a]]
        p.arm_b = point_b - origin[w, t.body_tree[b]]
        va = velocity[w, p.ka]
        vb = velocity[w, p.kb]
        aa = bias[w, p.ka]
        ab = bias[w, p.kb]
        turn = vec3()
        spin = vec3()
        twirl = vec3()
        if _locked_turns(p.locked) == 1:
            frame_b = quat_mul(p.rotation_b, p.axes)
            along, violation, rate_of_turn, drift = _universal_turn(p.held, frame_b, p.scale, p.locked, va, vb, aa, ab)
            p.along = along
            turn = vec3(violation, violation, violation)
            spin = vec3(rate_of_turn, rate_of_turn, rate_of_turn)
            twirl = vec3(drift, drift, drift)
        else:
            turn, spin, twirl = _weld_turns(p.rotation_b, p.target, p.axes, p.scale, va, vb, aa, ab)
        gap, rate, change = _translations(p.held, point_a - point_b, va, vb, aa, ab, p.arm_a, p.arm_b)
        size = wp.length(spatial(wp.cw_mul(_mask(p.locked, 3), turn), wp.cw_mul(_mask(p.locked, 0), gap)))
        d = impedance(e.solimp[w, i], size)
        kb = spring_damper(e.solref[w, i], e.solimp[w, i], h, c.safe)
        weights = body_weight[w, a] + body_weight[w, b]
        first = rows.used[w, 1]
        r = _write_rows(rows, w, first, p.locked & 7, kb, d, weights[0], gap, rate, change)
        r = _write_rows(rows, w, r, p.locked >> 3, kb, d, weights[1], turn, spin, twirl)
        columns = _append_columns(rows, t, axis, w, p, r - first)
        if columns > 0:
            close_group(rows, w, EQUALITY, r - first, columns)
