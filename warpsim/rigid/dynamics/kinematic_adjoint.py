"""The adjoint of the kinematic pass, by kind of joint.

Whatever a link carries, a point, an axis, an inertia, a turn of the link by a small rotation vector δθ (world axes)
moves it by a cross product. So the adjoints of all of it, and of all that hangs on the link, sum up to two vectors, as
forces on a rigid body do: one for its place, here called its *force*, and one for its turn, its *torque*. The adjoint
of a coordinate is their product with its axis.

Rotations and axes are unit when they come here, made so by the derivation, which leaves of their adjoints the tangent
part. The adjoint reads what the pass has written, so that has to stay as it is until then. Names that end in `_bar` are
adjoints; an adjoint that nobody asked for is no array.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import mat33, quat, real, vec3, vec6
from warpsim.core.spatial import angular, linear, quat_conj, quat_matrix, quat_mul, sym_mul, sym_rotate
from warpsim.rigid.model.parameters import BodyParameters, JointParameters
from warpsim.rigid.model.topology import BALL, FREE, HINGE, SLIDE, Topology
from warpsim.rigid.work.pass_arrays import MotionArrays


@wp.func
def base_rotation(first: int, r: quat, offset: quat) -> quat:
    """Rotation of the frame a joint starts from, on a link of rotation r: the body's own before its first joint."""
    if first == 0:
        return r
    return quat_mul(r, offset)


@wp.func
def column(r: mat33, k: int) -> vec3:
    """Column k."""
    return vec3(r[0, k], r[1, k], r[2, k])


@wp.func
def _torque_of_quat(r: quat, r_bar: quat) -> vec3:
    """Adjoint of the turn of r, given the adjoint of its numbers: δr = ½ (0, δθ) r."""
    p = quat_mul(r_bar, quat_conj(r))
    return real(0.5) * vec3(p[1], p[2], p[3])


@wp.func
def _quat_of_torque(r: quat, torque: vec3) -> quat:
    """Adjoint of the numbers of the unit quaternion r, given that of its turn: tangent, as r is unit."""
    return real(2.0) * quat_mul(quat(real(0.0), torque[0], torque[1], torque[2]), r)


@wp.func
def _stored_quat_adjoint(q: wp.array2d(dtype=real), w: int, i: int, torque: vec3) -> quat:
    """Adjoint of the four numbers in q from i, which the pass normalizes, given that of their turn."""
    stored = quat(q[w, i], q[w, i + 1], q[w, i + 2], q[w, i + 3])
    scale = real(1.0) / wp.sqrt(wp.dot(stored, stored))
    return scale * _quat_of_torque(scale * stored, torque)


@wp.func
def _axis_of_turn(turned: quat, torque: vec3, u: vec3) -> vec3:
    """Adjoint of the unit axis u of a rotation by φ, given that of its turn, both before it: sin φ τ + (1 − cos φ) τ×u.

    Args:
        turned: The rotation, (cos φ/2, sin φ/2 u).
        torque: τ.
        u: The axis.
    """
    v = vec3(turned[1], turned[2], turned[3])
    return real(2.0) * wp.dot(u, v) * (turned[0] * torque + wp.cross(torque, v))


@wp.func
def _as_quat(v: vec3) -> quat:
    """(0, v)."""
    return quat(real(0.0), v[0], v[1], v[2])


@wp.func
def _twice_symmetric(a: vec6) -> vec6:
    """Twice the symmetric matrix whose scalar product with another is that of the six numbers."""
    return vec6(real(2.0) * a[0], real(2.0) * a[1], real(2.0) * a[2], a[3], a[4], a[5])


@wp.func
def _torque_of_symmetric(a: vec6, a_bar: vec6) -> vec3:
    """Adjoint of the turn of a symmetric matrix A: δA = [δθ]A − A[δθ], so it is the axial vector of A·2Ā."""
    s = _twice_symmetric(a_bar)
    c0 = sym_mul(a, vec3(s[0], s[3], s[4]))
    c1 = sym_mul(a, vec3(s[3], s[1], s[5]))
    c2 = sym_mul(a, vec3(s[4], s[5], s[2]))
    return vec3(c2[1] - c1[2], c0[2] - c2[0], c1[0] - c0[1])


@wp.func
def _turned_back(m: mat33, a_bar: vec6) -> vec6:
    """Adjoint of A, given that of R A Rᵀ."""
    s = sym_rotate(wp.transpose(m), _twice_symmetric(a_bar))
    half = real(0.5)
    return vec6(half * s[0], half * s[1], half * s[2], s[3], s[4], s[5])


@wp.struct
class LinkAdjoints:
    """Adjoints of all that the pass reads and writes, but for qd."""

    body: BodyParameters
    joint: JointParameters
    q: wp.array2d(dtype=real)
    motion: MotionArrays


