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
from warpsim.rigid.model.topology import Topology


@wp.func
def newton_euler_pass(
    # topology, parameters
    t: Topology,
    mass: wp.array2d(dtype=real),
    armature: wp.array2d(dtype=real),
    gravity: wp.array(dtype=vec3),
    # state and the acceleration it is evaluated at
    qd: wp.array2d(dtype=real),
    qdd: wp.array2d(dtype=real),
    # work in
    axis: wp.array2d(dtype=vec6),
    com: wp.array2d(dtype=vec3),
    inertia: wp.array2d(dtype=vec6),
    velocity: wp.array2d(dtype=vec6),
    wrench: wp.array2d(dtype=vec6),
    dof_force: wp.array2d(dtype=real),
    dof_implicit: wp.array2d(dtype=real),
    dof_integrator: wp.array2d(dtype=real),
    # work out
    acceleration: wp.array2d(dtype=vec6),
    body_force: wp.array2d(dtype=vec6),
    residual: wp.array2d(dtype=real),
    w: int,
):
    """Writes the residual of the equation of motion, and the accelerations and forces it is made of."""
    # Gravity acts as an upward acceleration of the world.
    acceleration[w, 0] = spatial(vec3(real(0.0), real(0.0), real(0.0)), -gravity[w])
    for d in range(t.nv):
        s = axis[w, d]
        carried = motion_cross(velocity[w, t.dof_base[d]], s) * qd[w, d]
        acceleration[w, d + 1] = acceleration[w, t.dof_prev[d]] + carried + s * qdd[w, d]
    for b in range(1, t.nbody):
        k = t.body_last_dof[b]
        v = velocity[w, k]
        a = acceleration[w, k]
        omega = angular(v)
        r = com[w, b]
        i = inertia[w, b]
        v_com = linear(v) + wp.cross(omega, r)
        a_com = linear(a) + wp.cross(angular(a), r) + wp.cross(omega, v_com)
        force = mass[w, b] * a_com
        torque = sym_mul(i, angular(a)) + wp.cross(omega, sym_mul(i, omega))
        body_force[w, b] = spatial(torque + wp.cross(r, force), force) - wrench[w, b]
    for i in range(1, t.nbody):
        b = t.nbody - i
        p = t.body_parent[b]
        if p > 0:
            body_force[w, p] += body_force[w, b]
    for d in range(t.nv):
        diagonal = (armature[w, d] + dof_implicit[w, d] + dof_integrator[w, d]) * qdd[w, d]
        residual[w, d] = wp.dot(axis[w, d], body_force[w, t.dof_body[d]]) + diagonal - dof_force[w, d]


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
    armature: wp.array2d(dtype=real),
    qdd: wp.array2d(dtype=real),
    axis: wp.array2d(dtype=vec6),
    dof_implicit: wp.array2d(dtype=real),
    dof_integrator: wp.array2d(dtype=real),
    body_force: wp.array2d(dtype=vec6),
    armature_bar: wp.array2d(dtype=real),
    qdd_bar: wp.array2d(dtype=real),
    axis_bar: wp.array2d(dtype=vec6),
    dof_force_bar: wp.array2d(dtype=real),
    dof_implicit_bar: wp.array2d(dtype=real),
    dof_integrator_bar: wp.array2d(dtype=real),
    body_force_bar: wp.array2d(dtype=vec6),
    residual_bar: wp.array2d(dtype=real),
    w: int,
):
    """Of the residual: twists of bodies, and whatever acts on a dof."""
    for d in range(t.nv):
        rate = residual_bar[w, d]
        residual_bar[w, d] = real(0.0)
        b = t.dof_body[d]
        body_force_bar[w, b] += axis[w, d] * rate
        axis_bar[w, d] += body_force[w, b] * rate
        if dof_force_bar:
            dof_force_bar[w, d] -= rate
        diagonal_bar = rate * qdd[w, d]
        if armature_bar:
            armature_bar[w, d] += diagonal_bar
        if dof_implicit_bar:
            dof_implicit_bar[w, d] += diagonal_bar
        if dof_integrator_bar:
            dof_integrator_bar[w, d] += diagonal_bar
        if qdd_bar:
            qdd_bar[w, d] += rate * (armature[w, d] + dof_implicit[w, d] + dof_integrator[w, d])


