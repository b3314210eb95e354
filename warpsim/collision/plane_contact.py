"""Contact of a plane with the primitives, rebuilt from a frozen feature.

Features: sphere, ellipsoid 0; capsule 0 (end at +z) and 1 (end at −z); box the corner 0…7, bit k set where coordinate
k is positive; cylinder and cone see `disc_contact` and `plane_cone`. All results are (distance, point); the normal is
the plane's.
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.kinds import BOX, CAPSULE, CYLINDER, ELLIPSOID, SPHERE
from warpsim.collision.maths import TINY, column
from warpsim.collision.witness import plane_ball
from warpsim.core.precision import mat33, real, vec3

SIN_60 = wp.constant(real(0.8660254037844386))


@wp.func
def end_sign(feature: int) -> real:
    """+1 for the end at +z (feature 0), −1 for the one at −z."""
    if feature == 0:
        return real(1.0)
    return real(-1.0)


@wp.func
def box_corner(corner: int, size: vec3) -> vec3:
    """Corner 0…7 of a box in its own frame; bit k of `corner` is the side along axis k."""
    x = size[0]
    y = size[1]
    z = size[2]
    if (corner & 1) == 0:
        x = -size[0]
    if (corner & 2) == 0:
        y = -size[1]
    if (corner & 4) == 0:
        z = -size[2]
    return vec3(x, y, z)


@wp.func
def rim_point(normal: vec3, axis: vec3, side: vec3, radius: real) -> vec3:
    """From a disc's center to the point of its rim that lies furthest along −normal.

    A disk parallel to the plane has no such point: `side`, an axis in the disc, stands in for it, as in MuJoCo.
    """
    down = axis * wp.dot(axis, normal) - normal
    length = wp.length(down)
    if length < TINY:
        return side * radius
    return down * (radius / length)


@wp.func
def disc_contact(
    origin: vec3, normal: vec3, center: vec3, axis: vec3, side: vec3, radius: real, place: int
) -> tuple[real, vec3]:
    """One of three points of a disc's rim against a plane: 0 the lowest, 1 and 2 the other corners of a triangle."""
    low = rim_point(normal, axis, side, radius)
    point = center + low
    if place > 0:
        across = wp.normalize(wp.cross(low, axis)) * (radius * SIN_60)
        if place == 2:
            across = -across
        point = center - real(0.5) * low + across
    return plane_ball(origin, normal, point, real(0.0))


@wp.func
def plane_cylinder(
    origin: vec3, normal: vec3, position: vec3, frame: mat33, size: vec3, feature: int
) -> tuple[real, vec3]:
    """Features 0 and 1: lowest rim point of the lower and of the upper cap; 2 and 3: the lower cap's triangle."""
    axis = column(frame, 2)
    if wp.dot(axis, normal) > real(0.0):
        axis = -axis
    center = position + axis * size[1]
    place = 0
    if feature == 1:
        center = position - axis * size[1]
    if feature > 1:
        place = feature - 1
    return disc_contact(origin, normal, center, axis, column(frame, 0), size[0], place)


@wp.func
def plane_cone(origin: vec3, normal: vec3, position: vec3, frame: mat33, size: vec3, feature: int) -> tuple[real, vec3]:
    """Features 0, 1, 2: the base rim's triangle, the lowest point first; 3: the apex."""
    axis = column(frame, 2)
    if feature == 3:
        return plane_ball(origin, normal, position + axis * size[1], real(0.0))
    return disc_contact(origin, normal, position - axis * size[1], axis, column(frame, 0), size[0], feature)


@wp.func
def plane_ellipsoid(origin: vec3, normal: vec3, position: vec3, frame: mat33, size: vec3) -> tuple[real, vec3]:
    """The lowest point of an ellipsoid: −S²m/|S m|, with m the normal in its frame and S its half axes."""
    scaled = wp.cw_mul(size, wp.transpose(frame) @ normal)
    lowest = wp.cw_mul(size, scaled) / wp.max(wp.length(scaled), TINY)
    return plane_ball(origin, normal, position - frame @ lowest, real(0.0))


@wp.func
def plane_shape(
    kind: int, feature: int, origin: vec3, normal: vec3, position: vec3, frame: mat33, size: vec3
) -> tuple[real, vec3]:
    """Distance (m) and point of the contact between a plane and a feature of a primitive."""
    if kind == SPHERE:
        return plane_ball(origin, normal, position, size[0])
    if kind == CAPSULE:
        end = position + column(frame, 2) * (end_sign(feature) * size[1])
        return plane_ball(origin, normal, end, size[0])
    if kind == BOX:
        return plane_ball(origin, normal, position + frame @ box_corner(feature, size), real(0.0))
    if kind == ELLIPSOID:
        return plane_ellipsoid(origin, normal, position, frame, size)
    if kind == CYLINDER:
        return plane_cylinder(origin, normal, position, frame, size, feature)
    return plane_cone(origin, normal, position, frame, size, feature)
