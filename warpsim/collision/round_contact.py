"""Contact among spheres and capsules, rebuilt from a frozen feature.

A capsule takes part by a point of its segment: code 0 the end at −z, 1 a point between the ends, 2 the end at +z. Two
capsules: 3·(code of the first) + code of the second.
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.maths import direction
from warpsim.collision.witness import ball_ball, line_parameters
from warpsim.core.precision import real, vec3


@wp.func
def normal_of_crossing(axis_a: vec3, axis_b: vec3) -> vec3:
    """Unit normal for two shapes whose centers coincide: across their z axes, or world x where those are parallel."""
    return direction(wp.cross(axis_a, axis_b), vec3(real(1.0), real(0.0), real(0.0)))


@wp.func
def segment_parameter(point: vec3, center: vec3, axis: vec3) -> real:
    """Parameter (in half lengths) of the point of the line center + t·axis nearest to `point`."""
    return wp.dot(point - center, axis) / wp.dot(axis, axis)


@wp.func
def segment_point(code: int, t: real, center: vec3, axis: vec3) -> vec3:
    """Point of a capsule's segment: an end, or center + t·axis where the code says it lies between."""
    if code == 0:
        return center - axis
    if code == 2:
        return center + axis
    return center + axis * t


@wp.func
def sphere_capsule(
    center: vec3, radius: real, sphere_z: vec3, capsule: vec3, axis: vec3, capsule_radius: real, code: int
) -> tuple[real, vec3, vec3]:
    """Sphere against capsule; `axis` is the capsule's half segment, `sphere_z` the sphere's z axis.

    Returns:
        Distance (m), contact point, unit normal.
    """
    t = real(0.0)
    if code == 1:
        t = segment_parameter(center, capsule, axis)
    nearest = segment_point(code, t, capsule, axis)
    return ball_ball(center, radius, nearest, capsule_radius, normal_of_crossing(sphere_z, axis))


@wp.func
def capsule_capsule(
    a: vec3, axis_a: vec3, radius_a: real, b: vec3, axis_b: vec3, radius_b: real, code: int
) -> tuple[real, vec3, vec3]:
    """Capsule against capsule; the axes are half segments.

    Returns:
        Distance (m), contact point, unit normal.
    """
    code_a = code // 3
    code_b = code - 3 * code_a
    ta = real(0.0)
    tb = real(0.0)
    if code_a == 1 and code_b == 1:
        ta, tb = line_parameters(a, axis_a, b, axis_b)
    elif code_a == 1:
        ta = segment_parameter(segment_point(code_b, tb, b, axis_b), a, axis_a)
    elif code_b == 1:
        tb = segment_parameter(segment_point(code_a, ta, a, axis_a), b, axis_b)
    point_a = segment_point(code_a, ta, a, axis_a)
    point_b = segment_point(code_b, tb, b, axis_b)
    return ball_ball(point_a, radius_a, point_b, radius_b, normal_of_crossing(axis_a, axis_b))
