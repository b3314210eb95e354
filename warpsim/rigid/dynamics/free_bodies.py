"""Gyroscopic derivatives of single free bodies, for "implicitfast": (M + h ∂c/∂qd − hD) a = τ − c on each 6×6 block.

A tree whose only dofs are one free joint has a block of its own, so the derivative of its bias force can be kept
although it is not symmetric (MuJoCo does the same); spinning bodies then gain no energy. c is quadratic in the angular
velocity ω: force m ω×(ω×r), torque ω×(I ω) about the joint's origin, summed over the bodies that move with the joint.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import mat66, real, vec3, vec6
from warpsim.core.spatial import angular, linear, spatial, sym_mul
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.state import Work


@wp.func
def _body_rate(mass: real, r: vec3, inertia: vec6, omega: vec3, delta: vec3) -> vec6:
    """Change of a body's bias (torque about the joint's origin, force) along a change delta of its angular velocity."""
    force = mass * (wp.cross(delta, wp.cross(omega, r)) + wp.cross(omega, wp.cross(delta, r)))
    momentum = sym_mul(inertia, omega) + mass * wp.cross(r, wp.cross(omega, r))
    change = sym_mul(inertia, delta) + mass * wp.cross(r, wp.cross(delta, r))
    return spatial(wp.cross(delta, momentum) + wp.cross(omega, change), force)


@wp.func
def _bias_rate(
    t: Topology,
    w: int,
    i: int,
    mass: wp.array2d(dtype=real),
    com: wp.array2d(dtype=vec3),
    inertia: wp.array2d(dtype=vec6),
    joint: vec3,
    omega: vec3,
    delta: vec3,
) -> vec6:
    total = vec6()
    for k in range(t.free_start[i], t.free_start[i + 1]):
        b = t.free_body[k]
        total += _body_rate(mass[w, b], com[w, b] - joint, inertia[w, b], omega, delta)
    return total


@wp.func
def _joint_origin(
    t: Topology, origin: wp.array2d(dtype=vec3), link_position: wp.array2d(dtype=vec3), w: int, i: int
) -> vec3:
    """The free joint's origin less the tree's reference point: zero in value, not in derivative."""
    link = t.free_link[i]
    return link_position[w, link] - origin[w, t.link_tree[link]]


@wp.func
def _project(axis: vec6, e: int, wrench: vec6) -> real:
    """Force on dof e of the free joint by a wrench about the joint's origin."""
    if e < 3:
        return wp.dot(linear(axis), linear(wrench))
    return wp.dot(angular(axis), angular(wrench))


@wp.func
def _turn_of(axis: wp.array2d(dtype=vec6), rate: wp.array2d(dtype=real), w: int, d: int) -> vec3:
    """World angular velocity of the free joint at dof d for given rates of its dofs."""
    return (
        angular(axis[w, d + 3]) * rate[w, d + 3]
        + angular(axis[w, d + 4]) * rate[w, d + 4]
        + angular(axis[w, d + 5]) * rate[w, d + 5]
    )


@wp.kernel
def _gyroscopic_residual_kernel(
    # topology, parameters
    t: Topology,
    mass: wp.array2d(dtype=real),
    timestep: wp.array(dtype=real),
    # state, solution
    qd: wp.array2d(dtype=real),
    qdd: wp.array2d(dtype=real),
    # work in
    origin: wp.array2d(dtype=vec3),
    link_position: wp.array2d(dtype=vec3),
    axis: wp.array2d(dtype=vec6),
    com: wp.array2d(dtype=vec3),
    inertia: wp.array2d(dtype=vec6),
    # work out
    residual: wp.array2d(dtype=real),
):
    w, i = wp.tid()
    d = t.free_dof[i]
    joint = _joint_origin(t, origin, link_position, w, i)
    rate = _bias_rate(t, w, i, mass, com, inertia, joint, _turn_of(axis, qd, w, d), _turn_of(axis, qdd, w, d))
    for e in range(6):
        residual[w, d + e] += timestep[w] * _project(axis[w, d + e], e, rate)


@wp.func
def _lu(a: mat66) -> mat66:
    for k in range(6):
        for i in range(k + 1, 6):
            a[i, k] = a[i, k] / a[k, k]
            for j in range(k + 1, 6):
                a[i, j] = a[i, j] - a[i, k] * a[k, j]
    return a


