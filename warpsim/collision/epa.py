"""Deepest points of two overlapping convex cores (expanding polytope), and both searches in one. Never taped.

G. van den Bergen, *Collision Detection in Interactive 3D Environments*, 2003, ch. 4: a polytope inside A − B grows
toward its boundary at the face nearest to the origin, until that face is on the boundary. Its distance is the depth.
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.core import Core, support_of, to_world
from warpsim.collision.gjk import Closest, add_support, gjk, three_rows
from warpsim.collision.maths import TINY
from warpsim.collision.search_room import EPA_EDGES, EPA_FACES, EPA_VERTICES, SearchRoom
from warpsim.collision.simplex import triangle_weights
from warpsim.collision.support import HullData, is_polytope
from warpsim.core.precision import EPSILON, real, vec3

SIMPLEX_PLACES = wp.constant(5)
EPA_ACCURACY = wp.constant(real(max(1e-9, 64.0 * EPSILON)))
"""Accuracy (m) of the depth of curved cores: finer facets than this turn over by rounding; Newton steps on the normal
follow."""
FLAT_ACCURACY = wp.constant(real(64.0 * EPSILON))
"""Of polytopes, whose search ends at a facet of their difference, as a share of its extent."""


@wp.func
def complete_simplex(
    a: Core,
    b: Core,
    hulls: HullData,
    count: int,
    w: wp.array(dtype=vec3),
    wa: wp.array(dtype=vec3),
    wb: wp.array(dtype=vec3),
) -> int:
    """Grows a simplex through the origin to a tetrahedron; returns its vertices, fewer than 4 where A − B is flat."""
    n = count
    for i in range(12):
        if n < 4:
            way = vec3()
            way[i % 3] = real(1.0)
            if n == 2:
                way = wp.cross(w[1] - w[0], way)
            if n == 3:
                way = wp.cross(w[1] - w[0], w[2] - w[0])
            if i % 2 == 1:
                way = -way
            if wp.dot(way, way) > TINY * TINY:
                add_support(a, b, hulls, way, n, w, wa, wb)
                new = w[n] - w[0]
                grows = wp.dot(new, new) > real(1e-20)
                if n == 2:
                    across = wp.cross(w[1] - w[0], new)
                    grows = wp.dot(across, across) > real(1e-30)
                if n == 3:
                    grows = wp.abs(wp.dot(wp.cross(w[1] - w[0], w[2] - w[0]), new)) > real(1e-24)
                if grows:
                    n += 1
    return n


@wp.func
def add_face(
    i: int,
    j: int,
    k: int,
    place: int,
    w: wp.array(dtype=vec3),
    corner: wp.array(dtype=wp.vec3i),
    normal: wp.array(dtype=vec3),
    offset: wp.array(dtype=real),
):
    """Stores a face whose normal points out of the polytope; needles get an offset that is never chosen."""
    n = wp.cross(w[j] - w[i], w[k] - w[i])
    length = wp.length(n)
    corner[place] = wp.vec3i(i, j, k)
    if length < real(1e-18):
        normal[place] = vec3()
        offset[place] = real(1.0e30)
    else:
        normal[place] = n / length
        offset[place] = wp.dot(n, w[i]) / length


@wp.func
def toggle_edge(i: int, j: int, count: int, edge: wp.array(dtype=wp.vec2i)) -> int:
    """Adds edge i → j to the horizon, or takes its reverse out; returns the new number of edges."""
    for e in range(count):
        if edge[e][0] == j and edge[e][1] == i:
            edge[e] = edge[count - 1]
            return count - 1
    if count < EPA_EDGES:
        edge[count] = wp.vec2i(i, j)
        return count + 1
    return count


@wp.func
def nearest_face(faces: int, offset: wp.array(dtype=real)) -> int:
    """Face with the least distance from the origin."""
    best = int(0)
    for f in range(1, faces):
        if offset[f] < offset[best]:
            best = f
    return best


@wp.func
def facing_origin(
    best: wp.vec3i,
    depth: real,
    accuracy: real,
    faces: int,
    w: wp.array(dtype=vec3),
    corner: wp.array(dtype=wp.vec3i),
    offset: wp.array(dtype=real),
) -> wp.vec3i:
    """Of the triangles in the plane of the nearest face, the one that the origin projects into.

    A facet of A − B is often a polygon (two edges make a parallelogram), whose triangles all have the same offset.
    """
    chosen = best
    least = real(1.0e30)
    for f in range(faces):
        if offset[f] <= depth + accuracy:
            c = corner[f]
            weights = triangle_weights(w[c[0]], w[c[1]], w[c[2]])
            nearest = wp.length(w[c[0]] * weights[0] + w[c[1]] * weights[1] + w[c[2]] * weights[2])
            if nearest < least:
                least = nearest
                chosen = c
    return chosen


@wp.func
def _depth_of_flat(a: Core, b: Core, hulls: HullData) -> Closest:
    """Where A − B has no volume: along the line between the cores' places."""
    result = Closest()
    result.normal = wp.normalize(b.position - a.position)
    if wp.length(result.normal) < real(0.5):
        result.normal = vec3(real(1.0), real(0.0), real(0.0))
    result.point_a = support_of(a, hulls, result.normal)
    result.point_b = support_of(b, hulls, -result.normal)
    result.distance = wp.dot(to_world(b, result.point_b) - to_world(a, result.point_a), result.normal)
    return result


@wp.func
def _add_first_faces(
    w: wp.array(dtype=vec3),
    corner: wp.array(dtype=wp.vec3i),
    normal: wp.array(dtype=vec3),
    offset: wp.array(dtype=real),
):
    """The four faces of the first simplex, seen from outside."""
    for f in range(4):
        i = (f + 1) % 4
        j = (f + 2) % 4
        k = (f + 3) % 4
        if wp.dot(wp.cross(w[j] - w[i], w[k] - w[i]), w[f] - w[i]) < real(0.0):
            add_face(i, j, k, f, w, corner, normal, offset)
        else:
            add_face(i, k, j, f, w, corner, normal, offset)


