"""Contact of boxes with spheres, capsules and boxes, rebuilt from a frozen feature.

A box's feature is a *region*: three digits −1, 0, +1, one per axis, that say on which side of the box a point lies (0:
between the sides). One nonzero digit is a face, two an edge, three a corner. Coded Σ (digit + 1)·3ᵏ, so 13 is the
inside.

Capsule against box: place + 16·region (+ 4096 where the capsule's segment crosses an edge between its ends). The place
picks the point of the segment: 0 end at −z, 1 nearest to the corner, 2 end at +z, 3 + 2k + s where the segment passes
the box's side s (0: −, 1: +) along axis k.
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.maths import column, direction
from warpsim.collision.round_contact import segment_parameter
from warpsim.collision.witness import ball_ball, line_line, plane_ball
from warpsim.core.precision import mat33, real, vec3

EDGE_CROSSING = wp.constant(4096)


@wp.func
def digit(region: int, axis: int) -> int:
    """Side of the box along an axis: −1, 0 or +1."""
    if axis == 0:
        return region % 3 - 1
    if axis == 1:
        return (region // 3) % 3 - 1
    return region // 9 - 1


@wp.func
def digits(region: int) -> vec3:
    """All three digits as reals."""
    return vec3(real(digit(region, 0)), real(digit(region, 1)), real(digit(region, 2)))


@wp.func
def region_rank(region: int) -> int:
    """1 for a face, 2 for an edge, 3 for a corner, 0 for the inside."""
    return wp.abs(digit(region, 0)) + wp.abs(digit(region, 1)) + wp.abs(digit(region, 2))


@wp.func
def zero_axis(region: int) -> int:
    """Axis along which an edge runs."""
    if digit(region, 0) == 0:
        return 0
    if digit(region, 1) == 0:
        return 1
    return 2


@wp.func
def face_axis(region: int) -> int:
    """Axis across a face."""
    if digit(region, 0) != 0:
        return 0
    if digit(region, 1) != 0:
        return 1
    return 2


@wp.func
def on_box(local: vec3, size: vec3, region: int) -> vec3:
    """The region's point nearest to `local`: on the box's side where the digit is set, `local` where it is zero."""
    d = digits(region)
    free = vec3(real(1.0) - wp.abs(d[0]), real(1.0) - wp.abs(d[1]), real(1.0) - wp.abs(d[2]))
    return wp.cw_mul(d, size) + wp.cw_mul(free, local)


@wp.func
def ball_box(
    center: vec3, radius: real, position: vec3, frame: mat33, size: vec3, region: int
) -> tuple[real, vec3, vec3]:
    """A ball against a region of a box.

    A face is a plane, so that nothing happens to the normal as the ball's center passes through it.

    Returns:
        Distance (m), contact point, unit normal from the ball to the box.
    """
    if region_rank(region) == 1:
        axis = face_axis(region)
        outward = column(frame, axis) * real(digit(region, axis))
        distance, point = plane_ball(position + outward * size[axis], outward, center, radius)
        return distance, point, -outward
    local = wp.transpose(frame) @ (center - position)
    nearest = position + frame @ on_box(local, size, region)
    inward = wp.normalize(frame @ digits(region)) * real(-1.0)
    return ball_ball(center, radius, nearest, real(0.0), inward)


@wp.func
def segment_on_box(place: int, center: vec3, axis: vec3, position: vec3, frame: mat33, size: vec3, region: int) -> vec3:
    """The point of a capsule's segment that a place code names; see the file's head."""
    if place == 0:
        return center - axis
    if place == 2:
        return center + axis
    if place == 1:
        corner = position + frame @ wp.cw_mul(digits(region), size)
        return center + axis * segment_parameter(corner, center, axis)
    k = (place - 3) // 2
    side = real(2 * ((place - 3) % 2) - 1) * size[k]
    across = column(frame, k)
    t = (side - wp.dot(center - position, across)) / wp.dot(axis, across)
    return center + axis * t


@wp.func
def capsule_box(
    center: vec3, axis: vec3, radius: real, position: vec3, frame: mat33, size: vec3, feature: int
) -> tuple[real, vec3, vec3]:
    """Capsule (half segment `axis`) against box.

    Returns:
        Distance (m), contact point, unit normal from the capsule to the box.
    """
    region = (feature % EDGE_CROSSING) // 16
    if feature >= EDGE_CROSSING:
        edge = column(frame, zero_axis(region))
        d = digits(region)
        middle = position + frame @ wp.cw_mul(d, size)
        return line_line(center, axis, radius, middle, edge, real(0.0), frame @ (-d))
    ball = segment_on_box(feature % 16, center, axis, position, frame, size, region)
    return ball_box(ball, radius, position, frame, size, region)


@wp.func
def sphere_cylinder(
    center: vec3, radius: real, sphere_z: vec3, position: vec3, frame: mat33, size: vec3, feature: int
) -> tuple[real, vec3, vec3]:
    """Sphere against cylinder: feature 0 its side, 1 and 2 its caps at +z and −z, 3 and 4 their rims.

    Returns:
        Distance (m), contact point, unit normal from the sphere to the cylinder.
    """
    z = column(frame, 2)
    rise = wp.dot(center - position, z)
    if feature == 0:
        return ball_ball(center, radius, position + z * rise, size[0], column(frame, 0))
    outward = z
    if feature % 2 == 0:
        outward = -z
    cap = position + outward * size[1]
    if feature < 3:
        distance, point = plane_ball(cap, outward, center, radius)
        return distance, point, -outward
    radial = direction(center - position - z * rise, column(frame, 0))
    return ball_ball(center, radius, cap + radial * size[0], real(0.0), -outward)