@wp.func
def _bodies_adjoint(
    t: Topology,
    mass: wp.array2d(dtype=real),
    com: wp.array2d(dtype=vec3),
    inertia: wp.array2d(dtype=vec6),
    velocity: wp.array2d(dtype=vec6),
    acceleration: wp.array2d(dtype=vec6),
    mass_bar: wp.array2d(dtype=real),
    com_bar: wp.array2d(dtype=vec3),
    inertia_bar: wp.array2d(dtype=vec6),
    velocity_bar: wp.array2d(dtype=vec6),
    wrench_bar: wp.array2d(dtype=vec6),
    acceleration_bar: wp.array2d(dtype=vec6),
    body_force_bar: wp.array2d(dtype=vec6),
    w: int,
):
    """Of the equations of motion of the bodies, with twists handed outwards."""
    for b in range(1, t.nbody):
        parent = t.body_parent[b]
        if parent > 0:
            body_force_bar[w, b] += body_force_bar[w, parent]
        twist = body_force_bar[w, b]
        p = angular(twist)  # adjoint of the torque about the reference point
        k = t.body_last_dof[b]
        v = velocity[w, k]
        a = acceleration[w, k]
        omega = angular(v)
        alpha = angular(a)
        r = com[w, b]
        i = inertia[w, b]
        v_com = linear(v) + wp.cross(omega, r)
        a_com = linear(a) + wp.cross(alpha, r) + wp.cross(omega, v_com)
        force_bar = linear(twist) + wp.cross(p, r)
        a_com_bar = mass[w, b] * force_bar
        v_com_bar = wp.cross(a_com_bar, omega)
        momentum = sym_mul(i, omega)
        momentum_bar = wp.cross(p, omega)
        if wrench_bar:
            wrench_bar[w, b] -= twist
        if mass_bar:
            mass_bar[w, b] += wp.dot(force_bar, a_com)
        com_bar[w, b] += mass[w, b] * wp.cross(a_com, p) + wp.cross(a_com_bar, alpha) + wp.cross(v_com_bar, omega)
        inertia_bar[w, b] += _symmetric_product(p, alpha) + _symmetric_product(momentum_bar, omega)
        acceleration_bar[w, k] += spatial(sym_mul(i, p) + wp.cross(r, a_com_bar), a_com_bar)
        if velocity_bar:
            turning = (
                wp.cross(v_com, a_com_bar) + wp.cross(r, v_com_bar) + wp.cross(momentum, p) + sym_mul(i, momentum_bar)
            )
            velocity_bar[w, k] += spatial(turning, v_com_bar)
    for b in range(1, t.nbody):
        body_force_bar[w, b] = vec6()


@wp.func
def _accelerations_adjoint(
    t: Topology,
    qd: wp.array2d(dtype=real),
    qdd: wp.array2d(dtype=real),
    axis: wp.array2d(dtype=vec6),
    velocity: wp.array2d(dtype=vec6),
    gravity_bar: wp.array(dtype=vec3),
    qd_bar: wp.array2d(dtype=real),
    qdd_bar: wp.array2d(dtype=real),
    axis_bar: wp.array2d(dtype=vec6),
    velocity_bar: wp.array2d(dtype=vec6),
    acceleration_bar: wp.array2d(dtype=vec6),
    w: int,
):
    """Of the accelerations, handed inwards."""
    for k in range(t.nv):
        d = t.nv - 1 - k
        a_bar = acceleration_bar[w, d + 1]
        acceleration_bar[w, d + 1] = vec6()
        acceleration_bar[w, t.dof_prev[d]] += a_bar
        s = axis[w, d]
        v = velocity[w, t.dof_base[d]]
        if qd_bar:
            qd_bar[w, d] += wp.dot(a_bar, motion_cross(v, s))
        if qdd_bar:
            qdd_bar[w, d] += wp.dot(a_bar, s)
        x = angular(a_bar) * qd[w, d]  # adjoint of v × s, in two halves
        y = linear(a_bar) * qd[w, d]
        by_axis = spatial(wp.cross(x, angular(v)) + wp.cross(y, linear(v)), wp.cross(y, angular(v)))
        axis_bar[w, d] += a_bar * qdd[w, d] + by_axis
        if velocity_bar:
            by_velocity = spatial(wp.cross(angular(s), x) + wp.cross(linear(s), y), wp.cross(angular(s), y))
            velocity_bar[w, t.dof_base[d]] += by_velocity
    if gravity_bar:
        gravity_bar[w] -= linear(acceleration_bar[w, 0])
    acceleration_bar[w, 0] = vec6()


@wp.func_grad(newton_euler_pass)
def _adjoint_newton_euler_pass(
    t: Topology,
    mass: wp.array2d(dtype=real),
    armature: wp.array2d(dtype=real),
    gravity: wp.array(dtype=vec3),
    qd: wp.array2d(dtype=real),
    qdd: wp.array2d(dtype=real),
    axis: wp.array2d(dtype=vec6),
    com: wp.array2d(dtype=vec3),
    inertia: wp.array2d(dtype=vec6),
    velocity: wp.array2d(dtype=vec6),
    wrench: wp.array2d(dtype=vec6),
    dof_force: wp.array2d(dtype=real),
    dof_implicit: wp.array2d(dtype=real),
    dof_integrator: wp.array2d(dtype=real),
    acceleration: wp.array2d(dtype=vec6),
    body_force: wp.array2d(dtype=vec6),
    residual: wp.array2d(dtype=real),
    w: int,
):
    """Twists of λ outwards, body by body, then accelerations inwards; by a·(b×c) = b·(c×a) = c·(a×b) throughout.

    Adjoints of what the pass wrote are used up: zero afterwards, as Warp leaves those of any array it has written.
    """
    _residual_adjoint(
        t,
        armature,
        qdd,
        axis,
        dof_implicit,
        dof_integrator,
        body_force,
        wp.adjoint[armature],
        wp.adjoint[qdd],
        wp.adjoint[axis],
        wp.adjoint[dof_force],
        wp.adjoint[dof_implicit],
        wp.adjoint[dof_integrator],
        wp.adjoint[body_force],
        wp.adjoint[residual],
        w,
    )
    _bodies_adjoint(
        t,
        mass,
        com,
        inertia,
        velocity,
        acceleration,
        wp.adjoint[mass],
        wp.adjoint[com],
        wp.adjoint[inertia],
        wp.adjoint[velocity],
        wp.adjoint[wrench],
        wp.adjoint[acceleration],
        wp.adjoint[body_force],
        w,
    )
    _accelerations_adjoint(
        t,
        qd,
        qdd,
        axis,
        velocity,
        wp.adjoint[gravity],
        wp.adjoint[qd],
        wp.adjoint[qdd],
        wp.adjoint[axis],
        wp.adjoint[velocity],
        wp.adjoint[acceleration],
        w,
    )
