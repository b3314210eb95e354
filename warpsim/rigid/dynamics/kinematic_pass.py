"""The pass through a tree that gives all poses, axes, inertias and velocities; its adjoint is written by hand.

Warp's own adjoint goes through every product of quaternions and takes two to three times as long as that of
`kinematic_adjoint`.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import quat, real, vec3, vec6
from warpsim.core.spatial import quat_about, quat_matrix, quat_mul, quat_rotate, read_quat, spatial, sym_rotate
from warpsim.rigid.dynamics.custom_adjoint import replays_nothing
from warpsim.rigid.dynamics.kinematic_adjoint import (
    base_rotation,
    bodies_adjoint,
    column,
    link_adjoint,
    link_adjoints,
    torques_of_rotations,
    velocities_adjoint,
)
from warpsim.rigid.model.topology import BALL, FREE, HINGE, SLIDE, Topology


@wp.func
def _base_position(first: int, x: vec3, r: quat, offset: vec3) -> vec3:
    if first == 0:
        return x
    return x + quat_rotate(r, offset)


@wp.func
def _free_axes(r: quat, w: int, d: int, axis: wp.array2d(dtype=vec6)):
    """Axes of a free joint about its own place: along the world's axes, then about the body's."""
    m = quat_matrix(r)
    zero = vec3(real(0.0), real(0.0), real(0.0))
    axis[w, d] = spatial(zero, vec3(real(1.0), real(0.0), real(0.0)))
    axis[w, d + 1] = spatial(zero, vec3(real(0.0), real(1.0), real(0.0)))
    axis[w, d + 2] = spatial(zero, vec3(real(0.0), real(0.0), real(1.0)))
    axis[w, d + 3] = spatial(column(m, 0), zero)
    axis[w, d + 4] = spatial(column(m, 1), zero)
    axis[w, d + 5] = spatial(column(m, 2), zero)


@wp.func
def _ball_axes(r: quat, o: vec3, w: int, d: int, axis: wp.array2d(dtype=vec6)):
    """Axes of a ball joint at o: about those of the turned body."""
    m = quat_matrix(r)
    axis[w, d] = spatial(column(m, 0), wp.cross(o, column(m, 0)))
    axis[w, d + 1] = spatial(column(m, 1), wp.cross(o, column(m, 1)))
    axis[w, d + 2] = spatial(column(m, 2), wp.cross(o, column(m, 2)))


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
            origin[w, tree] = vec3(q[w, a], q[w, a + 1], q[w, a + 2])
            link_position[w, i] = origin[w, tree]
            link_rotation[w, i] = read_quat(q, w, a + 3)
            _free_axes(link_rotation[w, i], w, d, axis)
        else:
            b = t.link_body[i]
            first = t.link_first[i]
            rp = link_rotation[w, parent]
            xb = _base_position(first, link_position[w, parent], rp, body_position[w, b])
            rb = base_rotation(first, rp, body_rotation[w, b])
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
                _ball_axes(r, p - origin[w, tree], w, d, axis)
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


replays_nothing(kinematic_pass)


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
    velocities_adjoint(t, qd, axis, wp.adjoint[velocity], wp.adjoint[axis], wp.adjoint[qd], w)
    torques_of_rotations(t, link_rotation, wp.adjoint[link_rotation], w)
    bodies_adjoint(
        t,
        body_com,
        link_rotation,
        inertia,
        wp.adjoint[com],
        wp.adjoint[inertia],
        wp.adjoint[link_position],
        wp.adjoint[link_rotation],
        wp.adjoint[body_com],
        wp.adjoint[body_inertia],
        w,
    )
    bars = link_adjoints(
        wp.adjoint[link_position],
        wp.adjoint[link_rotation],
        wp.adjoint[axis],
        wp.adjoint[q],
        wp.adjoint[reference],
        wp.adjoint[joint_anchor],
        wp.adjoint[joint_axis],
        wp.adjoint[body_position],
        wp.adjoint[body_rotation],
    )
    for k in range(1, t.nlink):
        link_adjoint(
            t,
            body_position,
            body_rotation,
            joint_anchor,
            joint_axis,
            reference,
            q,
            origin,
            link_position,
            link_rotation,
            axis,
            bars,
            w,
            t.nlink - k,
        )
    wp.adjoint[link_position][w, 0] = vec3(real(0.0), real(0.0), real(0.0))
    wp.adjoint[link_rotation][w, 0] = quat()
