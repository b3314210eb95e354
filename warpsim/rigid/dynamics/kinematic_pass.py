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
    LinkAdjoints,
    base_rotation,
    bodies_adjoint,
    column,
    link_adjoint,
    torques_of_rotations,
    velocities_adjoint,
)
from warpsim.rigid.model.parameters import BodyParameters, JointParameters
from warpsim.rigid.model.topology import BALL, FREE, HINGE, SLIDE, Topology
from warpsim.rigid.work.pass_arrays import MotionArrays


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
    body: BodyParameters,
    joint: JointParameters,
    # state
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    # work out
    motion: MotionArrays,
    w: int,
):
    """All of world w; see `Work` for what is written."""
    motion.link_position[w, 0] = vec3(real(0.0), real(0.0), real(0.0))
    motion.link_rotation[w, 0] = quat(real(1.0), real(0.0), real(0.0), real(0.0))
    for i in range(1, t.nlink):
        kind = t.link_kind[i]
        parent = t.link_parent[i]
        j = t.link_joint[i]
        a = t.link_q[i]
        d = t.link_dof[i]
        tree = t.link_tree[i]
        if kind == FREE:
            motion.origin[w, tree] = vec3(q[w, a], q[w, a + 1], q[w, a + 2])
            motion.link_position[w, i] = motion.origin[w, tree]
            motion.link_rotation[w, i] = read_quat(q, w, a + 3)
            _free_axes(motion.link_rotation[w, i], w, d, motion.axis)
        else:
            b = t.link_body[i]
            first = t.link_first[i]
            rp = motion.link_rotation[w, parent]
            xb = _base_position(first, motion.link_position[w, parent], rp, body.position[w, b])
            rb = base_rotation(first, rp, body.rotation[w, b])
            if t.link_root[i] == 1:
                motion.origin[w, tree] = xb
            if kind == HINGE:
                anchor = joint.anchor[w, j]
                u = joint.axis[w, j]
                p = xb + quat_rotate(rb, anchor)
                s = quat_rotate(rb, u)
                r = quat_mul(rb, quat_about(u, q[w, a] - joint.reference[w, a]))
                motion.link_rotation[w, i] = r
                motion.link_position[w, i] = p - quat_rotate(r, anchor)
                motion.axis[w, d] = spatial(s, wp.cross(p - motion.origin[w, tree], s))
            elif kind == SLIDE:
                s = quat_rotate(rb, joint.axis[w, j])
                motion.link_rotation[w, i] = rb
                motion.link_position[w, i] = xb + s * (q[w, a] - joint.reference[w, a])
                motion.axis[w, d] = spatial(vec3(real(0.0), real(0.0), real(0.0)), s)
            elif kind == BALL:
                anchor = joint.anchor[w, j]
                p = xb + quat_rotate(rb, anchor)
                r = quat_mul(rb, read_quat(q, w, a))
                motion.link_rotation[w, i] = r
                motion.link_position[w, i] = p - quat_rotate(r, anchor)
                _ball_axes(r, p - motion.origin[w, tree], w, d, motion.axis)
            else:
                motion.link_rotation[w, i] = rb
                motion.link_position[w, i] = xb
    for b in range(1, t.nbody):
        i = t.body_link[b]
        r = motion.link_rotation[w, i]
        center = motion.link_position[w, i] + quat_rotate(r, body.com[w, b])
        motion.com[w, b] = center - motion.origin[w, t.body_tree[b]]
        motion.inertia[w, b] = sym_rotate(quat_matrix(r), body.inertia[w, b])
    motion.velocity[w, 0] = vec6()
    for d in range(t.nv):
        motion.velocity[w, d + 1] = motion.velocity[w, t.dof_prev[d]] + motion.axis[w, d] * qd[w, d]


replays_nothing(kinematic_pass)


@wp.func_grad(kinematic_pass)
def _adjoint_kinematic_pass(
    t: Topology,
    body: BodyParameters,
    joint: JointParameters,
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    motion: MotionArrays,
    w: int,
):
    """From the last dof to the first, from the bodies to their links, from the last link to the first.

    Adjoints of what the pass wrote are used up: zero afterwards, as Warp leaves those of any array it has written.
    """
    bars = LinkAdjoints()
    bars.body = wp.adjoint[body]
    bars.joint = wp.adjoint[joint]
    bars.q = wp.adjoint[q]
    bars.motion = wp.adjoint[motion]
    velocities_adjoint(t, qd, motion, bars, wp.adjoint[qd], w)
    torques_of_rotations(t, motion, bars, w)
    bodies_adjoint(t, body, motion, bars, w)
    for k in range(1, t.nlink):
        link_adjoint(t, body, joint, q, motion, bars, w, t.nlink - k)
    bars.motion.link_position[w, 0] = vec3(real(0.0), real(0.0), real(0.0))
    bars.motion.link_rotation[w, 0] = quat()
