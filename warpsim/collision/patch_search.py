"""Which points of two patches touch: one clipped by the sides of the other. Never taped."""

from __future__ import annotations

import warp as wp

from warpsim.collision.core import Core
from warpsim.collision.patch import patch_normal, patch_point, patch_size
from warpsim.collision.patch_contact import (
    CORNER,
    CROSSING,
    LINE_CROSSING,
    LINE_END,
    OVER_CORNER,
    ROUND_LINE,
    patch_code,
    patch_contact,
    point_place,
    polygon_side,
)
from warpsim.collision.patch_features import Meeting, find_meeting
from warpsim.collision.search_room import CLIP_POINTS, SearchRoom
from warpsim.collision.selection import TIE
from warpsim.collision.support import HullData
from warpsim.core.precision import real, vec3

PATCH_CONTACTS = wp.constant(4)


@wp.func
def meeting_code(meeting: Meeting, place: int, m: int, k: int) -> wp.int64:
    """Code of a point of a meeting's clipped patch."""
    if meeting.round:
        point = ROUND_LINE + k + 2 * meeting.own
        return patch_code(meeting.second, place, meeting.reference, meeting.other, m, point)
    return patch_code(meeting.second, place, meeting.reference, meeting.incident, m, k)


@wp.func
def clip_line(
    reference: Core,
    incident: Core,
    meeting: Meeting,
    hulls: HullData,
    point: wp.array(dtype=vec3),
    code: wp.array(dtype=wp.int64),
) -> int:
    """Cuts the incident line by the reference polygon's sides; returns 2, or 0 where nothing is left of it."""
    normal = patch_normal(reference, meeting.reference, hulls)
    first = meeting.point
    last = (first + 1) % patch_size(incident, meeting.incident, hulls)
    point[0] = patch_point(incident, meeting.incident, first, meeting.way, hulls)
    point[1] = patch_point(incident, meeting.incident, last, meeting.way, hulls)
    code[0] = meeting_code(meeting, LINE_END, 0, first)
    code[1] = meeting_code(meeting, LINE_END, 0, last)
    for m in range(patch_size(reference, meeting.reference, hulls)):
        a, beyond = polygon_side(reference, meeting.reference, m, normal, hulls)
        from_side = wp.dot(point[0] - a, beyond)
        to_side = wp.dot(point[1] - a, beyond)
        if from_side > real(0.0) and to_side > real(0.0):
            return 0
        if from_side > real(0.0) or to_side > real(0.0):
            end = int(0)
            if to_side > real(0.0):
                end = 1
            point[end] = point[0] + (point[1] - point[0]) * (from_side / (from_side - to_side))
            code[end] = meeting_code(meeting, LINE_CROSSING, m, first)
    return 2


@wp.func
def cut_code(meeting: Meeting, edge: int, side: int, sides: int) -> wp.int64:
    """Code of the point where an edge of the reference polygon meets a side of the incident one.

    The edge is the polygon's own (edge ≥ 0), or what another side (−1 − edge) has left, which meets this one over the
    corner between the two.
    """
    if edge >= 0:
        return meeting_code(meeting, CROSSING, edge, side)
    other = -1 - edge
    if other == (side + 1) % sides:
        return meeting_code(meeting, OVER_CORNER, 0, other)
    return meeting_code(meeting, OVER_CORNER, 0, side)


