"""Which points of two patches touch: the incident one clipped by the reference polygon. Never taped."""

from __future__ import annotations

import warp as wp

from warpsim.collision.core import Core
from warpsim.collision.patch import patch_normal, patch_point, patch_size
from warpsim.collision.patch_contact import (
    BELOW_CORNER,
    CORNER,
    CROSSING,
    LINE_CROSSING,
    ROUND_LINE,
    patch_code,
    patch_contact,
    point_place,
    side_normal,
)
from warpsim.collision.patch_features import Meeting, find_meeting
from warpsim.collision.selection import TIE
from warpsim.collision.support import HullData
from warpsim.core.precision import real, vec3

CLIP_POINTS = wp.constant(256)
"""Room for the points of a clipped polygon; more are left out."""
PATCH_CONTACTS = wp.constant(4)


@wp.func
def meeting_code(meeting: Meeting, place: int, m: int, k: int) -> wp.int64:
    """Code of a point of a meeting's clipped patch."""
    if meeting.round:
        point = ROUND_LINE + k + 2 * meeting.own
        return patch_code(meeting.second, place, meeting.reference, meeting.other, m, point)
    return patch_code(meeting.second, place, meeting.reference, meeting.incident, m, k)


@wp.func
def cut_code(meeting: Meeting, edge: int, side: int, sides: int) -> wp.int64:
    """Code of the point where an edge of the polygon being clipped meets a side.

    The edge is an incident one (edge ≥ 0), or what an earlier side (−1 − edge) has left, which meets the new side at
    the reference's corner between the two.
    """
    if edge >= 0:
        place = CROSSING
        if meeting.point >= 0:
            place = LINE_CROSSING
        return meeting_code(meeting, place, side, edge)
    earlier = -1 - edge
    corner = side
    if earlier == (side + 1) % sides:
        corner = earlier
    return meeting_code(meeting, BELOW_CORNER, corner, 0)


