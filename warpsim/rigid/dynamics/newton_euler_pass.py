"""Newton–Euler inverse dynamics of one world, and its adjoint, written by hand.

The adjoint λ of the residual is a set of rates: λ·r is the power of all forces if the dofs moved at λ. So the adjoint
of the force on a body is the twist that λ gives it, and the rest follows body by body from the equations of one body.
Adjoints of accelerations are then handed from dof to dof inwards, as forces are in the forward pass.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real, vec3, vec6
from warpsim.core.spatial import angular, linear, motion_cross, spatial, sym_mul
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


@wp.func_replay(newton_euler_pass)
def _replay_newton_euler_pass(
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
    """Nothing: the adjoint finds everything where the pass has left it."""


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
    for d in range(t.nv):
        rate = wp.adjoint[residual][w, d]
        wp.adjoint[residual][w, d] = real(0.0)
        b = t.dof_body[d]
        wp.adjoint[body_force][w, b] += axis[w, d] * rate
        wp.adjoint[axis][w, d] += body_force[w, b] * rate
        if wp.adjoint[dof_force]:
            wp.adjoint[dof_force][w, d] -= rate
        diagonal_bar = rate * qdd[w, d]
        if wp.adjoint[armature]:
            wp.adjoint[armature][w, d] += diagonal_bar
        if wp.adjoint[dof_implicit]:
            wp.adjoint[dof_implicit][w, d] += diagonal_bar
        if wp.adjoint[dof_integrator]:
            wp.adjoint[dof_integrator][w, d] += diagonal_bar
        if wp.adjoint[qdd]:
            wp.adjoint[qdd][w, d] += rate * (armature[w, d] + dof_implicit[w, d] + dof_integrator[w, d])

    for b in range(1, t.nbody):
        parent = t.body_parent[b]
        if parent > 0:
            wp.adjoint[body_force][w, b] += wp.adjoint[body_force][w, parent]
        twist = wp.adjoint[body_force][w, b]
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
        if wp.adjoint[wrench]:
            wp.adjoint[wrench][w, b] -= twist
        if wp.adjoint[mass]:
            wp.adjoint[mass][w, b] += wp.dot(force_bar, a_com)
        wp.adjoint[com][w, b] += (
            mass[w, b] * wp.cross(a_com, p) + wp.cross(a_com_bar, alpha) + wp.cross(v_com_bar, omega)
        )
        wp.adjoint[inertia][w, b] += _symmetric_product(p, alpha) + _symmetric_product(momentum_bar, omega)
        wp.adjoint[acceleration][w, k] += spatial(sym_mul(i, p) + wp.cross(r, a_com_bar), a_com_bar)
        if wp.adjoint[velocity]:
            turning = (
                wp.cross(v_com, a_com_bar) + wp.cross(r, v_com_bar) + wp.cross(momentum, p) + sym_mul(i, momentum_bar)
            )
            wp.adjoint[velocity][w, k] += spatial(turning, v_com_bar)
    for b in range(1, t.nbody):
        wp.adjoint[body_force][w, b] = vec6()

    for k in range(t.nv):
        d = t.nv - 1 - k
        a_bar = wp.adjoint[acceleration][w, d + 1]
        wp.adjoint[acceleration][w, d + 1] = vec6()
        wp.adjoint[acceleration][w, t.dof_prev[d]] += a_bar
        s = axis[w, d]
        v = velocity[w, t.dof_base[d]]
        if wp.adjoint[qd]:
            wp.adjoint[qd][w, d] += wp.dot(a_bar, motion_cross(v, s))
        if wp.adjoint[qdd]:
            wp.adjoint[qdd][w, d] += wp.dot(a_bar, s)
        x = angular(a_bar) * qd[w, d]  # adjoint of v × s, in two halves
        y = linear(a_bar) * qd[w, d]
        by_axis = spatial(wp.cross(x, angular(v)) + wp.cross(y, linear(v)), wp.cross(y, angular(v)))
        wp.adjoint[axis][w, d] += a_bar * qdd[w, d] + by_axis
        if wp.adjoint[velocity]:
            by_velocity = spatial(wp.cross(angular(s), x) + wp.cross(linear(s), y), wp.cross(angular(s), y))
            wp.adjoint[velocity][w, t.dof_base[d]] += by_velocity
    if wp.adjoint[gravity]:
        wp.adjoint[gravity][w] -= linear(wp.adjoint[acceleration][w, 0])
    wp.adjoint[acceleration][w, 0] = vec6()
