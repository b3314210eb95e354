"""Newton–Euler inverse dynamics of one world, and its adjoint, written by hand.

The adjoint λ of the residual is a set of rates: λ·r is the power of all forces if the dofs moved at λ. So the adjoint
of the force on a body is the twist that λ gives it, and the rest follows body by body from the equations of one body.
Adjoints of accelerations are then handed from dof to dof inwards, as forces are in the forward pass.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real, vec3, vec6
from warpsim.core.spatial import angular, linear, motion_cross, spatial, sym_mul
from warpsim.rigid.dynamics.custom_adjoint import replays_nothing
from warpsim.rigid.model.parameters import BodyParameters, JointParameters, WorldParameters
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.pass_arrays import ForceArrays, MotionArrays, ResidualArrays


@wp.func
def newton_euler_pass(
    # topology, parameters
    t: Topology,
    body: BodyParameters,
    joint: JointParameters,
    world: WorldParameters,
    # state and the acceleration it is evaluated at
    qd: wp.array2d(dtype=real),
    qdd: wp.array2d(dtype=real),
    # work in
    motion: MotionArrays,
    force: ForceArrays,
    # work out
    out: ResidualArrays,
    w: int,
):
    """Writes the residual of the equation of motion, and the accelerations and forces it is made of."""
    # Gravity acts as an upward acceleration of the world.
    out.acceleration[w, 0] = spatial(vec3(real(0.0), real(0.0), real(0.0)), -world.gravity[w])
    for d in range(t.nv):
        s = motion.axis[w, d]
        carried = motion_cross(motion.velocity[w, t.dof_base[d]], s) * qd[w, d]
        out.acceleration[w, d + 1] = out.acceleration[w, t.dof_prev[d]] + carried + s * qdd[w, d]
    for b in range(1, t.nbody):
        k = t.body_last_dof[b]
        v = motion.velocity[w, k]
        a = out.acceleration[w, k]
        omega = angular(v)
        r = motion.com[w, b]
        i = motion.inertia[w, b]
        v_com = linear(v) + wp.cross(omega, r)
        a_com = linear(a) + wp.cross(angular(a), r) + wp.cross(omega, v_com)
        push = body.mass[w, b] * a_com
        torque = sym_mul(i, angular(a)) + wp.cross(omega, sym_mul(i, omega))
        out.body_force[w, b] = spatial(torque + wp.cross(r, push), push) - force.wrench[w, b]
    for i in range(1, t.nbody):
        b = t.nbody - i
        p = t.body_parent[b]
        if p > 0:
            out.body_force[w, p] += out.body_force[w, b]
    for d in range(t.nv):
        diagonal = (joint.armature[w, d] + force.dof_implicit[w, d] + force.dof_integrator[w, d]) * qdd[w, d]
        power = wp.dot(motion.axis[w, d], out.body_force[w, t.dof_body[d]])
        out.residual[w, d] = power + diagonal - force.dof_force[w, d]


@wp.func
def _symmetric_product(x: vec3, y: vec3) -> vec6:
    """Adjoint of a symmetric matrix A, as (xx, yy, zz, xy, xz, yz), in x·(A y)."""
    return vec6(
        x[0] * y[0],
        x[1] * y[1],
        x[2] * y[2],
        x[0] * y[1] + x[1] * y[0],
        x[0] * y[2] + x[2] * y[0],
        x[1] * y[2] + x[2] * y[1],
    )


replays_nothing(newton_euler_pass)


@wp.func
def _residual_adjoint(
    t: Topology,
    joint: JointParameters,
    qdd: wp.array2d(dtype=real),
    motion: MotionArrays,
    force: ForceArrays,
    out: ResidualArrays,
    joint_bar: JointParameters,
    qdd_bar: wp.array2d(dtype=real),
    motion_bar: MotionArrays,
    force_bar: ForceArrays,
    out_bar: ResidualArrays,
    w: int,
):
    """Of the residual: twists of bodies, and whatever acts on a dof."""
    for d in range(t.nv):
        rate = out_bar.residual[w, d]
        out_bar.residual[w, d] = real(0.0)
        b = t.dof_body[d]
        out_bar.body_force[w, b] += motion.axis[w, d] * rate
        motion_bar.axis[w, d] += out.body_force[w, b] * rate
        if force_bar.dof_force:
            force_bar.dof_force[w, d] -= rate
        diagonal_bar = rate * qdd[w, d]
        if joint_bar.armature:
            joint_bar.armature[w, d] += diagonal_bar
        if force_bar.dof_implicit:
            force_bar.dof_implicit[w, d] += diagonal_bar
        if force_bar.dof_integrator:
            force_bar.dof_integrator[w, d] += diagonal_bar
        if qdd_bar:
            qdd_bar[w, d] += rate * (joint.armature[w, d] + force.dof_implicit[w, d] + force.dof_integrator[w, d])


@wp.func
def _bodies_adjoint(
    t: Topology,
    body: BodyParameters,
    motion: MotionArrays,
    out: ResidualArrays,
    body_bar: BodyParameters,
    motion_bar: MotionArrays,
    force_bar: ForceArrays,
    out_bar: ResidualArrays,
    w: int,
):
    """Of the equations of motion of the bodies, with twists handed outwards."""
    for b in range(1, t.nbody):
        parent = t.body_parent[b]
        if parent > 0:
            out_bar.body_force[w, b] += out_bar.body_force[w, parent]
        twist = out_bar.body_force[w, b]
        p = angular(twist)  # adjoint of the torque about the reference point
        k = t.body_last_dof[b]
        v = motion.velocity[w, k]
        a = out.acceleration[w, k]
        omega = angular(v)
        alpha = angular(a)
        r = motion.com[w, b]
        i = motion.inertia[w, b]
        v_com = linear(v) + wp.cross(omega, r)
        a_com = linear(a) + wp.cross(alpha, r) + wp.cross(omega, v_com)
        push_bar = linear(twist) + wp.cross(p, r)
        a_com_bar = body.mass[w, b] * push_bar
        v_com_bar = wp.cross(a_com_bar, omega)
        momentum = sym_mul(i, omega)
        momentum_bar = wp.cross(p, omega)
        if force_bar.wrench:
            force_bar.wrench[w, b] -= twist
        if body_bar.mass:
            body_bar.mass[w, b] += wp.dot(push_bar, a_com)
        com_bar = body.mass[w, b] * wp.cross(a_com, p) + wp.cross(a_com_bar, alpha) + wp.cross(v_com_bar, omega)
        motion_bar.com[w, b] += com_bar
        motion_bar.inertia[w, b] += _symmetric_product(p, alpha) + _symmetric_product(momentum_bar, omega)
        out_bar.acceleration[w, k] += spatial(sym_mul(i, p) + wp.cross(r, a_com_bar), a_com_bar)
        if motion_bar.velocity:
            turning = (
                wp.cross(v_com, a_com_bar) + wp.cross(r, v_com_bar) + wp.cross(momentum, p) + sym_mul(i, momentum_bar)
            )
            motion_bar.velocity[w, k] += spatial(turning, v_com_bar)
    for b in range(1, t.nbody):
        out_bar.body_force[w, b] = vec6()


@wp.func
def _accelerations_adjoint(
    t: Topology,
    qd: wp.array2d(dtype=real),
    qdd: wp.array2d(dtype=real),
    motion: MotionArrays,
    world_bar: WorldParameters,
    qd_bar: wp.array2d(dtype=real),
    qdd_bar: wp.array2d(dtype=real),
    motion_bar: MotionArrays,
    out_bar: ResidualArrays,
    w: int,
):
    """Of the accelerations, handed inwards."""
    for k in range(t.nv):
        d = t.nv - 1 - k
        a_bar = out_bar.acceleration[w, d + 1]
        out_bar.acceleration[w, d + 1] = vec6()
        out_bar.acceleration[w, t.dof_prev[d]] += a_bar
        s = motion.axis[w, d]
        v = motion.velocity[w, t.dof_base[d]]
        if qd_bar:
            qd_bar[w, d] += wp.dot(a_bar, motion_cross(v, s))
        if qdd_bar:
            qdd_bar[w, d] += wp.dot(a_bar, s)
        x = angular(a_bar) * qd[w, d]  # adjoint of v × s, in two halves
        y = linear(a_bar) * qd[w, d]
        by_axis = spatial(wp.cross(x, angular(v)) + wp.cross(y, linear(v)), wp.cross(y, angular(v)))
        motion_bar.axis[w, d] += a_bar * qdd[w, d] + by_axis
        if motion_bar.velocity:
            by_velocity = spatial(wp.cross(angular(s), x) + wp.cross(linear(s), y), wp.cross(angular(s), y))
            motion_bar.velocity[w, t.dof_base[d]] += by_velocity
    if world_bar.gravity:
        world_bar.gravity[w] -= linear(out_bar.acceleration[w, 0])
    out_bar.acceleration[w, 0] = vec6()


@wp.func_grad(newton_euler_pass)
def _adjoint_newton_euler_pass(
    t: Topology,
    body: BodyParameters,
    joint: JointParameters,
    world: WorldParameters,
    qd: wp.array2d(dtype=real),
    qdd: wp.array2d(dtype=real),
    motion: MotionArrays,
    force: ForceArrays,
    out: ResidualArrays,
    w: int,
):
    """Twists of λ outwards, body by body, then accelerations inwards; by a·(b×c) = b·(c×a) = c·(a×b) throughout.

    Adjoints of what the pass wrote are used up: zero afterwards, as Warp leaves those of any array it has written.
    """
    motion_bar = wp.adjoint[motion]
    force_bar = wp.adjoint[force]
    out_bar = wp.adjoint[out]
    qdd_bar = wp.adjoint[qdd]
    _residual_adjoint(t, joint, qdd, motion, force, out, wp.adjoint[joint], qdd_bar, motion_bar, force_bar, out_bar, w)
    _bodies_adjoint(t, body, motion, out, wp.adjoint[body], motion_bar, force_bar, out_bar, w)
    _accelerations_adjoint(t, qd, qdd, motion, wp.adjoint[world], wp.adjoint[qd], qdd_bar, motion_bar, out_bar, w)