@wp.func
def clip_patch(
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
    """Clips the incident patch by the reference polygon's sides (Sutherland and Hodgman); returns the points left.

    `edge` says of each point which line leads on from it: an incident edge, or −1 − a side of the reference.
    """
    normal = patch_normal(reference, meeting.reference, hulls)
    upright = normal
    size = patch_size(incident, meeting.incident, hulls)
    count = wp.min(size, CLIP_POINTS)
    first = int(0)
    if meeting.point >= 0:
        count = 2
        first = meeting.point
    else:
        upright = -patch_normal(incident, meeting.incident, hulls)
    for i in range(count):
        k = (first + i) % size
        point[i] = patch_point(incident, meeting.incident, k, meeting.way, hulls)
        code[i] = meeting_code(meeting, CORNER, 0, k)
        edge[i] = k
        if meeting.point >= 0:
            edge[i] = first
    sides = patch_size(reference, meeting.reference, hulls)
    for m in range(sides):
        a = patch_point(reference, meeting.reference, m, normal, hulls)
        b = patch_point(reference, meeting.reference, (m + 1) % sides, normal, hulls)
        beyond = side_normal(a, b, upright)
        kept = int(0)
        for i in range(count):
            j = (i + 1) % count
            here = wp.dot(point[i] - a, beyond)
            there = wp.dot(point[j] - a, beyond)
            if here <= real(0.0) and kept < CLIP_POINTS:
                spare[kept] = point[i]
                spare_code[kept] = code[i]
                spare_edge[kept] = edge[i]
                kept += 1
            crosses = (here <= real(0.0)) != (there <= real(0.0))
            if crosses and kept < CLIP_POINTS and (meeting.point < 0 or i == 0 or count > 2):
                spare[kept] = point[i] + (point[j] - point[i]) * (here / (here - there))
                spare_code[kept] = cut_code(meeting, edge[i], m, sides)
                spare_edge[kept] = edge[i]
                if there > real(0.0):
                    spare_edge[kept] = -1 - m
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


@wp.struct
class _Span:
    """A quadrilateral on the corners of a polygon, and the widest that was met."""

    corner: wp.vec4i
    widest: wp.vec4i
    area: real  # of the widest, twice


@wp.func
def _pushed(span: _Span, k: int, times: int, count: int, point: wp.array(dtype=vec3)) -> _Span:
    """Corner k moved on around the polygon, at most so many times, while that beats the widest clearly."""
    for _move in range(times):
        q = span.corner
        q[k] = (q[k] + 1) % count
        area = quad_area(point[q[0]], point[q[1]], point[q[2]], point[q[3]])
        if area <= span.area + TIE * span.area:
            return span
        span.corner = q
        span.widest = q
        span.area = area
    return span


@wp.func
def widest_quad(count: int, turns: int, point: wp.array(dtype=vec3)) -> wp.vec4i:
    """Four corners of a convex polygon that span much of it, as MuJoCo chooses them: by calipers, from some starts.

    The first corner walks along the first `turns` places; from each, the last corner moves on step by step, and after
    each step the two in between follow as far as that widens the quadrilateral. Growth by less than rounding does not
    count, so that regular polygons keep their corners.
    """
    span = _Span()
    span.corner = wp.vec4i(0, 1, 2, 3)
    span.widest = span.corner
    span.area = quad_area(point[0], point[1], point[2], point[3])
    for start in range(turns):
        q = span.corner
        q[0] = start
        for k in range(1, 4):  # nobody stands where the one before has come to
            if q[k] == q[k - 1]:
                q[k] = (q[k] + 1) % count
        span.corner = q
        for _round in range(count * count):
            before = span.area
            span = _pushed(span, 3, 1, count, point)
            if span.area == before:
                break
            span = _pushed(span, 2, count, count, point)
            span = _pushed(span, 1, count, count, point)
    return span.widest


@wp.func
def find_on_patches(
    a: Core,
    feature_a: int,
    b: Core,
    feature_b: int,
    normal: vec3,
    hulls: HullData,
    margin: real,
    world: int,
    start: int,
    candidate_feature: wp.array2d(dtype=wp.int64),
    candidate_seed: wp.array2d(dtype=vec3),
) -> int:
    """Up to four contacts of the patches of two features; 0 where they do not lie on one another."""
    meeting = find_meeting(a, feature_a, b, feature_b, normal, hulls)
    if not meeting.found:
        return 0
    point = wp.zeros(shape=(CLIP_POINTS,), dtype=vec3)
    code = wp.zeros(shape=(CLIP_POINTS,), dtype=wp.int64)
    edge = wp.zeros(shape=(CLIP_POINTS,), dtype=int)
    spare = wp.zeros(shape=(CLIP_POINTS,), dtype=vec3)
    spare_code = wp.zeros(shape=(CLIP_POINTS,), dtype=wp.int64)
    spare_edge = wp.zeros(shape=(CLIP_POINTS,), dtype=int)
    count = int(0)
    if meeting.second == 1:
        count = clip_patch(b, a, meeting, hulls, point, code, edge, spare, spare_code, spare_edge)
    else:
        count = clip_patch(a, b, meeting, hulls, point, code, edge, spare, spare_code, spare_edge)
    total = int(0)
    for i in range(count):
        distance = real(0.0)
        if meeting.second == 1:
            distance, _p, _n = patch_contact(b, a, code[i], hulls, normal)
        else:
            distance, _p, _n = patch_contact(a, b, code[i], hulls, normal)
        if distance < margin:
            point[total] = point[i]
            code[total] = code[i]
            total += 1
    if total == 1 and count == 2 and meeting.point >= 0 and point_place(code[0]) == LINE_CROSSING:
        code[1] = code[0]  # MuJoCo lists the cut end of a line twice where the other end is not in touch
        total = 2
    chosen = wp.vec4i(0, 1, 2, 3)
    if total > PATCH_CONTACTS:
        chosen = widest_quad(total, total, point)
        total = PATCH_CONTACTS
    for i in range(total):
        candidate_feature[world, start + i] = code[chosen[i]]
        candidate_seed[world, start + i] = normal
    return total
