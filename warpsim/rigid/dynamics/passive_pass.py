"""Applied forces and wrenches, weight compensation, springs and dampers of one world, and their adjoint by hand.

There is little to compute, so what Warp's adjoint costs is finding it: it goes through every access three times.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import quat, real, vec3, vec6
from warpsim.core.spatial import SMALL_ANGLE2, angular, linear, quat_conj, quat_log, quat_mul, read_quat, spatial
from warpsim.rigid.model.topology import BALL, FREE, HINGE, SLIDE, Topology


@wp.func
def rotation_from_rest(rest: wp.array2d(dtype=real), q: wp.array2d(dtype=real), w: int, a: int) -> vec3:
    """Rotation vector from the rest orientation stored at coordinate a to that of q, in the turned frame, rad."""
    return quat_log(quat_mul(quat_conj(read_quat(rest, w, a)), read_quat(q, w, a)))


@wp.func
def passive_pass(
    # topology
    t: Topology,
    # parameters
    mass: wp.array2d(dtype=real),
    gravity_compensation: wp.array2d(dtype=real),
    gravity: wp.array(dtype=vec3),
    timestep: wp.array(dtype=real),
    stiffness: wp.array2d(dtype=real),
    rest: wp.array2d(dtype=real),
    damping: wp.array2d(dtype=real),
    implicit_damping: int,
    # state, control
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    joint_force: wp.array2d(dtype=real),
    applied_wrench: wp.array2d(dtype=vec6),
    # work in
    com: wp.array2d(dtype=vec3),
    # work out
    wrench: wp.array2d(dtype=vec6),
    dof_force: wp.array2d(dtype=real),
    dof_integrator: wp.array2d(dtype=real),
    w: int,
):
    """Writes what `passive` says, but for tendons and drag."""
    h = timestep[w]
    for b in range(1, t.nbody):
        f = applied_wrench[w, b]
        force = vec3(f[0], f[1], f[2]) - gravity[w] * (mass[w, b] * gravity_compensation[w, b])
        wrench[w, b] = spatial(vec3(f[3], f[4], f[5]) + wp.cross(com[w, b], force), force)
    for i in range(1, t.nlink):
        kind = t.link_kind[i]
        d = t.link_dof[i]
        a = t.link_q[i]
        j = t.link_joint[i]
        if kind == HINGE or kind == SLIDE:
            spring = stiffness[w, j] * (q[w, a] - rest[w, a])
            dof_force[w, d] = joint_force[w, d] - damping[w, d] * qd[w, d] - spring
        elif kind == BALL:
            k = stiffness[w, j]
            turn = rotation_from_rest(rest, q, w, a)
            for e in range(3):
                dof_force[w, d + e] = joint_force[w, d + e] - damping[w, d + e] * qd[w, d + e] - k * turn[e]
        elif kind == FREE:
            k = stiffness[w, j]
            turn = rotation_from_rest(rest, q, w, a + 3)
            for e in range(3):
                shift = q[w, a + e] - rest[w, a + e]
                dof_force[w, d + e] = joint_force[w, d + e] - damping[w, d + e] * qd[w, d + e] - k * shift
                r = d + 3 + e
                dof_force[w, r] = joint_force[w, r] - damping[w, r] * qd[w, r] - k * turn[e]
    for d in range(t.nv):
        dof_integrator[w, d] = h * damping[w, d] * real(implicit_damping)


@wp.func
def _bending(v: vec3) -> real:
    """c in the inverse Jacobian I ± ½[v] + c[v]² of the rotation vector v: (1 − ½θ cot ½θ)/θ², smooth at 0."""
    s = wp.dot(v, v)
    if s < SMALL_ANGLE2:
        return real(1.0) / real(12.0) + s * (real(1.0) / real(720.0) + s / real(30240.0))
    half = real(0.5) * wp.sqrt(s)
    return (real(1.0) - half * wp.cos(half) / wp.sin(half)) / s


@wp.func
def _turned_number_adjoint(p: wp.array2d(dtype=real), w: int, i: int, turn: vec3) -> quat:
    """Adjoint of the four numbers in p from i, given that of the turn of their quaternion in its own frame."""
    stored = quat(p[w, i], p[w, i + 1], p[w, i + 2], p[w, i + 3])
    square = wp.dot(stored, stored)
    return (real(2.0) / square) * quat_mul(stored, quat(real(0.0), turn[0], turn[1], turn[2]))


@wp.func_replay(passive_pass)
def _replay_passive_pass(
    t: Topology,
    mass: wp.array2d(dtype=real),
    gravity_compensation: wp.array2d(dtype=real),
    gravity: wp.array(dtype=vec3),
    timestep: wp.array(dtype=real),
    stiffness: wp.array2d(dtype=real),
    rest: wp.array2d(dtype=real),
    damping: wp.array2d(dtype=real),
    implicit_damping: int,
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    joint_force: wp.array2d(dtype=real),
    applied_wrench: wp.array2d(dtype=vec6),
    com: wp.array2d(dtype=vec3),
    wrench: wp.array2d(dtype=vec6),
    dof_force: wp.array2d(dtype=real),
    dof_integrator: wp.array2d(dtype=real),
    w: int,
):
    """Nothing: the adjoint finds everything where the pass has left it."""


@wp.func_grad(passive_pass)
def _adjoint_passive_pass(
    t: Topology,
    mass: wp.array2d(dtype=real),
    gravity_compensation: wp.array2d(dtype=real),
    gravity: wp.array(dtype=vec3),
    timestep: wp.array(dtype=real),
    stiffness: wp.array2d(dtype=real),
    rest: wp.array2d(dtype=real),
    damping: wp.array2d(dtype=real),
    implicit_damping: int,
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    joint_force: wp.array2d(dtype=real),
    applied_wrench: wp.array2d(dtype=vec6),
    com: wp.array2d(dtype=vec3),
    wrench: wp.array2d(dtype=vec6),
    dof_force: wp.array2d(dtype=real),
    dof_integrator: wp.array2d(dtype=real),
    w: int,
):
    """Adjoints of what the pass wrote are used up: zero afterwards, as Warp leaves those of arrays it has written."""
    h = timestep[w]
    g = gravity[w]
    for b in range(1, t.nbody):
        twist = wp.adjoint[wrench][w, b]
        wp.adjoint[wrench][w, b] = vec6()
        f = applied_wrench[w, b]
        held = mass[w, b] * gravity_compensation[w, b]
        force = vec3(f[0], f[1], f[2]) - held * g
        force_bar = linear(twist) + wp.cross(angular(twist), com[w, b])
        weight_bar = wp.dot(g, force_bar)
        wp.adjoint[com][w, b] += wp.cross(force, angular(twist))
        if wp.adjoint[applied_wrench]:
            wp.adjoint[applied_wrench][w, b] += spatial(force_bar, angular(twist))
        if wp.adjoint[gravity]:
            wp.adjoint[gravity][w] -= held * force_bar
        if wp.adjoint[mass]:
            wp.adjoint[mass][w, b] -= gravity_compensation[w, b] * weight_bar
        if wp.adjoint[gravity_compensation]:
            wp.adjoint[gravity_compensation][w, b] -= mass[w, b] * weight_bar

    for i in range(1, t.nlink):
        kind = t.link_kind[i]
        d = t.link_dof[i]
        a = t.link_q[i]
        j = t.link_joint[i]
        if kind == HINGE or kind == SLIDE or kind == FREE:
            straight = 1
            if kind == FREE:
                straight = 3
            for e in range(straight):
                spring_bar = -wp.adjoint[dof_force][w, d + e]
                if wp.adjoint[stiffness]:
                    wp.adjoint[stiffness][w, j] += spring_bar * (q[w, a + e] - rest[w, a + e])
                if wp.adjoint[q]:
                    wp.adjoint[q][w, a + e] += spring_bar * stiffness[w, j]
                if wp.adjoint[rest]:
                    wp.adjoint[rest][w, a + e] -= spring_bar * stiffness[w, j]
        if kind == BALL or kind == FREE:
            first = a
            dof = d
            if kind == FREE:
                first = a + 3
                dof = d + 3
            turn = rotation_from_rest(rest, q, w, first)
            spring_bars = vec3(
                -wp.adjoint[dof_force][w, dof], -wp.adjoint[dof_force][w, dof + 1], -wp.adjoint[dof_force][w, dof + 2]
            )
            if wp.adjoint[stiffness]:
                wp.adjoint[stiffness][w, j] += wp.dot(spring_bars, turn)
            turn_bar = stiffness[w, j] * spring_bars
            across = real(0.5) * wp.cross(turn, turn_bar)
            bent = turn_bar + _bending(turn) * wp.cross(turn, wp.cross(turn, turn_bar))
            if wp.adjoint[q]:
                q_bar = _turned_number_adjoint(q, w, first, bent - across)
                for e in range(4):
                    wp.adjoint[q][w, first + e] += q_bar[e]
            if wp.adjoint[rest]:
                rest_bar = _turned_number_adjoint(rest, w, first, bent + across)
                for e in range(4):
                    wp.adjoint[rest][w, first + e] -= rest_bar[e]

    for d in range(t.nv):
        force_bar_d = wp.adjoint[dof_force][w, d]
        implicit_bar = wp.adjoint[dof_integrator][w, d] * real(implicit_damping)
        wp.adjoint[dof_force][w, d] = real(0.0)
        wp.adjoint[dof_integrator][w, d] = real(0.0)
        if wp.adjoint[joint_force]:
            wp.adjoint[joint_force][w, d] += force_bar_d
        if wp.adjoint[qd]:
            wp.adjoint[qd][w, d] -= force_bar_d * damping[w, d]
        if wp.adjoint[damping]:
            wp.adjoint[damping][w, d] += h * implicit_bar - force_bar_d * qd[w, d]
        if wp.adjoint[timestep]:
            wp.adjoint[timestep][w] += damping[w, d] * implicit_bar
