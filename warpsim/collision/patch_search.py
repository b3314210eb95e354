"""Which points of two patches touch: MuJoCo's contacts of faces and edges that nearly lie on one another. Never taped.

Two polygons whose normals oppose each other within `ALIGNED`, or a line within that angle of a polygon's plane, touch
by several points. Otherwise the pair keeps the one contact of its features.
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.box_contact import digit
from warpsim.collision.core import Core
from warpsim.collision.kinds import BOX, CAPSULE, CYLINDER, HULL
from warpsim.collision.patch import SIDE, patch_normal, patch_point, patch_size
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
from warpsim.collision.selection import TIE
from warpsim.collision.support import HullData
from warpsim.core.precision import real, vec3

ALIGNED = wp.constant(real(0.996))
"""Least cosine between opposite normals of two faces that lie on one another: 5.1 degrees."""
LEVEL = wp.constant(real(0.0893532316))
"""Greatest sine of the angle between a line and a face that it lies on: of the same angle."""
CLIP_POINTS = wp.constant(256)
"""Room for the points of a clipped polygon; more are left out."""
PATCH_CONTACTS = wp.constant(4)


@wp.func
def hull_feature_vertex(hulls: HullData, shape: int, feature: int, i: int) -> int:
    """Vertex i of a hull's vertex, edge or face (as in `convex_feature`), or −1 beyond its last."""
    part = feature // 3
    if feature % 3 == 0:
        if i == 0:
            return part
        return -1
    if feature % 3 == 1:
        if i < 2:
            return hulls.edge[hulls.edge_start[shape] + part, i]
        return -1
    if i < 3:
        return hulls.face_vertex[hulls.face_start[shape] + part, i]
    return -1


@wp.func
def loop_place(hulls: HullData, shape: int, patch: int, vertex: int) -> int:
    """Where a vertex stands in a hull's patch, or −1."""
    first = hulls.loop_start[hulls.patch_start[shape] + patch]
    for i in range(first, hulls.loop_start[hulls.patch_start[shape] + patch + 1]):
        if hulls.loop[i] == vertex:
            return i - first
    return -1


