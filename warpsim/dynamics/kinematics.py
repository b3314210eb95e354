"""Forward kinematics: coordinates → frames of links, motion axes of dofs, centres and inertias of bodies, velocities.

All spatial quantities of a tree are taken about its reference point, the place of its first link. Everything built from
them (mass matrix, forces, point velocities) is independent of that choice, so the point carries no gradient; near the
robot it keeps the numbers small however far the robot has travelled.
"""

from __future__ import annotations

import warp as wp

from warpsim.model.model import Model
from warpsim.model.parameters import BodyParameters, JointParameters
from warpsim.model.state import Motion, State
from warpsim.model.topology import BALL, FREE, HINGE, SLIDE, Topology
from warpsim.precision import mat33, quat, real, vec3, vec6
from warpsim.spatial import (
    quat_about,
    quat_matrix,
    quat_mul,
    quat_rotate,
    read_quat,
    spatial,
    sym_rotate,
)
from warpsim.stages import stage


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


@wp.kernel
def _kinematics_kernel(
    # topology, parameters
    t: Topology,
    body: BodyParameters,
    joint: JointParameters,
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
):
    w = wp.tid()
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
            # x − origin is zero in value but not in derivative
            o = x - origin[w, tree]
            m = quat_matrix(r)
            zero = vec3(real(0.0), real(0.0), real(0.0))
            axis[w, d] = spatial(zero, vec3(real(1.0), real(0.0), real(0.0)))
            axis[w, d + 1] = spatial(zero, vec3(real(0.0), real(1.0), real(0.0)))
            axis[w, d + 2] = spatial(zero, vec3(real(0.0), real(0.0), real(1.0)))
            axis[w, d + 3] = spatial(_column(m, 0), wp.cross(o, _column(m, 0)))
            axis[w, d + 4] = spatial(_column(m, 1), wp.cross(o, _column(m, 1)))
            axis[w, d + 5] = spatial(_column(m, 2), wp.cross(o, _column(m, 2)))
        else:
            b = t.link_body[i]
            first = t.link_first[i]
            rp = link_rotation[w, parent]
            xb = _base_position(first, link_position[w, parent], rp, body.position[w, b])
            rb = _base_rotation(first, rp, body.rotation[w, b])
            if t.link_root[i] == 1:
                origin[w, tree] = xb
            if kind == HINGE:
                anchor = joint.anchor[w, j]
                u = joint.axis[w, j]
                p = xb + quat_rotate(rb, anchor)
                s = quat_rotate(rb, u)
                r = quat_mul(rb, quat_about(u, q[w, a] - joint.reference[w, a]))
                link_rotation[w, i] = r
                link_position[w, i] = p - quat_rotate(r, anchor)
                axis[w, d] = spatial(s, wp.cross(p - origin[w, tree], s))
            elif kind == SLIDE:
                s = quat_rotate(rb, joint.axis[w, j])
                link_rotation[w, i] = rb
                link_position[w, i] = xb + s * (q[w, a] - joint.reference[w, a])
                axis[w, d] = spatial(vec3(real(0.0), real(0.0), real(0.0)), s)
            elif kind == BALL:
                anchor = joint.anchor[w, j]
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
        com[w, b] = link_position[w, i] + quat_rotate(r, body.com[w, b]) - origin[w, t.body_tree[b]]
        inertia[w, b] = sym_rotate(quat_matrix(r), body.inertia[w, b])
    velocity[w, 0] = vec6()
    for d in range(t.nv):
        velocity[w, d + 1] = velocity[w, t.dof_prev[d]] + axis[w, d] * qd[w, d]


@stage
def kinematics(m: Model, s: State, work: Motion) -> None:
    """Poses, motion axes, centres, inertias and velocities from `s.q` and `s.qd`; see `Work` for what is written."""
    wp.launch(
        _kinematics_kernel,
        dim=m.worlds,
        inputs=[m.topology, m.body, m.joint, s.q, s.qd],
        outputs=[
            work.origin,
            work.link_position,
            work.link_rotation,
            work.axis,
            work.com,
            work.inertia,
            work.velocity,
        ],
        device=m.device,
    )


@wp.kernel
def _twist_kernel(
    t: Topology, axis: wp.array2d(dtype=vec6), rate: wp.array2d(dtype=real), twist: wp.array2d(dtype=vec6)
):
    w = wp.tid()
    twist[w, 0] = vec6()
    for d in range(t.nv):
        twist[w, d + 1] = twist[w, t.dof_prev[d]] + axis[w, d] * rate[w, d]


def twists_of_rates(m: Model, rates: wp.array, axis: wp.array, twist: wp.array) -> None:
    """Twists (W, nv + 1) of all dofs' frames if `rates` (W, nv) were the velocities of the dofs."""
    wp.launch(_twist_kernel, dim=m.worlds, inputs=[m.topology, axis, rates], outputs=[twist], device=m.device)
