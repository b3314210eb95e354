"""Bounding spheres: the cheap test every pair takes first."""

from __future__ import annotations

import warp as wp

from warpsim.collision.kinds import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, PLANE, SPHERE
from warpsim.core.precision import quat, real, vec3
from warpsim.core.spatial import quat_rotate


@wp.func
def bounding_radius(kind: int, size: vec3, unit_radius: real) -> real:
    """Radius (m) of a ball about the shape's origin that holds it.

    Args:
        kind: Code from `kinds`.
        size: As `Shape.size`.
        unit_radius: Meshes, hulls: radius at scale one.
    """
    if kind == CAPSULE:
        return size[0] + size[1]
    if kind == SPHERE:
        return size[0]
    if kind == BOX:
        return wp.length(size)
    if kind == CYLINDER or kind == CONE:
        return wp.sqrt(size[0] * size[0] + size[1] * size[1])
    if kind == ELLIPSOID:
        return wp.max(size[0], wp.max(size[1], size[2]))
    return unit_radius * wp.max(size[0], wp.max(size[1], size[2]))


@wp.func
def bounds_apart(
    kind_a: int,
    position_a: vec3,
    rotation_a: quat,
    radius_a: real,
    position_b: vec3,
    radius_b: real,
    margin: real,
) -> bool:
    """Whether two shapes are surely at least `margin` apart; `a` may be a plane."""
    gap = position_b - position_a
    if kind_a == PLANE:
        normal = quat_rotate(rotation_a, vec3(real(0.0), real(0.0), real(1.0)))
        return wp.dot(gap, normal) - radius_b >= margin
    reach = radius_a + radius_b + margin
    return wp.dot(gap, gap) >= reach * reach