@wp.func
def next_polygon(core: Core, feature: int, way: vec3, hulls: HullData, after: int) -> int:
    """The next polygon (number above `after`) that a core's feature belongs to, or −1.

    `way` is the world direction in which the core touches: it tells which cap a cylinder's feature belongs to.
    """
    if core.kind == HULL:
        vertex = hulls.vertex_start[core.shape] + hull_feature_vertex(hulls, core.shape, feature, 0)
        for i in range(hulls.vertex_patch_start[vertex], hulls.vertex_patch_start[vertex + 1]):
            patch = hulls.vertex_patch[i]
            if patch > after:
                holds = bool(True)
                for k in range(1, 3):
                    other = hull_feature_vertex(hulls, core.shape, feature, k)
                    if other >= 0 and holds:
                        holds = loop_place(hulls, core.shape, patch, other) >= 0
                if holds:
                    return patch
        return -1
    if core.kind == BOX:
        for patch in range(after + 1, 6):
            if digit(feature, patch // 2) == 1 - 2 * (patch % 2):
                return patch
        return -1
    if core.kind == CYLINDER and after < 0:
        up = wp.dot(way, core.frame @ vec3(real(0.0), real(0.0), real(1.0)))
        if feature == 0:
            return -1
        if up > real(0.0):
            return 0
        return 1
    return -1


@wp.func
def line_count(core: Core, feature: int, hulls: HullData) -> int:
    """Straight edges that a core's feature is, or ends."""
    if core.kind == HULL:
        if feature % 3 == 1:
            return 1
        if feature % 3 == 0:
            vertex = hulls.vertex_start[core.shape] + feature // 3
            return hulls.vertex_patch_start[vertex + 1] - hulls.vertex_patch_start[vertex]
        return 0
    if core.kind == BOX:
        rank = wp.abs(digit(feature, 0)) + wp.abs(digit(feature, 1)) + wp.abs(digit(feature, 2))
        if rank == 3:
            return 3
        if rank == 2:
            return 1
        return 0
    if core.kind == CYLINDER:
        if feature == 0 or feature >= 3:
            return 1
        return 0
    return 1


@wp.func
def hull_line(core: Core, feature: int, i: int, hulls: HullData) -> wp.vec2i:
    """A hull's line number i as patch and point: the edge itself, or the edge that comes before its vertex in patch i."""
    if feature % 3 == 1:
        p = hull_feature_vertex(hulls, core.shape, feature, 0)
        q = hull_feature_vertex(hulls, core.shape, feature, 1)
        first = hulls.vertex_start[core.shape] + p
        for j in range(hulls.vertex_patch_start[first], hulls.vertex_patch_start[first + 1]):
            patch = hulls.vertex_patch[j]
            size = patch_size(core, patch, hulls)
            k = loop_place(hulls, core.shape, patch, p)
            other = loop_place(hulls, core.shape, patch, q)
            if other >= 0 and other == (k + 1) % size:
                return wp.vec2i(patch, k)
            if other >= 0 and k == (other + 1) % size:
                return wp.vec2i(patch, other)
        return wp.vec2i(-1, 0)
    vertex = hulls.vertex_start[core.shape] + feature // 3
    patch = hulls.vertex_patch[hulls.vertex_patch_start[vertex] + i]
    size = patch_size(core, patch, hulls)
    return wp.vec2i(patch, (loop_place(hulls, core.shape, patch, feature // 3) + size - 1) % size)


@wp.func
def box_line(feature: int, i: int) -> wp.vec2i:
    """A box's line number i as patch and point: the edge itself, or the one along axis i at its corner."""
    axis = i
    for k in range(3):
        if digit(feature, k) == 0:
            axis = k
    face = (axis + 1) % 3
    side = digit(feature, face)
    patch = 2 * face + (1 - side) // 2
    for k in range(4):
        corner = k
        after = (k + 1) % 4
        if patch % 2 == 1:
            corner = 3 - k
            after = 3 - (k + 1) % 4
        # signs of a face's corners as in `face_corner`: v along the next axis, w along the one after
        v = 1
        if corner == 1 or corner == 2:
            v = -1
        v_after = 1
        if after == 1 or after == 2:
            v_after = -1
        w = 1
        if corner >= 2:
            w = -1
        w_after = 1
        if after >= 2:
            w_after = -1
        if (face + 1) % 3 == axis:
            if v != v_after and w == digit(feature, (face + 2) % 3):
                return wp.vec2i(patch, k)
        elif w != w_after and v == digit(feature, (face + 1) % 3):
            return wp.vec2i(patch, k)
    return wp.vec2i(-1, 0)


@wp.func
def feature_line_of(core: Core, feature: int, i: int, hulls: HullData) -> wp.vec2i:
    """Line number i of a feature, as patch and first point (−1: none)."""
    if core.kind == HULL:
        return hull_line(core, feature, i, hulls)
    if core.kind == BOX:
        return box_line(feature, i)
    if core.kind == CYLINDER:
        return wp.vec2i(SIDE, 0)
    return wp.vec2i(0, 0)


@wp.struct
class Meeting:
    """Two patches that lie on one another."""

    found: bool
    second: int  # 1: the reference is the second shape's
    reference: int
    incident: int
    point: int  # of a line on the incident patch, its first point; −1: the whole polygon
    round: bool  # the line is of a cylinder's side or a capsule
    own: int  # feature of the incident shape
    other: int  # feature of the reference shape
    way: vec3  # unit normal of the features, out of the incident shape


@wp.func
def meeting_code(meeting: Meeting, place: int, m: int, k: int) -> wp.int64:
    """Code of a point of a meeting's clipped patch."""
    if meeting.round:
        point = ROUND_LINE + k + 2 * meeting.own
        return patch_code(meeting.second, place, meeting.reference, meeting.other, m, point)
    return patch_code(meeting.second, place, meeting.reference, meeting.incident, m, k)


@wp.func
def aligned_polygons(a: Core, feature_a: int, b: Core, feature_b: int, normal: vec3, hulls: HullData) -> Meeting:
    """The two polygons of the features that oppose each other best."""
    out = Meeting()
    best = ALIGNED
    i = next_polygon(a, feature_a, normal, hulls, -1)
    while i >= 0:
        outward = patch_normal(a, i, hulls)
        j = next_polygon(b, feature_b, -normal, hulls, -1)
        while j >= 0:
            cosine = -wp.dot(outward, patch_normal(b, j, hulls))
            if cosine > best:
                best = cosine
                out.found = True
                out.second = 1
                out.reference = j
                out.incident = i
                out.point = -1
            j = next_polygon(b, feature_b, -normal, hulls, j)
        i = next_polygon(a, feature_a, normal, hulls, i)
    return out


@wp.func
def level_line(lines: Core, feature: int, faces: Core, face: int, out_of_faces: vec3, second: int, hulls: HullData) -> Meeting:
    """The first line of a feature that lies on a polygon of the other's; `out_of_faces` points to the lines' core."""
    out = Meeting()
    j = next_polygon(faces, face, out_of_faces, hulls, -1)
    while j >= 0:
        outward = patch_normal(faces, j, hulls)
        for i in range(line_count(lines, feature, hulls)):
            line = feature_line_of(lines, feature, i, hulls)
            if line[0] >= 0 and not out.found:
                p = patch_point(lines, line[0], line[1], -outward, hulls)
                q = patch_point(lines, line[0], (line[1] + 1) % patch_size(lines, line[0], hulls), -outward, hulls)
                if wp.abs(wp.dot(wp.normalize(q - p), outward)) < LEVEL:
                    out.found = True
                    out.second = second
                    out.reference = j
                    out.incident = line[0]
                    out.point = line[1]
                    out.round = lines.kind == CYLINDER or lines.kind == CAPSULE
                    out.own = feature
                    out.other = face
                    out.way = -out_of_faces
        if out.found:
            return out
        j = next_polygon(faces, face, out_of_faces, hulls, j)
    return out


@wp.func
def feature_size(core: Core, feature: int) -> int:
    """1, 2 or 3: a corner, an edge, or a face."""
    if core.kind == HULL:
        return 1 + feature % 3
    if core.kind == BOX:
        return 4 - wp.abs(digit(feature, 0)) - wp.abs(digit(feature, 1)) - wp.abs(digit(feature, 2))
    if core.kind == CYLINDER and (feature == 1 or feature == 2):
        return 3
    if core.kind == CYLINDER and feature >= 3:
        return 1
    return 2


@wp.func
def find_meeting(a: Core, feature_a: int, b: Core, feature_b: int, normal: vec3, hulls: HullData) -> Meeting:
    """The patches by which two features lie on one another, if any: two polygons, a line of one, a line of the other."""
    out = aligned_polygons(a, feature_a, b, feature_b, normal, hulls)
    size_a = feature_size(a, feature_a)
    size_b = feature_size(b, feature_b)
    if not out.found and size_a < 3 and size_a <= size_b:
        out = level_line(a, feature_a, b, feature_b, -normal, 1, hulls)
    if not out.found and size_b < 3:
        out = level_line(b, feature_b, a, feature_a, normal, 0, hulls)
    if not out.found and size_a < 3 and size_a > size_b:
        out = level_line(a, feature_a, b, feature_b, -normal, 1, hulls)
    return out


@wp.func
def cut_code(meeting: Meeting, edge: int, side: int, sides: int) -> wp.int64:
    """Code of the point where an edge of the polygon being clipped meets a side: an incident edge (edge ≥ 0), or what
    an earlier side (−1 − edge) has left, which it meets at the reference's corner between the two."""
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


@wp.func
def widest_quad(count: int, turns: int, point: wp.array(dtype=vec3)) -> wp.vec4i:
    """Four corners of a convex polygon that span much of it: calipers, as in MuJoCo, from each of the first `turns`.

    Growth by less than rounding does not count, so that regular polygons keep their corners.
    """
    a = int(0)
    b = int(1)
    c = int(2)
    d = int(3)
    best = quad_area(point[0], point[1], point[2], point[3])
    out = wp.vec4i(a, b, c, d)
    for start in range(turns):
        a = start
        if b == a:
            b = (b + 1) % count
            if c == b:
                c = (c + 1) % count
                if d == c:
                    d = (d + 1) % count
        growing = bool(True)
        while growing:
            step = (d + 1) % count
            area = quad_area(point[a], point[b], point[c], point[step])
            growing = area > best + TIE * best
            if growing:
                best = area
                d = step
                out = wp.vec4i(a, b, c, d)
                moving = bool(True)
                while moving:
                    step = (c + 1) % count
                    area = quad_area(point[a], point[b], point[step], point[d])
                    moving = area > best + TIE * best
                    if moving:
                        best = area
                        c = step
                        out = wp.vec4i(a, b, c, d)
                moving = bool(True)
                while moving:
                    step = (b + 1) % count
                    area = quad_area(point[a], point[step], point[c], point[d])
                    moving = area > best + TIE * best
                    if moving:
                        best = area
                        b = step
                        out = wp.vec4i(a, b, c, d)
    return out


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
