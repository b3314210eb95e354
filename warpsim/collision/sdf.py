"""Signed distances of the primitives and their gradients, in the shape's own frame.

Every function returns (distance, unit gradient) at a point x, with adjoints in x and in the sizes. Distances are exact
and negative inside; where the gradient is not unique (centers, medial axes) one of the true slopes is taken.
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.kinds import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, SPHERE
from warpsim.collision.maths import TINY, direction
from warpsim.core.precision import EPSILON, real, vec2, vec3
from warpsim.core.spatial import clamp_range

ELLIPSOID_STEPS = wp.constant(24)
OFF_CENTER = wp.constant(real(EPSILON**0.5))
"""Points keep this share of a half axis away from an ellipsoid's planes of symmetry: the nearest may not be unique."""


@wp.func
def ball_sdf(x: vec3, radius: real) -> tuple[real, vec3]:
    """Distance and gradient of a ball about the origin."""
    z = vec3(real(0.0), real(0.0), real(1.0))
    gradient = direction(x, z)
    return wp.dot(x, gradient) - radius, gradient


@wp.func
def capsule_sdf(x: vec3, size: vec3) -> tuple[real, vec3]:
    """Distance and gradient of a capsule: a ball about the nearest point of its segment."""
    nearest = vec3(real(0.0), real(0.0), clamp_range(x[2], -size[1], size[1]))
    return ball_sdf(x - nearest, size[0])


@wp.func
def sign_of(x: real) -> real:
    """−1 below zero, else +1."""
    if x < real(0.0):
        return real(-1.0)
    return real(1.0)


@wp.func
def box_sdf(x: vec3, size: vec3) -> tuple[real, vec3]:
    """Distance and gradient of a box."""
    sx = sign_of(x[0])
    sy = sign_of(x[1])
    sz = sign_of(x[2])
    qx = sx * x[0] - size[0]
    qy = sy * x[1] - size[1]
    qz = sz * x[2] - size[2]
    if qx <= real(0.0) and qy <= real(0.0) and qz <= real(0.0):
        if qx >= qy and qx >= qz:
            return qx, vec3(sx, real(0.0), real(0.0))
        if qy >= qz:
            return qy, vec3(real(0.0), sy, real(0.0))
        return qz, vec3(real(0.0), real(0.0), sz)
    beyond = vec3(
        sx * wp.max(qx, real(0.0)),
        sy * wp.max(qy, real(0.0)),
        sz * wp.max(qz, real(0.0)),
    )
    distance = wp.length(beyond)
    return distance, beyond / wp.max(distance, TINY)


@wp.func
def revolved(x: vec3, slope: vec2) -> vec3:
    """A gradient in the half plane (radius, z) turned to the point's own direction about the z axis."""
    radial = direction(vec3(x[0], x[1], real(0.0)), vec3(real(1.0), real(0.0), real(0.0)))
    return radial * slope[0] + vec3(real(0.0), real(0.0), slope[1])


@wp.func
def cylinder_sdf(x: vec3, size: vec3) -> tuple[real, vec3]:
    """Distance and gradient of a cylinder."""
    radius = wp.length(vec2(x[0], x[1]))
    sz = sign_of(x[2])
    side = radius - size[0]
    cap = sz * x[2] - size[1]
    if side > real(0.0) and cap > real(0.0):
        distance = wp.length(vec2(side, cap))
        return distance, revolved(x, vec2(side / distance, sz * cap / distance))
    if side > cap:
        return side, revolved(x, vec2(real(1.0), real(0.0)))
    return cap, vec3(real(0.0), real(0.0), sz)


@wp.func
def cone_sdf(x: vec3, size: vec3) -> tuple[real, vec3]:
    """Distance and gradient of a cone with its apex at +z and its base at −z, half height size[1]."""
    radius = wp.length(vec2(x[0], x[1]))
    z = x[2]
    height = real(2.0) * size[1]
    slant = wp.sqrt(size[0] * size[0] + height * height)
    normal = vec2(height / slant, size[0] / slant)
    side = radius * normal[0] + (z - size[1]) * normal[1]
    base = -size[1] - z
    if side <= real(0.0) and base <= real(0.0):
        if side > base:
            return side, revolved(x, normal)
        return base, vec3(real(0.0), real(0.0), real(-1.0))
    along = clamp_range(radius * normal[1] - (z - size[1]) * normal[0], real(0.0), slant)
    to_side = vec2(radius - along * normal[1], z - size[1] + along * normal[0])
    to_base = vec2(radius - clamp_range(radius, real(0.0), size[0]), -base)
    if wp.dot(to_base, to_base) < wp.dot(to_side, to_side):
        distance = wp.max(wp.length(to_base), TINY)
        return distance, revolved(x, to_base / distance)
    distance = wp.max(wp.length(to_side), TINY)
    return distance, revolved(x, to_side / distance)