@wp.func
def _accuracy(a: Core, b: Core, w: wp.array(dtype=vec3)) -> real:
    """By how much (m) the depth may fall short; w holds the first simplex."""
    if is_polytope(a.kind) and is_polytope(b.kind):
        return FLAT_ACCURACY * (wp.length(w[0]) + wp.length(w[1]) + wp.length(w[2]) + wp.length(w[3]))
    return EPA_ACCURACY


@wp.func
def _on_facet(
    nearest: wp.vec3i,
    way: vec3,
    depth: real,
    w: wp.array(dtype=vec3),
    wa: wp.array(dtype=vec3),
    wb: wp.array(dtype=vec3),
) -> Closest:
    """The touching points on the facet at which the search ended."""
    result = Closest()
    p = nearest[0]
    q = nearest[1]
    r = nearest[2]
    weights = triangle_weights(w[p], w[q], w[r])
    result.normal = way
    result.distance = -depth
    result.point_a = wa[p] * weights[0] + wa[q] * weights[1] + wa[r] * weights[2]
    result.point_b = wb[p] * weights[0] + wb[q] * weights[1] + wb[r] * weights[2]
    result.corners_a = three_rows(wa, p, q, r)
    result.corners_b = three_rows(wb, p, q, r)
    return result


@wp.func
def epa(
    a: Core,
    b: Core,
    hulls: HullData,
    count: int,
    w: wp.array(dtype=vec3),
    wa: wp.array(dtype=vec3),
    wb: wp.array(dtype=vec3),
    normal: wp.array(dtype=vec3),
    corner: wp.array(dtype=wp.vec3i),
    offset: wp.array(dtype=real),
    edge: wp.array(dtype=wp.vec2i),
) -> Closest:
    """Depth of two overlapping cores, from a simplex of A − B that holds the origin; the last four are room."""
    n = complete_simplex(a, b, hulls, count, w, wa, wb)
    if n < 4:
        return _depth_of_flat(a, b, hulls)
    accuracy = _accuracy(a, b, w)
    _add_first_faces(w, corner, normal, offset)
    faces = int(4)
    best = nearest_face(faces, offset)
    way = normal[best]
    depth = offset[best]
    nearest = corner[best]
    least = real(1.0e30)  # of A − B along the normals met: no way out is longer than the shortest of these
    least_way = way
    least_corner = nearest
    converged = bool(False)
    while n < EPA_VERTICES:
        if offset[best] < depth:  # the depth only grows; a smaller one is a facet turned over by rounding
            break
        way = normal[best]
        depth = offset[best]
        nearest = corner[best]
        add_support(a, b, hulls, way, n, w, wa, wb)
        extent = wp.dot(way, w[n])
        if extent - depth <= accuracy:
            nearest = facing_origin(nearest, depth, accuracy, faces, w, corner, offset)
            converged = True
            break
        if extent < least:
            least = extent
            least_way = way
            least_corner = nearest
        edges = int(0)
        f = int(0)
        while f < faces:
            c = corner[f]
            if wp.dot(normal[f], w[n]) - offset[f] > TINY or offset[f] > real(1.0e29):
                edges = toggle_edge(c[0], c[1], edges, edge)
                edges = toggle_edge(c[1], c[2], edges, edge)
                edges = toggle_edge(c[2], c[0], edges, edge)
                faces -= 1
                corner[f] = corner[faces]
                normal[f] = normal[faces]
                offset[f] = offset[faces]
            else:
                f += 1
        if edges < 3 or faces + edges > EPA_FACES:
            break
        for e in range(edges):
            add_face(edge[e][0], edge[e][1], n, faces, w, corner, normal, offset)
            faces += 1
        n += 1
        best = nearest_face(faces, offset)
    if not converged and least < real(1.0e29):  # the last face may be a sliver with any normal
        way = least_way
        depth = least
        nearest = least_corner
    return _on_facet(nearest, way, depth, w, wa, wb)


@wp.func
def deepest_cores(
    a: Core,
    b: Core,
    hulls: HullData,
    count: int,
    simplex: wp.array(dtype=vec3),
    simplex_a: wp.array(dtype=vec3),
    simplex_b: wp.array(dtype=vec3),
    room: SearchRoom,
    row: int,
) -> Closest:
    """`epa` with room for its polytope, which only overlapping cores need."""
    w = room.point[row, 0]
    wa = room.point[row, 1]
    wb = room.point[row, 2]
    for i in range(count):
        w[i] = simplex[i]
        wa[i] = simplex_a[i]
        wb[i] = simplex_b[i]
    return epa(a, b, hulls, count, w, wa, wb, room.point[row, 3], room.corner[row], room.offset[row], room.horizon[row])


@wp.func
def closest_cores(a: Core, b: Core, hulls: HullData, limit: real, room: SearchRoom, row: int) -> Closest:
    """Closest points of two cores, or deepest ones where they overlap; only some distance beyond `limit` (m)."""
    w = wp.zeros(shape=(SIMPLEX_PLACES,), dtype=vec3)
    wa = wp.zeros(shape=(SIMPLEX_PLACES,), dtype=vec3)
    wb = wp.zeros(shape=(SIMPLEX_PLACES,), dtype=vec3)
    count = wp.zeros(shape=(1,), dtype=int)
    result = gjk(a, b, hulls, limit, w, wa, wb, count)
    if result.distance > real(0.0):
        return result
    return deepest_cores(a, b, hulls, count[0], w, wa, wb, room, row)
