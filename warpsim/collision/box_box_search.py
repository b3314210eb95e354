"""Which features of two boxes touch: separating axes, then the clipped faces or the two edges. Never taped."""

from __future__ import annotations

import warp as wp

from warpsim.collision.box_box import BELOW_CORNER, CORNER, CROSSING, EDGES, box_box, face_corner
from warpsim.collision.maths import column
from warpsim.core.precision import EPSILON, mat33, real, vec3

FACE_COSINE = wp.constant(real(0.99))
FACE_FAVOR = wp.constant(real(0.95))
"""An edge axis within this cosine of the best face normal gives way to the face, whose contacts rest stably, unless its
overlap is less than this share of the face's: the rule MuJoCo's box contacts follow."""
SLACK = wp.constant(real(1e4 * EPSILON))
"""A corner that lies this near to an edge of the other face, relative to that face's size, lies on it. Where faces are
aligned, as in walls and stacks, rounding would else decide which of the coinciding corners count, and how often."""


@wp.func
def separation(axis: vec3, gap: vec3, frame_a: mat33, size_a: vec3, frame_b: mat33, size_b: vec3) -> real:
    """Gap between two boxes along a unit axis, negative where their shadows overlap."""
    reach = real(0.0)
    for k in range(3):
        reach += size_a[k] * wp.abs(wp.dot(column(frame_a, k), axis))
        reach += size_b[k] * wp.abs(wp.dot(column(frame_b, k), axis))
    return wp.abs(wp.dot(gap, axis)) - reach


@wp.func
def support_corner(frame: mat33, way: vec3) -> int:
    """Corner of a box furthest along `way`."""
    corner = int(0)
    for k in range(3):
        if wp.dot(column(frame, k), way) > real(0.0):
            corner += 1 << k
    return corner


@wp.func
def edge_feature(i: int, j: int, frame_a: mat33, frame_b: mat33, normal: vec3) -> int:
    """Feature of the two edges, along axes i and j, that face each other across `normal` (first to second)."""
    corner_a = support_corner(frame_a, normal) & (7 - (1 << i))
    corner_b = support_corner(frame_b, -normal) & (7 - (1 << j))
    return EDGES + (i << 2) + (j << 4) + ((corner_a + (1 << i)) << 6) + ((corner_b + (1 << j)) << 9)