@wp.kernel(enable_backward=False)
def _gyroscopic_solve_kernel(
    # topology, parameters
    t: Topology,
    mass: wp.array2d(dtype=real),
    timestep: wp.array(dtype=real),
    # state
    qd: wp.array2d(dtype=real),
    # work in
    origin: wp.array2d(dtype=vec3),
    link_position: wp.array2d(dtype=vec3),
    axis: wp.array2d(dtype=vec6),
    com: wp.array2d(dtype=vec3),
    inertia: wp.array2d(dtype=vec6),
    mass_matrix: wp.array2d(dtype=real),
    dof_implicit: wp.array2d(dtype=real),
    dof_integrator: wp.array2d(dtype=real),
    residual: wp.array2d(dtype=real),
    # work out
    free_block: wp.array2d(dtype=mat66),
    qdd: wp.array2d(dtype=real),
):
    w, i = wp.tid()
    d = t.free_dof[i]
    a = mat66()
    for r in range(6):
        for c in range(r + 1):
            a[r, c] = mass_matrix[w, t.row_start[d + r] + r - c]
            a[c, r] = a[r, c]
        a[r, r] = a[r, r] + dof_implicit[w, d + r] + dof_integrator[w, d + r]
    joint = _joint_origin(t, origin, link_position, w, i)
    omega = _turn_of(axis, qd, w, d)
    for c in range(3):
        rate = _bias_rate(t, w, i, mass, com, inertia, joint, omega, angular(axis[w, d + 3 + c]))
        for r in range(6):
            a[r, 3 + c] = a[r, 3 + c] + timestep[w] * _project(axis[w, d + r], r, rate)
    a = _lu(a)
    free_block[w, i] = a
    for r in range(6):
        value = -residual[w, d + r]
        for c in range(r):
            value -= a[r, c] * qdd[w, d + c]
        qdd[w, d + r] = value
    for k in range(6):
        r = 5 - k
        value = qdd[w, d + r]
        for c in range(r + 1, 6):
            value -= a[r, c] * qdd[w, d + c]
        qdd[w, d + r] = value / a[r, r]


@wp.kernel(enable_backward=False)
def _gyroscopic_adjoint_kernel(
    t: Topology,
    free_block: wp.array2d(dtype=mat66),
    qdd_adjoint: wp.array2d(dtype=real),
    residual_adjoint: wp.array2d(dtype=real),
):
    """Solves Aᵀ λ = ā and leaves −λ on the residual."""
    w, i = wp.tid()
    d = t.free_dof[i]
    a = free_block[w, i]
    for r in range(6):
        value = -qdd_adjoint[w, d + r]
        for c in range(r):
            value -= a[c, r] * residual_adjoint[w, d + c]
        residual_adjoint[w, d + r] = value / a[r, r]
    for k in range(6):
        r = 5 - k
        value = residual_adjoint[w, d + r]
        for c in range(r + 1, 6):
            value -= a[c, r] * residual_adjoint[w, d + c]
        residual_adjoint[w, d + r] = value


def free_body_accelerations(m: Model, qd: wp.array, work: Work, matrix: wp.array, residual: wp.array) -> None:
    """Overwrites `work.qdd` of single free bodies by the solution with gyroscopic derivatives. Not taped."""
    if m.topology.free_count:
        wp.launch(
            _gyroscopic_solve_kernel,
            dim=(m.worlds, m.topology.free_count),
            inputs=[
                m.topology,
                m.body.mass,
                m.world.timestep,
                qd,
                work.origin,
                work.link_position,
                work.axis,
                work.com,
                work.inertia,
                matrix,
                work.dof_implicit,
                work.dof_integrator,
                residual,
            ],
            outputs=[work.free_block, work.qdd],
            device=m.device,
            record_tape=False,
        )


def free_body_residual(m: Model, qd: wp.array, work: Work) -> None:
    """Adds h ∂c/∂qd·a of single free bodies to `work.residual`, on the tape."""
    if m.topology.free_count:
        wp.launch(
            _gyroscopic_residual_kernel,
            dim=(m.worlds, m.topology.free_count),
            inputs=[
                m.topology,
                m.body.mass,
                m.world.timestep,
                qd,
                work.qdd_fixed,
                work.origin,
                work.link_position,
                work.axis,
                work.com,
                work.inertia,
            ],
            outputs=[work.residual],
            device=m.device,
        )


def free_body_adjoint(m: Model, work: Work) -> None:
    """Overwrites the residual's adjoint of single free bodies; part of the acceleration's adjoint."""
    if m.topology.free_count:
        wp.launch(
            _gyroscopic_adjoint_kernel,
            dim=(m.worlds, m.topology.free_count),
            inputs=[m.topology, work.free_block, work.qdd.grad],
            outputs=[work.residual.grad],
            device=m.device,
            record_tape=False,
        )