@wp.func
def ellipsoid_multiplier(x: vec3, size: vec3) -> real:
    """λ with Σ (sᵢxᵢ/(sᵢ² + λ))² = 1: the nearest point of the ellipsoid is yᵢ = sᵢ²xᵢ/(sᵢ² + λ).

    Newton on 1/|v| − 1, vᵢ = sᵢxᵢ/(sᵢ² + λ), which is concave and nearly straight: it climbs to the root from the left
    without overshooting. The adjoint is that of the root, not of the steps.
    """
    squares = wp.cw_mul(size, size)
    m = wp.max(size[0] * wp.abs(x[0]) - squares[0], size[1] * wp.abs(x[1]) - squares[1])
    multiplier = wp.max(m, size[2] * wp.abs(x[2]) - squares[2])
    for _i in range(ELLIPSOID_STEPS):
        shifted = squares + vec3(multiplier, multiplier, multiplier)
        v = wp.cw_div(wp.cw_mul(size, x), shifted)
        vv = wp.dot(v, v)
        slope = wp.dot(v, wp.cw_div(v, shifted))
        multiplier = multiplier + (wp.sqrt(vv) - real(1.0)) * vv / wp.max(slope, TINY)
    return multiplier


@wp.func_grad(ellipsoid_multiplier)
def adj_ellipsoid_multiplier(x: vec3, size: vec3, adj_ret: real):
    """dλ = −F_θ dθ / F_λ with F = |v|² − 1."""
    multiplier = ellipsoid_multiplier(x, size)
    squares = wp.cw_mul(size, size)
    shifted = squares + vec3(multiplier, multiplier, multiplier)
    v = wp.cw_div(wp.cw_mul(size, x), shifted)
    slope = real(-2.0) * wp.dot(v, wp.cw_div(v, shifted))
    factor = -adj_ret / wp.min(slope, -TINY)
    by_x = wp.cw_div(wp.cw_mul(v, size), shifted) * (real(2.0) * factor)
    inverse = wp.cw_div(x - wp.cw_mul(wp.cw_mul(size, v), vec3(real(2.0), real(2.0), real(2.0))), shifted)
    by_size = wp.cw_mul(v, inverse) * (real(2.0) * factor)
    wp.adjoint[x] += by_x
    wp.adjoint[size] += by_size


@wp.func
def off_plane(x: real, half: real) -> real:
    """x, kept away from zero by a tiny share of the half axis."""
    least = half * OFF_CENTER
    if wp.abs(x) < least:
        return sign_of(x) * least
    return x


@wp.func
def ellipsoid_sdf(x: vec3, size: vec3) -> tuple[real, vec3]:
    """Distance and gradient of an ellipsoid: x − y = λ u, uᵢ = xᵢ/(sᵢ² + λ), so the distance is λ|u|."""
    p = vec3(off_plane(x[0], size[0]), off_plane(x[1], size[1]), off_plane(x[2], size[2]))
    multiplier = ellipsoid_multiplier(p, size)
    u = wp.cw_div(p, wp.cw_mul(size, size) + vec3(multiplier, multiplier, multiplier))
    length = wp.length(u)
    return multiplier * length, u / length


@wp.func
def primitive_sdf(kind: int, size: vec3, x: vec3) -> tuple[real, vec3]:
    """Distance (m) and unit gradient of a primitive at a point of its own frame.

    Args:
        kind: Code from `kinds`.
        size: As `Shape.size`.
        x: Point, m.
    """
    if kind == SPHERE:
        return ball_sdf(x, size[0])
    if kind == CAPSULE:
        return capsule_sdf(x, size)
    if kind == BOX:
        return box_sdf(x, size)
    if kind == CYLINDER:
        return cylinder_sdf(x, size)
    if kind == CONE:
        return cone_sdf(x, size)
    if kind == ELLIPSOID:
        return ellipsoid_sdf(x, size)
    return x[2], vec3(real(0.0), real(0.0), real(1.0))