@wp.func
def clip_polygon(
    reference: Core,
    incident: Core,
    meeting: Meeting,
    hulls: HullData,
    point: wp.array(dtype=vec3),
    code: wp.array(dtype=wp.int64),
    edge: wp.array(dtype=int),
    spare: wp.array(dtype=vec3),
    spare_code: wp.array(dtype=wp.int64),
    spare_edge: wp.array(dtype=int),
) -> int:
    """Clips the reference polygon by the incident one's sides (Sutherland and Hodgman); returns the points left.

    `edge` says of each point which line leads on from it: an edge of the polygon, or −1 − a side. Corners and sides are
    taken backward from the last, and each side's list begins with what follows the first point: that is where MuJoCo's
    begin, and which four of more points are chosen depends on it.
    """
    normal = patch_normal(reference, meeting.reference, hulls)
    upright = patch_normal(incident, meeting.incident, hulls)
    size = patch_size(reference, meeting.reference, hulls)
    sides = patch_size(incident, meeting.incident, hulls)
    count = wp.min(size, CLIP_POINTS)
    for i in range(count):
        corner = size - 1 - i
        point[i] = patch_point(reference, meeting.reference, corner, normal, hulls)
        code[i] = meeting_code(meeting, CORNER, corner, 0)
        edge[i] = (corner + size - 1) % size
    for s in range(sides):
        m = (2 * sides - 2 - s) % sides
        a, beyond = polygon_side(incident, meeting.incident, m, upright, hulls)
        kept = int(0)
        there = real(0.0)
        if count > 0:
            there = wp.dot(point[0] - a, beyond)
        for i in range(count):
            j = (i + 1) % count
            here = there
            there = wp.dot(point[j] - a, beyond)
            if (here <= real(0.0)) != (there <= real(0.0)) and kept < CLIP_POINTS:
                spare[kept] = point[i] + (point[j] - point[i]) * (here / (here - there))
                spare_code[kept] = cut_code(meeting, edge[i], m, sides)
                spare_edge[kept] = edge[i]
                if there > real(0.0):
                    spare_edge[kept] = -1 - m
                kept += 1
            if there <= real(0.0) and kept < CLIP_POINTS:
                spare[kept] = point[j]
                spare_code[kept] = code[j]
                spare_edge[kept] = edge[j]
                kept += 1
        count = kept
        for i in range(count):
            point[i] = spare[i]
            code[i] = spare_code[i]
            edge[i] = spare_edge[i]
    return count


@wp.func
def quad_area(a: vec3, b: vec3, c: vec3, d: vec3) -> real:
    """Twice the area of a quadrilateral."""
    return wp.length(wp.cross(c - a, d - b))


@wp.func
def widest_quad(count: int, point: wp.array(dtype=vec3)) -> wp.vec4i:
    """Four corners of a convex polygon that span much of it, the first among them.

    The last of the first four corners moves on for as long as that widens the quadrilateral; after each of its steps
    the third and then the second follow as far as they gain by it. Growth by less than rounding does not count, so
    that regular polygons keep their corners.
    """
    corner = wp.vec4i(0, 1, 2, 3)
    area = quad_area(point[0], point[1], point[2], point[3])
    mover = int(3)
    while mover > 0:
        trial = corner
        trial[mover] = (trial[mover] + 1) % count
        wider = quad_area(point[trial[0]], point[trial[1]], point[trial[2]], point[trial[3]])
        gains = wider > area + TIE * area
        if gains:
            area = wider
            corner = trial
        if mover == 3:
            mover = 0
            if gains:
                mover = 2
        elif not gains:
            mover -= 1
            if mover == 0:
                mover = 3
    return corner


@wp.func
def find_on_patches(
    a: Core,
    feature_a: int,
    b: Core,
    feature_b: int,
    normal: vec3,
    hulls: HullData,
    margin: real,
    room: SearchRoom,
    row: int,
    world: int,
    start: int,
    candidate_feature: wp.array2d(dtype=wp.int64),
    candidate_seed: wp.array2d(dtype=vec3),
) -> int:
    """Up to four contacts of the patches of two features; 0 where they do not lie on one another."""
    meeting = find_meeting(a, feature_a, b, feature_b, normal, hulls)
    if not meeting.found:
        return 0
    point = room.point[row, 0]
    code = room.code[row, 0]
    edge = room.edge[row, 0]
    spare = room.point[row, 1]
    spare_code = room.code[row, 1]
    spare_edge = room.edge[row, 1]
    reference = a
    incident = b
    if meeting.second == 1:
        reference = b
        incident = a
    count = int(0)
    if meeting.point >= 0:
        count = clip_line(reference, incident, meeting, hulls, point, code)
    else:
        count = clip_polygon(reference, incident, meeting, hulls, point, code, edge, spare, spare_code, spare_edge)
    total = int(0)
    for i in range(count):
        distance, _p, _n = patch_contact(reference, incident, code[i], hulls, normal)
        if distance < margin:
            point[total] = point[i]
            code[total] = code[i]
            total += 1
    if total == 1 and count == 2 and meeting.point >= 0 and point_place(code[0]) == LINE_CROSSING:
        code[1] = code[0]  # MuJoCo lists the cut end of a line twice where the other end is not in touch
        total = 2
    chosen = wp.vec4i(0, 1, 2, 3)
    if total > PATCH_CONTACTS:
        chosen = widest_quad(total, point)
        total = PATCH_CONTACTS
    for i in range(total):
        candidate_feature[world, start + i] = code[chosen[i]]
        candidate_seed[world, start + i] = normal
    return total
