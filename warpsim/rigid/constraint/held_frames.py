"""Where two held frames are, how far one is turned from where the other would have it, and how fast.

Shared by equalities that hold frames; by their forces, on the tape, and by their rows, off it.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import quat, real, vec3, vec6
from warpsim.core.spatial import angular, point_rate, quat_conj, quat_mul, quat_rotate
from warpsim.rigid.model.parameters import EqualityParameters
from warpsim.rigid.model.topology import Topology


@wp.func
def held_points(
    t: Topology,
    e: EqualityParameters,
    link_position: wp.array2d(dtype=vec3),
    w: int,
    i: int,
    a: int,
    b: int,
    rotation_a: quat,
    rotation_b: quat,
):
    """World positions of the points of bodies a and b, turned as given, that equality i holds."""
    point_a = link_position[w, t.body_link[a]] + quat_rotate(rotation_a, e.anchor_a[w, i])
    point_b = link_position[w, t.body_link[b]] + quat_rotate(rotation_b, e.anchor_b[w, i])
    return point_a, point_b


@wp.func
def dof_motion(s: vec6, moves_a: bool, moves_b: bool, arm_a: vec3, arm_b: vec3):
    """Velocity of a's point less b's, and of a's rotation less b's, per rate of a dof with axis s."""
    move = vec3()
    omega = vec3()
    if moves_a:
        move += point_rate(s, arm_a)
        omega += angular(s)
    if moves_b:
        move -= point_rate(s, arm_b)
        omega -= angular(s)
    return move, omega


@wp.func
def vector_part(q: quat) -> vec3:
    """Imaginary part."""
    return vec3(q[1], q[2], q[3])


@wp.func
def turn_left(rotation_b: quat, target: quat, scale: real) -> vec3:
    """Rotational violation of a weld; `target` = q_a r is where b should be."""
    return scale * vector_part(quat_mul(quat_conj(rotation_b), target))


@wp.func
def turn_rate(rotation_b: quat, target: quat, scale: real, omega: vec3) -> vec3:
    """Its rate if a turns relative to b with angular velocity `omega` (world axes): ½ s vec(q̄_b ω q_a r)."""
    spin = quat_mul(quat(real(0.0), omega[0], omega[1], omega[2]), target)
    return (real(0.5) * scale) * vector_part(quat_mul(quat_conj(rotation_b), spin))


@wp.func
def turn_acceleration(rotation_b: quat, target: quat, scale: real, omega_a: vec3, omega_b: vec3, alpha: vec3) -> vec3:
    """Rate of `turn_rate`, q̄_b and q_a moving too; `alpha` is the angular acceleration of a less that of b."""
    omega = omega_a - omega_b
    v = alpha + wp.cross(omega_a, omega_b)
    spin = quat_mul(quat(real(-0.5) * wp.dot(omega, omega), v[0], v[1], v[2]), target)
    return (real(0.5) * scale) * vector_part(quat_mul(quat_conj(rotation_b), spin))


@wp.func
def point_acceleration(velocity: vec6, acceleration: vec6, arm: vec3) -> vec3:
    """Of a body's point (Featherstone eq. 2.45)."""
    return point_rate(acceleration, arm) + wp.cross(angular(velocity), point_rate(velocity, arm))


@wp.func
def relative_acceleration(
    velocity_a: vec6, velocity_b: vec6, acceleration_a: vec6, acceleration_b: vec6, arm_a: vec3, arm_b: vec3
) -> vec3:
    """Of a's point less b's at one place, as seen by somebody who turns with a; `arm_a`, `arm_b` lead to that place."""
    slip = point_rate(velocity_b, arm_b) - point_rate(velocity_a, arm_a)
    carried = real(2.0) * wp.cross(angular(velocity_a), slip)
    return (
        point_acceleration(velocity_a, acceleration_a, arm_a)
        - point_acceleration(velocity_b, acceleration_b, arm_b)
        + carried
    )


@wp.func
def turn_torque(rotation_b: quat, target: quat, scale: real, f: vec3) -> vec3:
    """Torque on a (world axes) of forces f on the rotational rows: the transpose of `turn_rate`."""
    back = quat_mul(quat(real(0.0), f[0], f[1], f[2]), quat_conj(target))
    return (real(0.5) * scale) * vector_part(quat_mul(rotation_b, back))
