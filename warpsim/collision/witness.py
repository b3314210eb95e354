"""The three ways two features meet: ball against ball, half-space against ball, line against line.

Every contact of the closed-form pairs is one of these. A "ball" is a point of a shape's core with the radius around it
(zero for the corner of a box); so a capsule is a ball that slides along a segment. Distances are signed, negative
where the shapes overlap; the contact point lies midway between the two surfaces, as in MuJoCo; normals point from the
first to the second argument.
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.maths import TINY
from warpsim.core.precision import real, vec3


@wp.func
def ball_ball(
    center_a: vec3, radius_a: real, center_b: vec3, radius_b: real, fallback: vec3
) -> tuple[real, vec3, vec3]:
    """Two balls; `fallback` is the unit normal where the centers coincide.

    Returns:
        Distance (m), contact point, unit normal.
    """
    gap = center_b - center_a
    length = wp.length(gap)
    if length < TINY:
        # The distance is a cone with its tip here: the derivative along the chosen normal is one of its true slopes.
        flat = wp.dot(gap, fallback) - radius_a - radius_b
        return flat, center_a + fallback * (radius_a + real(0.5) * flat), fallback
    normal = gap / length
    distance = length - radius_a - radius_b
    return distance, center_a + normal * (radius_a + real(0.5) * distance), normal


@wp.func
def plane_ball(origin: vec3, normal: vec3, center: vec3, radius: real) -> tuple[real, vec3]:
    """The half-space below a plane, and a ball above it.

    Returns:
        Distance (m), contact point.
    """
    distance = wp.dot(center - origin, normal) - radius
    return distance, center - normal * (radius + real(0.5) * distance)


@wp.func
def line_parameters(point_a: vec3, axis_a: vec3, point_b: vec3, axis_b: vec3) -> tuple[real, real]:
    """Where two lines that are not parallel come closest: parameters along `axis_a` and `axis_b` (any lengths)."""
    gap = point_b - point_a
    aa = wp.dot(axis_a, axis_a)
    ab = wp.dot(axis_a, axis_b)
    bb = wp.dot(axis_b, axis_b)
    ga = wp.dot(gap, axis_a)
    gb = wp.dot(gap, axis_b)
    determinant = aa * bb - ab * ab
    return (ga * bb - gb * ab) / determinant, (ga * ab - gb * aa) / determinant


@wp.func
def line_line(
    point_a: vec3, axis_a: vec3, radius_a: real, point_b: vec3, axis_b: vec3, radius_b: real, outward: vec3
) -> tuple[real, vec3, vec3]:
    """Two lines with radii whose normal is across both axes, on the side of `outward`; smooth through crossing lines.

    Returns:
        Distance (m), contact point, unit normal.
    """
    across = wp.cross(axis_a, axis_b)
    if wp.dot(across, outward) < real(0.0):
        across = wp.cross(axis_b, axis_a)
    normal = wp.normalize(across)
    ta, tb = line_parameters(point_a, axis_a, point_b, axis_b)
    center_a = point_a + axis_a * ta
    center_b = point_b + axis_b * tb
    distance = wp.dot(center_b - center_a, normal) - radius_a - radius_b
    surface_a = center_a + normal * radius_a
    surface_b = center_b - normal * radius_b
    return distance, real(0.5) * (surface_a + surface_b), normal
