"""The pass through a tree that gives all poses, axes, inertias and velocities, and its adjoint, written by hand.

Whatever a link carries, a point, an axis, an inertia, a turn of the link by a small rotation vector δθ (world axes)
moves it by a cross product. So the adjoints of all of it, and of all that hangs on the link, sum up to two vectors, as
forces on a rigid body do: one for its place, and one for its turn, here called its *torque*. The adjoint of a
coordinate is their product with its axis. Warp's own adjoint goes through every product of quaternions instead, and
takes two to three times as long.

Rotations and axes are unit when they come here, made so by the derivation, which leaves of their adjoints the tangent
part. The adjoint reads what the pass has written, so that has to stay as it is until then.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import mat33, quat, real, vec3, vec6
from warpsim.core.spatial import (
    angular,
    linear,
    quat_about,
    quat_conj,
    quat_matrix,
    quat_mul,
    quat_rotate,
    read_quat,
    spatial,
    sym_mul,
    sym_rotate,
)
from warpsim.rigid.model.topology import BALL, FREE, HINGE, SLIDE, Topology


@wp.func
def _base_position(first: int, x: vec3, r: quat, offset: vec3) -> vec3:
    if first == 0:
        return x
    return x + quat_rotate(r, offset)


@wp.func
def _base_rotation(first: int, r: quat, offset: quat) -> quat:
    if first == 0:
        return r
    return quat_mul(r, offset)


@wp.func
def _column(r: mat33, k: int) -> vec3:
    return vec3(r[0, k], r[1, k], r[2, k])


@wp.func
def kinematic_pass(
    # topology
    t: Topology,
    # parameters
    body_position: wp.array2d(dtype=vec3),
    body_rotation: wp.array2d(dtype=quat),
    body_com: wp.array2d(dtype=vec3),
    body_inertia: wp.array2d(dtype=vec6),
    joint_anchor: wp.array2d(dtype=vec3),
    joint_axis: wp.array2d(dtype=vec3),
    reference: wp.array2d(dtype=real),
    # state
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    # work out
    origin: wp.array2d(dtype=vec3),
    link_position: wp.array2d(dtype=vec3),
    link_rotation: wp.array2d(dtype=quat),
    axis: wp.array2d(dtype=vec6),
    com: wp.array2d(dtype=vec3),
    inertia: wp.array2d(dtype=vec6),
    velocity: wp.array2d(dtype=vec6),
    w: int,
):
    """All of world w; see `Work` for what is written."""
    link_position[w, 0] = vec3(real(0.0), real(0.0), real(0.0))
    link_rotation[w, 0] = quat(real(1.0), real(0.0), real(0.0), real(0.0))
    for i in range(1, t.nlink):
        kind = t.link_kind[i]
        parent = t.link_parent[i]
        j = t.link_joint[i]
        a = t.link_q[i]
        d = t.link_dof[i]
        tree = t.link_tree[i]
        if kind == FREE:
            x = vec3(q[w, a], q[w, a + 1], q[w, a + 2])
            origin[w, tree] = x
            r = read_quat(q, w, a + 3)
            link_position[w, i] = x
            link_rotation[w, i] = r
            m = quat_matrix(r)
            zero = vec3(real(0.0), real(0.0), real(0.0))
            axis[w, d] = spatial(zero, vec3(real(1.0), real(0.0), real(0.0)))
            axis[w, d + 1] = spatial(zero, vec3(real(0.0), real(1.0), real(0.0)))
            axis[w, d + 2] = spatial(zero, vec3(real(0.0), real(0.0), real(1.0)))
            axis[w, d + 3] = spatial(_column(m, 0), zero)
            axis[w, d + 4] = spatial(_column(m, 1), zero)
            axis[w, d + 5] = spatial(_column(m, 2), zero)
        else:
            b = t.link_body[i]
            first = t.link_first[i]
            rp = link_rotation[w, parent]
            xb = _base_position(first, link_position[w, parent], rp, body_position[w, b])
            rb = _base_rotation(first, rp, body_rotation[w, b])
            if t.link_root[i] == 1:
                origin[w, tree] = xb
            if kind == HINGE:
                anchor = joint_anchor[w, j]
                u = joint_axis[w, j]
                p = xb + quat_rotate(rb, anchor)
                s = quat_rotate(rb, u)
                r = quat_mul(rb, quat_about(u, q[w, a] - reference[w, a]))
                link_rotation[w, i] = r
                link_position[w, i] = p - quat_rotate(r, anchor)
                axis[w, d] = spatial(s, wp.cross(p - origin[w, tree], s))
            elif kind == SLIDE:
                s = quat_rotate(rb, joint_axis[w, j])
                link_rotation[w, i] = rb
                link_position[w, i] = xb + s * (q[w, a] - reference[w, a])
                axis[w, d] = spatial(vec3(real(0.0), real(0.0), real(0.0)), s)
            elif kind == BALL:
                anchor = joint_anchor[w, j]
                p = xb + quat_rotate(rb, anchor)
                r = quat_mul(rb, read_quat(q, w, a))
                link_rotation[w, i] = r
                link_position[w, i] = p - quat_rotate(r, anchor)
                o = p - origin[w, tree]
                m = quat_matrix(r)
                axis[w, d] = spatial(_column(m, 0), wp.cross(o, _column(m, 0)))
                axis[w, d + 1] = spatial(_column(m, 1), wp.cross(o, _column(m, 1)))
                axis[w, d + 2] = spatial(_column(m, 2), wp.cross(o, _column(m, 2)))
            else:
                link_rotation[w, i] = rb
                link_position[w, i] = xb
    for b in range(1, t.nbody):
        i = t.body_link[b]
        r = link_rotation[w, i]
        com[w, b] = link_position[w, i] + quat_rotate(r, body_com[w, b]) - origin[w, t.body_tree[b]]
        inertia[w, b] = sym_rotate(quat_matrix(r), body_inertia[w, b])
    velocity[w, 0] = vec6()
    for d in range(t.nv):
        velocity[w, d + 1] = velocity[w, t.dof_prev[d]] + axis[w, d] * qd[w, d]


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


@wp.func_replay(kinematic_pass)
def _replay_kinematic_pass(
    t: Topology,
    body_position: wp.array2d(dtype=vec3),
    body_rotation: wp.array2d(dtype=quat),
    body_com: wp.array2d(dtype=vec3),
    body_inertia: wp.array2d(dtype=vec6),
    joint_anchor: wp.array2d(dtype=vec3),
    joint_axis: wp.array2d(dtype=vec3),
    reference: wp.array2d(dtype=real),
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    origin: wp.array2d(dtype=vec3),
    link_position: wp.array2d(dtype=vec3),
    link_rotation: wp.array2d(dtype=quat),
    axis: wp.array2d(dtype=vec6),
    com: wp.array2d(dtype=vec3),
    inertia: wp.array2d(dtype=vec6),
    velocity: wp.array2d(dtype=vec6),
    w: int,
):
    """Nothing: the adjoint finds everything where the pass has left it."""


@wp.func_grad(kinematic_pass)
def _adjoint_kinematic_pass(
    t: Topology,
    body_position: wp.array2d(dtype=vec3),
    body_rotation: wp.array2d(dtype=quat),
    body_com: wp.array2d(dtype=vec3),
    body_inertia: wp.array2d(dtype=vec6),
    joint_anchor: wp.array2d(dtype=vec3),
    joint_axis: wp.array2d(dtype=vec3),
    reference: wp.array2d(dtype=real),
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    origin: wp.array2d(dtype=vec3),
    link_position: wp.array2d(dtype=vec3),
    link_rotation: wp.array2d(dtype=quat),
    axis: wp.array2d(dtype=vec6),
    com: wp.array2d(dtype=vec3),
    inertia: wp.array2d(dtype=vec6),
    velocity: wp.array2d(dtype=vec6),
    w: int,
):
    """From the last dof to the first, from the bodies to their links, from the last link to the first.

    Adjoints of what the pass wrote are used up: zero afterwards, as Warp leaves those of any array it has written.
    """
    zero = vec3(real(0.0), real(0.0), real(0.0))
    for k in range(t.nv):
        d = t.nv - 1 - k
        v_bar = wp.adjoint[velocity][w, d + 1]
        wp.adjoint[velocity][w, d + 1] = vec6()
        wp.adjoint[velocity][w, t.dof_prev[d]] += v_bar
        wp.adjoint[axis][w, d] += v_bar * qd[w, d]
        if wp.adjoint[qd]:
            wp.adjoint[qd][w, d] += wp.dot(axis[w, d], v_bar)
    wp.adjoint[velocity][w, 0] = vec6()

    # From here on the adjoint of a link's rotation holds its torque, as (0, torque).
    for i in range(1, t.nlink):
        wp.adjoint[link_rotation][w, i] = _as_quat(
            _torque_of_quat(link_rotation[w, i], wp.adjoint[link_rotation][w, i])
        )
    for b in range(1, t.nbody):
        i = t.body_link[b]
        m = quat_matrix(link_rotation[w, i])
        force = wp.adjoint[com][w, b]
        a_bar = wp.adjoint[inertia][w, b]
        wp.adjoint[com][w, b] = zero
        wp.adjoint[inertia][w, b] = vec6()
        torque = wp.cross(m @ body_com[w, b], force) + _torque_of_symmetric(inertia[w, b], a_bar)
        wp.adjoint[link_position][w, i] += force
        wp.adjoint[link_rotation][w, i] += _as_quat(torque)
        if wp.adjoint[body_com]:
            wp.adjoint[body_com][w, b] += wp.transpose(m) @ force
        if wp.adjoint[body_inertia]:
            wp.adjoint[body_inertia][w, b] += _turned_back(m, a_bar)

    for k in range(1, t.nlink):
        i = t.nlink - k
        kind = t.link_kind[i]
        j = t.link_joint[i]
        a = t.link_q[i]
        d = t.link_dof[i]
        o = origin[w, t.link_tree[i]]
        force = wp.adjoint[link_position][w, i]
        held = wp.adjoint[link_rotation][w, i]
        torque = vec3(held[1], held[2], held[3])
        wp.adjoint[link_position][w, i] = zero
        wp.adjoint[link_rotation][w, i] = quat()
        if kind == FREE:
            m = quat_matrix(link_rotation[w, i])
            for e in range(3):
                s = _column(m, e)
                s_bar = wp.adjoint[axis][w, d + 3 + e]
                torque += wp.cross(s, angular(s_bar))
                force += wp.cross(s, linear(s_bar))
                wp.adjoint[axis][w, d + e] = vec6()
                wp.adjoint[axis][w, d + 3 + e] = vec6()
            if wp.adjoint[q]:
                r_bar = _stored_quat_adjoint(q, w, a + 3, torque)
                for e in range(3):
                    wp.adjoint[q][w, a + e] += force[e]
                for e in range(4):
                    wp.adjoint[q][w, a + 3 + e] += r_bar[e]
        else:
            b = t.link_body[i]
            first = t.link_first[i]
            parent = t.link_parent[i]
            rp = link_rotation[w, parent]
            rb = _base_rotation(first, rp, body_rotation[w, b])
            mb = quat_matrix(rb)
            if kind == HINGE:
                anchor = joint_anchor[w, j]
                m = quat_matrix(link_rotation[w, i])
                arm = m @ anchor  # from the link's place to the anchor, which stands still
                base_arm = mb @ anchor
                s_bar = wp.adjoint[axis][w, d]
                wp.adjoint[axis][w, d] = vec6()
                s = angular(axis[w, d])
                p_bar = force + wp.cross(s, linear(s_bar))
                u_bar = angular(s_bar) + wp.cross(linear(s_bar), link_position[w, i] + arm - o)
                torque -= wp.cross(arm, force)
                turn = wp.dot(s, torque)
                if wp.adjoint[q]:
                    wp.adjoint[q][w, a] += turn
                if wp.adjoint[reference]:
                    wp.adjoint[reference][w, a] -= turn
                if wp.adjoint[joint_anchor]:
                    wp.adjoint[joint_anchor][w, j] += wp.transpose(mb) @ p_bar - wp.transpose(m) @ force
                if wp.adjoint[joint_axis]:
                    turned = quat_mul(quat_conj(rb), link_rotation[w, i])
                    by_turn = _axis_of_turn(turned, wp.transpose(mb) @ torque, joint_axis[w, j])
                    wp.adjoint[joint_axis][w, j] += wp.transpose(mb) @ u_bar + by_turn
                torque += wp.cross(s, u_bar) + wp.cross(base_arm, p_bar)
                force = p_bar
            elif kind == SLIDE:
                s = linear(axis[w, d])
                u_bar = linear(wp.adjoint[axis][w, d]) + force * (q[w, a] - reference[w, a])
                wp.adjoint[axis][w, d] = vec6()
                slide = wp.dot(s, force)
                if wp.adjoint[q]:
                    wp.adjoint[q][w, a] += slide
                if wp.adjoint[reference]:
                    wp.adjoint[reference][w, a] -= slide
                if wp.adjoint[joint_axis]:
                    wp.adjoint[joint_axis][w, j] += wp.transpose(mb) @ u_bar
                torque += wp.cross(s, u_bar)
            elif kind == BALL:
                anchor = joint_anchor[w, j]
                m = quat_matrix(link_rotation[w, i])
                arm = m @ anchor
                torque -= wp.cross(arm, force)
                p_bar = force
                for e in range(3):
                    s = _column(m, e)
                    s_bar = wp.adjoint[axis][w, d + e]
                    wp.adjoint[axis][w, d + e] = vec6()
                    u_bar = angular(s_bar) + wp.cross(linear(s_bar), link_position[w, i] + arm - o)
                    p_bar += wp.cross(s, linear(s_bar))
                    torque += wp.cross(s, u_bar)
                if wp.adjoint[q]:
                    r_bar = _stored_quat_adjoint(q, w, a, wp.transpose(mb) @ torque)
                    for e in range(4):
                        wp.adjoint[q][w, a + e] += r_bar[e]
                if wp.adjoint[joint_anchor]:
                    wp.adjoint[joint_anchor][w, j] += wp.transpose(mb) @ p_bar - wp.transpose(m) @ force
                torque += wp.cross(mb @ anchor, p_bar)
                force = p_bar
            if first == 1:
                mp = quat_matrix(rp)
                if wp.adjoint[body_position]:
                    wp.adjoint[body_position][w, b] += wp.transpose(mp) @ force
                if wp.adjoint[body_rotation]:
                    wp.adjoint[body_rotation][w, b] += _quat_of_torque(body_rotation[w, b], wp.transpose(mp) @ torque)
                torque += wp.cross(mp @ body_position[w, b], force)
            wp.adjoint[link_position][w, parent] += force
            wp.adjoint[link_rotation][w, parent] += _as_quat(torque)
    wp.adjoint[link_position][w, 0] = zero
    wp.adjoint[link_rotation][w, 0] = quat()
