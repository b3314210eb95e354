"""Which patches of two shapes nearly lie on one another, told from the features by which they touch. Never taped.

Two polygons whose normals oppose each other within `ALIGNED`, or a line within that angle of a polygon's plane, touch
by several points (`patch_search`). Otherwise the pair keeps the one contact of its features. The rule is MuJoCo's.
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.box_contact import digit, region_rank
from warpsim.collision.core import Core
from warpsim.collision.kinds import BOX, CAPSULE, CYLINDER, HULL
from warpsim.collision.patch import SIDE, patch_normal, patch_point, patch_size
from warpsim.collision.support import HullData
from warpsim.core.precision import real, vec3

ALIGNED = wp.constant(real(0.996))
"""Least cosine between opposite normals of two faces that lie on one another: 5.1 degrees."""
LEVEL = wp.constant(real(0.0893532316))
"""Greatest sine of the angle between a line and a face that it lies on: of the same angle."""


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
def facing_polygon(core: Core, vertex: int, way: vec3, hulls: HullData) -> int:
    """Of the polygons about a hull's vertex (its place in `HullData`) the one that looks most along `way`, or −1."""
    out = int(-1)
    best = real(0.0)
    for i in range(hulls.vertex_patch_start[vertex], hulls.vertex_patch_start[vertex + 1]):
        cosine = wp.dot(patch_normal(core, hulls.vertex_patch[i], hulls), way)
        if cosine > best:
            best = cosine
            out = hulls.vertex_patch[i]
    return out


@wp.func
def next_polygon(core: Core, feature: int, way: vec3, hulls: HullData, after: int) -> int:
    """The next polygon (number above `after`) that a core's feature belongs to, or −1.

    Polygons that a file names may part a hull otherwise than its own faces: a face or edge that lies in none of them
    touches alone, as in MuJoCo.

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
        rank = region_rank(feature)
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
    """A hull's line number i as patch and point: the edge itself, or the one before its vertex in patch i."""
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
def level_line(
    lines: Core, feature: int, faces: Core, face: int, out_of_faces: vec3, second: int, hulls: HullData
) -> Meeting:
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
        return 4 - region_rank(feature)
    if core.kind == CYLINDER and (feature == 1 or feature == 2):
        return 3
    if core.kind == CYLINDER and feature >= 3:
        return 1
    return 2


@wp.func
def find_meeting(a: Core, feature_a: int, b: Core, feature_b: int, normal: vec3, hulls: HullData) -> Meeting:
    """The patches by which two features lie on one another, if any: two polygons, or a line and a polygon."""
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