@wp.func
def separating_feature(gap: vec3, frame_a: mat33, size_a: vec3, frame_b: mat33, size_b: vec3, margin: real) -> int:
    """The axis of the separating axis theorem with the largest gap, as the shared bits of a feature; −1: apart."""
    best = real(-1.0e30)
    face = int(0)
    normal = vec3()
    for n in range(6):
        axis = column(frame_a, n % 3)
        if n >= 3:
            axis = column(frame_b, n % 3)
        apart = separation(axis, gap, frame_a, size_a, frame_b, size_b)
        if apart > best:
            best = apart
            face = n
            normal = axis
    if best >= margin:
        return -1
    edge = int(-1)
    best_edge = real(-1.0e30)
    edge_axis = vec3()
    for n in range(9):
        axis = wp.cross(column(frame_a, n // 3), column(frame_b, n % 3))
        length = wp.length(axis)
        if length > real(1e-6):
            axis = axis / length
            apart = separation(axis, gap, frame_a, size_a, frame_b, size_b)
            if apart > best_edge:
                best_edge = apart
                edge = n
                edge_axis = axis
    if best_edge >= margin:
        return -1
    alike = wp.abs(wp.dot(edge_axis, normal)) > FACE_COSINE and best_edge < FACE_FAVOR * wp.min(best, real(0.0))
    if best_edge > best + real(1e-12) and not alike:
        if wp.dot(edge_axis, gap) < real(0.0):
            edge_axis = -edge_axis
        return edge_feature(edge // 3, edge % 3, frame_a, frame_b, edge_axis)
    side = int(0)
    if (wp.dot(normal, gap) > real(0.0)) == (face < 3):
        side = 1
    return ((face // 3) << 2) + ((face % 3) << 3) + (side << 5)


@wp.func
def incident_bits(feature: int, frame: mat33, incident_frame: mat33) -> int:
    """Adds the other box's face that looks most against the reference face."""
    normal = column(frame, (feature >> 3) & 3) * real(2 * ((feature >> 5) & 1) - 1)
    axis = int(0)
    side = int(0)
    best = real(-1.0)
    for k in range(3):
        cosine = wp.dot(column(incident_frame, k), normal)
        if wp.abs(cosine) > best:
            best = wp.abs(cosine)
            axis = k
            side = 0
            if cosine < real(0.0):
                side = 1
    return feature + (axis << 6) + (side << 8)


@wp.func
def within_face(point: vec3, axis: int, size: vec3, slack: real) -> bool:
    """Whether a point (box frame) lies over the face across `axis`, made larger by a share of its size."""
    for k in range(3):
        if k != axis and wp.abs(point[k]) > size[k] * (real(1.0) + slack):
            return False
    return True


@wp.func
def over_incident(corner: vec3, normal: vec3, axis: int, side: int, size: vec3) -> bool:
    """Whether the line from a reference corner along the normal meets the inside of the incident face (its frame).

    Not its rim: there an edge of the incident face crosses the reference face, or has its corner in it.
    """
    if wp.abs(normal[axis]) < real(1e-9):
        return False
    t = (real(2 * side - 1) * size[axis] - corner[axis]) / normal[axis]
    return within_face(corner + normal * t, axis, size, -SLACK)


@wp.func
def crosses_side(start: vec3, end: vec3, axis: int, k: int, bound: real, size: vec3) -> bool:
    """Whether an edge crosses the plane x_k = bound within the face across `axis` (reference frame)."""
    a = start[k] - bound
    b = end[k] - bound
    if a * b >= real(0.0) or wp.min(wp.abs(a), wp.abs(b)) <= SLACK * size[k]:
        return False
    point = start + (end - start) * (a / (a - b))
    other = 3 - axis - k
    return wp.abs(point[other]) <= size[other] * (real(1.0) + SLACK)


@wp.func
def clip_code(
    base: int,
    i: int,
    position: vec3,
    frame: mat33,
    size: vec3,
    incident_position: vec3,
    incident_frame: mat33,
    incident_size: vec3,
) -> int:
    """Feature number i (0…23) of the clipped incident face, or −1 where it is clipped away."""
    axis = (base >> 3) & 3
    side = (base >> 5) & 1
    incident_axis = (base >> 6) & 3
    incident_side = (base >> 8) & 1
    inverse = wp.transpose(frame)
    k = i & 3
    if i >= 20:
        incident_inverse = wp.transpose(incident_frame)
        corner = position + frame @ face_corner(axis, side, k, size) - incident_position
        normal = incident_inverse @ column(frame, axis)
        if over_incident(incident_inverse @ corner, normal, incident_axis, incident_side, incident_size):
            return base + BELOW_CORNER + (k << 9)
        return -1
    start = incident_frame @ face_corner(incident_axis, incident_side, k, incident_size)
    start = inverse @ (incident_position + start - position)
    if i < 4:
        if within_face(start, axis, size, SLACK):
            return base + CORNER + (k << 11)
        return -1
    m = (i - 4) // 4
    end = incident_frame @ face_corner(incident_axis, incident_side, (k + 1) & 3, incident_size)
    end = inverse @ (incident_position + end - position)
    from_corner = face_corner(axis, side, m, size)
    to_corner = face_corner(axis, side, (m + 1) & 3, size)
    for n in range(3):
        if n != axis and from_corner[n] == to_corner[n]:
            if crosses_side(start, end, axis, n, from_corner[n], size):
                return base + CROSSING + (m << 9) + (k << 11)
    return -1


@wp.func
def find_box_box(
    position_a: vec3,
    frame_a: mat33,
    size_a: vec3,
    position_b: vec3,
    frame_b: mat33,
    size_b: vec3,
    margin: real,
    world: int,
    start: int,
    candidate_feature: wp.array2d(dtype=wp.int64),
) -> int:
    """Up to eight contacts: one of two edges, or the incident face clipped by the reference face."""
    feature = separating_feature(position_b - position_a, frame_a, size_a, frame_b, size_b, margin)
    if feature < 0:
        return 0
    if (feature & 3) == EDGES:
        candidate_feature[world, start] = wp.int64(feature)
        return 1
    count = int(0)
    second = (feature >> 2) & 1
    base = int(0)
    if second == 0:
        base = incident_bits(feature, frame_a, frame_b)
    else:
        base = incident_bits(feature, frame_b, frame_a)
    for i in range(24):
        code = int(-1)
        if second == 0:
            code = clip_code(base, i, position_a, frame_a, size_a, position_b, frame_b, size_b)
        else:
            code = clip_code(base, i, position_b, frame_b, size_b, position_a, frame_a, size_a)
        if code >= 0 and count < 8:
            distance, _point, _normal = box_box(position_a, frame_a, size_a, position_b, frame_b, size_b, code)
            if distance < margin:
                candidate_feature[world, start + count] = wp.int64(code)
                count += 1
    return count
