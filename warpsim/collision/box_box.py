"""Contact between two boxes, rebuilt from a frozen feature.

The feature says which axis separates the boxes best, and which point of the clipped faces this contact is. Bits, from
0: type (2), then for faces (types 0–2) whose face is the reference (1: the second box), its axis (2) and side (1), the
incident face's axis (2) and side (1), and two corner numbers m, k (2 each). Corner numbers count round a face; edge k
of a face runs from corner k to k + 1, side m of the reference face bounds it beyond its edge m.

- type 0: corner k of the incident face above the reference face;
- type 1: edge k of the incident face where it crosses side m of the reference face;
- type 2: the incident face above corner m of the reference face;
- type 3: an edge of each box: axis of the first's edge (2 bits), of the second's (2), corner of the first's edge (3
  bits as in `box_corner`), and of the second's (3).
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.maths import column
from warpsim.collision.plane_contact import box_corner
from warpsim.collision.witness import line_line
from warpsim.core.precision import mat33, real, vec3

CORNER = wp.constant(0)
CROSSING = wp.constant(1)
BELOW_CORNER = wp.constant(2)
EDGES = wp.constant(3)


@wp.func
def side_sign(side: int) -> real:
    """−1 for side 0, +1 for side 1."""
    return real(2 * side - 1)


@wp.func
def face_corner(axis: int, side: int, corner: int, size: vec3) -> vec3:
    """Corner 0…3 of a face in the box's frame, counted round it."""
    u = side_sign(side)
    v = real(1.0)
    w = real(1.0)
    if corner == 1 or corner == 2:
        v = real(-1.0)
    if corner >= 2:
        w = real(-1.0)
    if axis == 0:
        return vec3(u * size[0], v * size[1], w * size[2])
    if axis == 1:
        return vec3(w * size[0], u * size[1], v * size[2])
    return vec3(v * size[0], w * size[1], u * size[2])


@wp.func
def face_point(
    feature: int,
    normal: vec3,
    position: vec3,
    frame: mat33,
    size: vec3,
    axis: int,
    side: int,
    incident_position: vec3,
    incident_frame: mat33,
    incident_size: vec3,
) -> vec3:
    """The incident face's point that a feature of type 0, 1 or 2 names, world frame."""
    kind = feature & 3
    incident_axis = (feature >> 6) & 3
    incident_side = (feature >> 8) & 1
    m = (feature >> 9) & 3
    k = (feature >> 11) & 3
    start = incident_position + incident_frame @ face_corner(incident_axis, incident_side, k, incident_size)
    if kind == CORNER:
        return start
    corner = position + frame @ face_corner(axis, side, m, size)
    if kind == CROSSING:
        end = incident_position + incident_frame @ face_corner(incident_axis, incident_side, (k + 1) & 3, incident_size)
        along = frame @ (face_corner(axis, side, (m + 1) & 3, size) - face_corner(axis, side, m, size))
        beyond = wp.cross(along, normal)
        t = wp.dot(corner - start, beyond) / wp.dot(end - start, beyond)
        return start + (end - start) * t
    incident_normal = column(incident_frame, incident_axis)
    return corner + normal * (wp.dot(start - corner, incident_normal) / wp.dot(normal, incident_normal))


@wp.func
def face_contact(
    feature: int,
    position: vec3,
    frame: mat33,
    size: vec3,
    incident_position: vec3,
    incident_frame: mat33,
    incident_size: vec3,
) -> tuple[real, vec3, vec3]:
    """Contact of a reference face; the normal points away from the reference box."""
    axis = (feature >> 3) & 3
    side = (feature >> 5) & 1
    normal = column(frame, axis) * side_sign(side)
    point = face_point(
        feature, normal, position, frame, size, axis, side, incident_position, incident_frame, incident_size
    )
    distance = wp.dot(point - position, normal) - size[axis]
    return distance, point - normal * (real(0.5) * distance), normal


@wp.func
def box_box(
    position_a: vec3,
    frame_a: mat33,
    size_a: vec3,
    position_b: vec3,
    frame_b: mat33,
    size_b: vec3,
    feature: int,
) -> tuple[real, vec3, vec3]:
    """Box against box.

    Returns:
        Distance (m), contact point, unit normal from the first to the second.
    """
    if (feature & 3) == EDGES:
        axis_a = column(frame_a, (feature >> 2) & 3)
        axis_b = column(frame_b, (feature >> 4) & 3)
        corner_a = frame_a @ box_corner((feature >> 6) & 7, size_a)
        corner_b = frame_b @ box_corner((feature >> 9) & 7, size_b)
        return line_line(
            position_a + corner_a, axis_a, real(0.0), position_b + corner_b, axis_b, real(0.0), position_b - position_a
        )
    if ((feature >> 2) & 1) == 0:
        return face_contact(feature, position_a, frame_a, size_a, position_b, frame_b, size_b)
    distance, point, normal = face_contact(feature, position_b, frame_b, size_b, position_a, frame_a, size_a)
    return distance, point, -normal