@wp.func
def velocities_adjoint(
    t: Topology,
    qd: wp.array2d(dtype=real),
    motion: MotionArrays,
    bars: LinkAdjoints,
    qd_bar: wp.array2d(dtype=real),
    w: int,
):
    """Of the sums of rates along the dofs."""
    for k in range(t.nv):
        d = t.nv - 1 - k
        v_bar = bars.motion.velocity[w, d + 1]
        bars.motion.velocity[w, d + 1] = vec6()
        bars.motion.velocity[w, t.dof_prev[d]] += v_bar
        bars.motion.axis[w, d] += v_bar * qd[w, d]
        if qd_bar:
            qd_bar[w, d] += wp.dot(motion.axis[w, d], v_bar)
    bars.motion.velocity[w, 0] = vec6()


@wp.func
def torques_of_rotations(t: Topology, motion: MotionArrays, bars: LinkAdjoints, w: int):
    """From here on the adjoint of a link's rotation holds its torque, as (0, torque)."""
    for i in range(1, t.nlink):
        torque = _torque_of_quat(motion.link_rotation[w, i], bars.motion.link_rotation[w, i])
        bars.motion.link_rotation[w, i] = _as_quat(torque)


@wp.func
def bodies_adjoint(t: Topology, body: BodyParameters, motion: MotionArrays, bars: LinkAdjoints, w: int):
    """Of centers and inertias, onto their links and the bodies' own."""
    for b in range(1, t.nbody):
        i = t.body_link[b]
        m = quat_matrix(motion.link_rotation[w, i])
        force = bars.motion.com[w, b]
        a_bar = bars.motion.inertia[w, b]
        bars.motion.com[w, b] = vec3(real(0.0), real(0.0), real(0.0))
        bars.motion.inertia[w, b] = vec6()
        torque = wp.cross(m @ body.com[w, b], force) + _torque_of_symmetric(motion.inertia[w, b], a_bar)
        bars.motion.link_position[w, i] += force
        bars.motion.link_rotation[w, i] += _as_quat(torque)
        if bars.body.com:
            bars.body.com[w, b] += wp.transpose(m) @ force
        if bars.body.inertia:
            bars.body.inertia[w, b] += _turned_back(m, a_bar)


@wp.func
def _free_adjoint(
    force: vec3, torque: vec3, r: quat, q: wp.array2d(dtype=real), bars: LinkAdjoints, w: int, a: int, d: int
):
    """Of the coordinates of a free joint."""
    m = quat_matrix(r)
    for e in range(3):
        s = column(m, e)
        s_bar = bars.motion.axis[w, d + 3 + e]
        torque += wp.cross(s, angular(s_bar))
        force += wp.cross(s, linear(s_bar))
        bars.motion.axis[w, d + e] = vec6()
        bars.motion.axis[w, d + 3 + e] = vec6()
    if bars.q:
        r_bar = _stored_quat_adjoint(q, w, a + 3, torque)
        for e in range(3):
            bars.q[w, a + e] += force[e]
        for e in range(4):
            bars.q[w, a + 3 + e] += r_bar[e]


@wp.func
def _hinge_adjoint(
    force: vec3,
    torque: vec3,
    place: vec3,
    o: vec3,
    r: quat,
    rb: quat,
    s: vec3,
    anchor: vec3,
    direction: vec3,
    bars: LinkAdjoints,
    w: int,
    j: int,
    a: int,
    d: int,
):
    """Of a hinge; force and torque on its base."""
    m = quat_matrix(r)
    mb = quat_matrix(rb)
    arm = m @ anchor  # from the link's place to the anchor, which stands still
    base_arm = mb @ anchor
    s_bar = bars.motion.axis[w, d]
    bars.motion.axis[w, d] = vec6()
    p_bar = force + wp.cross(s, linear(s_bar))
    u_bar = angular(s_bar) + wp.cross(linear(s_bar), place + arm - o)
    torque -= wp.cross(arm, force)
    turn = wp.dot(s, torque)
    if bars.q:
        bars.q[w, a] += turn
    if bars.joint.reference:
        bars.joint.reference[w, a] -= turn
    if bars.joint.anchor:
        bars.joint.anchor[w, j] += wp.transpose(mb) @ p_bar - wp.transpose(m) @ force
    if bars.joint.axis:
        turned = quat_mul(quat_conj(rb), r)
        by_turn = _axis_of_turn(turned, wp.transpose(mb) @ torque, direction)
        bars.joint.axis[w, j] += wp.transpose(mb) @ u_bar + by_turn
    torque += wp.cross(s, u_bar) + wp.cross(base_arm, p_bar)
    return p_bar, torque


