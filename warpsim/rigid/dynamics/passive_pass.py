"""Applied forces and wrenches, weight compensation, springs and dampers of one world, and their adjoint by hand.

There is little to compute, so what Warp's adjoint costs is finding it: it goes through every access three times.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import quat, real, vec3, vec6
from warpsim.core.spatial import SMALL_ANGLE2, angular, linear, quat_conj, quat_log, quat_mul, read_quat, spatial
from warpsim.rigid.dynamics.custom_adjoint import replays_nothing
from warpsim.rigid.model.parameters import BodyParameters, JointParameters, WorldParameters
from warpsim.rigid.model.topology import BALL, FREE, HINGE, SLIDE, Topology
from warpsim.rigid.work.pass_arrays import ForceArrays


@wp.func
def rotation_from_rest(rest: wp.array2d(dtype=real), q: wp.array2d(dtype=real), w: int, a: int) -> vec3:
    """Rotation vector from the rest orientation stored at coordinate a to that of q, in the turned frame, rad."""
    return quat_log(quat_mul(quat_conj(read_quat(rest, w, a)), read_quat(q, w, a)))


@wp.func
def passive_pass(
    # topology
    t: Topology,
    # parameters
    body: BodyParameters,
    joint: JointParameters,
    world: WorldParameters,
    implicit_damping: int,
    # state, control
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    joint_force: wp.array2d(dtype=real),
    applied_wrench: wp.array2d(dtype=vec6),
    # work in
    com: wp.array2d(dtype=vec3),
    # work out
    out: ForceArrays,
    w: int,
):
    """Writes what `passive` says, but for tendons and drag."""
    h = world.timestep[w]
    for b in range(1, t.nbody):
        f = applied_wrench[w, b]
        force = vec3(f[0], f[1], f[2]) - world.gravity[w] * (body.mass[w, b] * body.gravity_compensation[w, b])
        out.wrench[w, b] = spatial(vec3(f[3], f[4], f[5]) + wp.cross(com[w, b], force), force)
    for i in range(1, t.nlink):
        kind = t.link_kind[i]
        d = t.link_dof[i]
        a = t.link_q[i]
        j = t.link_joint[i]
        if kind == HINGE or kind == SLIDE:
            spring = joint.stiffness[w, j] * (q[w, a] - joint.rest[w, a])
            out.dof_force[w, d] = joint_force[w, d] - joint.damping[w, d] * qd[w, d] - spring
        elif kind == BALL:
            k = joint.stiffness[w, j]
            turn = rotation_from_rest(joint.rest, q, w, a)
            for e in range(3):
                out.dof_force[w, d + e] = joint_force[w, d + e] - joint.damping[w, d + e] * qd[w, d + e] - k * turn[e]
        elif kind == FREE:
            k = joint.stiffness[w, j]
            turn = rotation_from_rest(joint.rest, q, w, a + 3)
            for e in range(3):
                shift = q[w, a + e] - joint.rest[w, a + e]
                out.dof_force[w, d + e] = joint_force[w, d + e] - joint.damping[w, d + e] * qd[w, d + e] - k * shift
                r = d + 3 + e
                out.dof_force[w, r] = joint_force[w, r] - joint.damping[w, r] * qd[w, r] - k * turn[e]
    for d in range(t.nv):
        out.dof_integrator[w, d] = h * joint.damping[w, d] * real(implicit_damping)


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


replays_nothing(passive_pass)


@wp.func
def _wrenches_adjoint(
    t: Topology,
    body: BodyParameters,
    world: WorldParameters,
    applied_wrench: wp.array2d(dtype=vec6),
    com: wp.array2d(dtype=vec3),
    body_bar: BodyParameters,
    world_bar: WorldParameters,
    applied_wrench_bar: wp.array2d(dtype=vec6),
    com_bar: wp.array2d(dtype=vec3),
    out_bar: ForceArrays,
    w: int,
):
    """Of applied wrenches and of weight that is compensated."""
    g = world.gravity[w]
    for b in range(1, t.nbody):
        twist = out_bar.wrench[w, b]
        out_bar.wrench[w, b] = vec6()
        f = applied_wrench[w, b]
        held = body.mass[w, b] * body.gravity_compensation[w, b]
        force = vec3(f[0], f[1], f[2]) - held * g
        force_bar = linear(twist) + wp.cross(angular(twist), com[w, b])
        weight_bar = wp.dot(g, force_bar)
        com_bar[w, b] += wp.cross(force, angular(twist))
        if applied_wrench_bar:
            applied_wrench_bar[w, b] += spatial(force_bar, angular(twist))
        if world_bar.gravity:
            world_bar.gravity[w] -= held * force_bar
        if body_bar.mass:
            body_bar.mass[w, b] -= body.gravity_compensation[w, b] * weight_bar
        if body_bar.gravity_compensation:
            body_bar.gravity_compensation[w, b] -= body.mass[w, b] * weight_bar


@wp.func
def _springs_adjoint(
    t: Topology,
    joint: JointParameters,
    q: wp.array2d(dtype=real),
    joint_bar: JointParameters,
    q_bar: wp.array2d(dtype=real),
    out_bar: ForceArrays,
    w: int,
):
    """Of the springs of joints."""
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
                spring_bar = -out_bar.dof_force[w, d + e]
                if joint_bar.stiffness:
                    joint_bar.stiffness[w, j] += spring_bar * (q[w, a + e] - joint.rest[w, a + e])
                if q_bar:
                    q_bar[w, a + e] += spring_bar * joint.stiffness[w, j]
                if joint_bar.rest:
                    joint_bar.rest[w, a + e] -= spring_bar * joint.stiffness[w, j]
        if kind == BALL or kind == FREE:
            first = a
            dof = d
            if kind == FREE:
                first = a + 3
                dof = d + 3
            turn = rotation_from_rest(joint.rest, q, w, first)
            by_dof = out_bar.dof_force
            spring_bars = vec3(-by_dof[w, dof], -by_dof[w, dof + 1], -by_dof[w, dof + 2])
            if joint_bar.stiffness:
                joint_bar.stiffness[w, j] += wp.dot(spring_bars, turn)
            turn_bar = joint.stiffness[w, j] * spring_bars
            across = real(0.5) * wp.cross(turn, turn_bar)
            bent = turn_bar + _bending(turn) * wp.cross(turn, wp.cross(turn, turn_bar))
            if q_bar:
                numbers = _turned_number_adjoint(q, w, first, bent - across)
                for e in range(4):
                    q_bar[w, first + e] += numbers[e]
            if joint_bar.rest:
                rest_numbers = _turned_number_adjoint(joint.rest, w, first, bent + across)
                for e in range(4):
                    joint_bar.rest[w, first + e] -= rest_numbers[e]


@wp.func
def _dampers_adjoint(
    t: Topology,
    joint: JointParameters,
    world: WorldParameters,
    implicit_damping: int,
    qd: wp.array2d(dtype=real),
    joint_bar: JointParameters,
    world_bar: WorldParameters,
    qd_bar: wp.array2d(dtype=real),
    joint_force_bar: wp.array2d(dtype=real),
    out_bar: ForceArrays,
    w: int,
):
    """Of applied joint forces and of dampers, which use the dofs' adjoints up."""
    h = world.timestep[w]
    for d in range(t.nv):
        force_bar_d = out_bar.dof_force[w, d]
        implicit_bar = out_bar.dof_integrator[w, d] * real(implicit_damping)
        out_bar.dof_force[w, d] = real(0.0)
        out_bar.dof_integrator[w, d] = real(0.0)
        if joint_force_bar:
            joint_force_bar[w, d] += force_bar_d
        if qd_bar:
            qd_bar[w, d] -= force_bar_d * joint.damping[w, d]
        if joint_bar.damping:
            joint_bar.damping[w, d] += h * implicit_bar - force_bar_d * qd[w, d]
        if world_bar.timestep:
            world_bar.timestep[w] += joint.damping[w, d] * implicit_bar


@wp.func_grad(passive_pass)
def _adjoint_passive_pass(
    t: Topology,
    body: BodyParameters,
    joint: JointParameters,
    world: WorldParameters,
    implicit_damping: int,
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    joint_force: wp.array2d(dtype=real),
    applied_wrench: wp.array2d(dtype=vec6),
    com: wp.array2d(dtype=vec3),
    out: ForceArrays,
    w: int,
):
    """Adjoints of what the pass wrote are used up: zero afterwards, as Warp leaves those of arrays it has written."""
    joint_bar = wp.adjoint[joint]
    world_bar = wp.adjoint[world]
    out_bar = wp.adjoint[out]
    applied_wrench_bar = wp.adjoint[applied_wrench]
    _wrenches_adjoint(
        t,
        body,
        world,
        applied_wrench,
        com,
        wp.adjoint[body],
        world_bar,
        applied_wrench_bar,
        wp.adjoint[com],
        out_bar,
        w,
    )
    _springs_adjoint(t, joint, q, joint_bar, wp.adjoint[q], out_bar, w)
    _dampers_adjoint(
        t, joint, world, implicit_damping, qd, joint_bar, world_bar, wp.adjoint[qd], wp.adjoint[joint_force], out_bar, w
    )