@wp.func
def _slide_adjoint(
    force: vec3, torque: vec3, rb: quat, s: vec3, moved: real, bars: LinkAdjoints, w: int, j: int, a: int, d: int
):
    """Of a slide; force and torque on its base."""
    u_bar = linear(bars.motion.axis[w, d]) + force * moved
    bars.motion.axis[w, d] = vec6()
    slide = wp.dot(s, force)
    if bars.q:
        bars.q[w, a] += slide
    if bars.joint.reference:
        bars.joint.reference[w, a] -= slide
    if bars.joint.axis:
        bars.joint.axis[w, j] += wp.transpose(quat_matrix(rb)) @ u_bar
    torque += wp.cross(s, u_bar)
    return force, torque


@wp.func
def _ball_adjoint(
    force: vec3,
    torque: vec3,
    place: vec3,
    o: vec3,
    r: quat,
    rb: quat,
    anchor: vec3,
    q: wp.array2d(dtype=real),
    bars: LinkAdjoints,
    w: int,
    j: int,
    a: int,
    d: int,
):
    """Of a ball joint; force and torque on its base."""
    m = quat_matrix(r)
    mb = quat_matrix(rb)
    arm = m @ anchor
    torque -= wp.cross(arm, force)
    p_bar = force
    for e in range(3):
        s = column(m, e)
        s_bar = bars.motion.axis[w, d + e]
        bars.motion.axis[w, d + e] = vec6()
        u_bar = angular(s_bar) + wp.cross(linear(s_bar), place + arm - o)
        p_bar += wp.cross(s, linear(s_bar))
        torque += wp.cross(s, u_bar)
    if bars.q:
        r_bar = _stored_quat_adjoint(q, w, a, wp.transpose(mb) @ torque)
        for e in range(4):
            bars.q[w, a + e] += r_bar[e]
    if bars.joint.anchor:
        bars.joint.anchor[w, j] += wp.transpose(mb) @ p_bar - wp.transpose(m) @ force
    torque += wp.cross(mb @ anchor, p_bar)
    return p_bar, torque


@wp.func
def _base_adjoint(
    force: vec3, torque: vec3, rp: quat, position: vec3, rotation: quat, bars: LinkAdjoints, w: int, b: int
) -> vec3:
    """Of a body's place on its parent link; torque on the parent."""
    mp = quat_matrix(rp)
    if bars.body.position:
        bars.body.position[w, b] += wp.transpose(mp) @ force
    if bars.body.rotation:
        bars.body.rotation[w, b] += _quat_of_torque(rotation, wp.transpose(mp) @ torque)
    return torque + wp.cross(mp @ position, force)


@wp.func
def link_adjoint(
    t: Topology,
    body: BodyParameters,
    joint: JointParameters,
    q: wp.array2d(dtype=real),
    motion: MotionArrays,
    bars: LinkAdjoints,
    w: int,
    i: int,
):
    """Of link i: through its joint onto its parent."""
    kind = t.link_kind[i]
    j = t.link_joint[i]
    a = t.link_q[i]
    d = t.link_dof[i]
    o = motion.origin[w, t.link_tree[i]]
    place = motion.link_position[w, i]
    r = motion.link_rotation[w, i]
    force = bars.motion.link_position[w, i]
    held = bars.motion.link_rotation[w, i]
    torque = vec3(held[1], held[2], held[3])
    bars.motion.link_position[w, i] = vec3(real(0.0), real(0.0), real(0.0))
    bars.motion.link_rotation[w, i] = quat()
    if kind == FREE:
        _free_adjoint(force, torque, r, q, bars, w, a, d)
        return
    b = t.link_body[i]
    first = t.link_first[i]
    parent = t.link_parent[i]
    rp = motion.link_rotation[w, parent]
    rb = base_rotation(first, rp, body.rotation[w, b])
    if kind == HINGE:
        s = angular(motion.axis[w, d])
        anchor = joint.anchor[w, j]
        force, torque = _hinge_adjoint(force, torque, place, o, r, rb, s, anchor, joint.axis[w, j], bars, w, j, a, d)
    elif kind == SLIDE:
        moved = q[w, a] - joint.reference[w, a]
        force, torque = _slide_adjoint(force, torque, rb, linear(motion.axis[w, d]), moved, bars, w, j, a, d)
    elif kind == BALL:
        force, torque = _ball_adjoint(force, torque, place, o, r, rb, joint.anchor[w, j], q, bars, w, j, a, d)
    if first == 1:
        torque = _base_adjoint(force, torque, rp, body.position[w, b], body.rotation[w, b], bars, w, b)
    bars.motion.link_position[w, parent] += force
    bars.motion.link_rotation[w, parent] += _as_quat(torque)
