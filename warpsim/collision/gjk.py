"""Closest or deepest points of two convex cores: GJK while they are apart, EPA once they overlap. Never taped.

G. van den Bergen, *Collision Detection in Interactive 3D Environments*, 2003, ch. 4. Works on the difference A − B, in world
axes: apart, its point nearest to the origin gives the distance; overlapping, its face nearest to the origin gives the depth.
Polytopes end exactly; curved shapes are polished later (`convex_contact`).
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.kinds import HULL
from warpsim.collision.maths import TINY
from warpsim.collision.support import HullData, core_support, hull_support
from warpsim.precision import EPSILON, mat33, real, vec3

GJK_STEPS = wp.constant(64)
EPA_VERTICES = wp.constant(48)
EPA_PLACES = wp.constant(49)
"""Vertices of the expanding polytope, and places for them and one candidate."""
EPA_FACES = wp.constant(96)
EPA_EDGES = wp.constant(64)
RELATIVE = wp.constant(real(64.0 * EPSILON))
"""Relative accuracy of GJK's squared distance."""
FLAT = wp.constant(real(4096.0 * EPSILON))
"""Tetrahedra with a smaller relative volume are flat."""
EPA_ACCURACY = wp.constant(real(max(1e-9, 64.0 * EPSILON)))
"""Relative accuracy of EPA's depth: finer facets than this turn over by rounding; Newton steps on the normal follow."""


@wp.struct
class Core:
    """One shape of a pair."""

    kind: int
    shape: int
    position: vec3
    frame: mat33
    size: vec3


@wp.struct
class Closest:
    """What the search found."""

    normal: vec3  # unit, from A to B, world frame
    distance: real  # of the cores, m
    point_a: vec3  # on A's core, in A's frame
    point_b: vec3


@wp.func
def support_of(core: Core, hulls: HullData, way: vec3) -> vec3:
    """Support point in the shape's own frame along a world direction."""
    m = wp.transpose(core.frame) @ way
    if core.kind == HULL:
        i = hull_support(hulls, core.shape, m)
        return hulls.vertex[hulls.vertex_start[core.shape] + i] * core.size[0]
    return core_support(core.kind, core.size, m)


@wp.func
def to_world(core: Core, local: vec3) -> vec3:
    return core.position + core.frame @ local


@wp.func
def segment_weights(p: vec3, q: vec3) -> vec3:
    """Barycentric weights of the segment's point nearest to the origin."""
    d = q - p
    dd = wp.dot(d, d)
    if dd < TINY * TINY:
        return vec3(real(1.0), real(0.0), real(0.0))
    t = wp.min(wp.max(-wp.dot(p, d) / dd, real(0.0)), real(1.0))
    return vec3(real(1.0) - t, t, real(0.0))


@wp.func
def triangle_weights(p: vec3, q: vec3, r: vec3) -> vec3:
    """Barycentric weights of the triangle's point nearest to the origin (Ericson, Real-Time Collision Detection, 5.1.5)."""
    n = wp.cross(q - p, r - p)
    nn = wp.dot(n, n)
    u = wp.dot(wp.cross(q, r), n)
    v = wp.dot(wp.cross(r, p), n)
    w = wp.dot(wp.cross(p, q), n)
    if nn > TINY * TINY and u >= real(0.0) and v >= real(0.0) and w >= real(0.0):
        return vec3(u / nn, v / nn, w / nn)
    pq = segment_weights(p, q)
    best = pq
    point = p * pq[0] + q * pq[1]
    least = wp.dot(point, point)
    qr = segment_weights(q, r)
    point = q * qr[0] + r * qr[1]
    if wp.dot(point, point) < least:
        least = wp.dot(point, point)
        best = vec3(real(0.0), qr[0], qr[1])
    rp = segment_weights(r, p)
    point = r * rp[0] + p * rp[1]
    if wp.dot(point, point) < least:
        best = vec3(rp[1], real(0.0), rp[0])
    return best


@wp.func
def encloses(w: wp.array(dtype=vec3)) -> bool:
    """Whether the tetrahedron w[0…3] holds the origin."""
    p = w[1] - w[0]
    q = w[2] - w[0]
    r = w[3] - w[0]
    volume = wp.abs(wp.dot(wp.cross(p, q), r))
    if volume <= FLAT * wp.length(p) * wp.length(q) * wp.length(r):  # too flat for its sides to be told apart
        return False
    for i in range(4):
        a = w[(i + 1) % 4]
        b = w[(i + 2) % 4]
        c = w[(i + 3) % 4]
        n = wp.cross(b - a, c - a)
        if wp.dot(n, w[i] - a) * wp.dot(n, -a) < real(0.0):
            return False
    return True


@wp.func
def nearest_weights(w: wp.array(dtype=vec3), count: int) -> wp.vec4d:
    """Barycentric weights of the simplex' point nearest to the origin; all negative where the origin is inside."""
    out = wp.vec4d()
    if count == 1:
        out[0] = wp.float64(1.0)
        return out
    if count == 2:
        s = segment_weights(w[0], w[1])
        return wp.vec4d(wp.float64(s[0]), wp.float64(s[1]), wp.float64(0.0), wp.float64(0.0))
    if count == 3:
        s = triangle_weights(w[0], w[1], w[2])
        return wp.vec4d(wp.float64(s[0]), wp.float64(s[1]), wp.float64(s[2]), wp.float64(0.0))
    if encloses(w):
        return wp.vec4d(wp.float64(-1.0), wp.float64(-1.0), wp.float64(-1.0), wp.float64(-1.0))
    least = real(1.0e30)
    for skip in range(4):
        i = (skip + 1) % 4
        j = (skip + 2) % 4
        k = (skip + 3) % 4
        s = triangle_weights(w[i], w[j], w[k])
        point = w[i] * s[0] + w[j] * s[1] + w[k] * s[2]
        if wp.dot(point, point) < least:
            least = wp.dot(point, point)
            out = wp.vec4d()
            out[i] = wp.float64(s[0])
            out[j] = wp.float64(s[1])
            out[k] = wp.float64(s[2])
    return out


@wp.func
def add_support(
    a: Core,
    b: Core,
    hulls: HullData,
    way: vec3,
    i: int,
    w: wp.array(dtype=vec3),
    wa: wp.array(dtype=vec3),
    wb: wp.array(dtype=vec3),
):
    """Stores the support of A − B along `way` as vertex i."""
    local_a = support_of(a, hulls, way)
    local_b = support_of(b, hulls, -way)
    wa[i] = local_a
    wb[i] = local_b
    w[i] = to_world(a, local_a) - to_world(b, local_b)


@wp.func
def gjk(
    a: Core,
    b: Core,
    hulls: HullData,
    w: wp.array(dtype=vec3),
    wa: wp.array(dtype=vec3),
    wb: wp.array(dtype=vec3),
    out_count: wp.array(dtype=int),
) -> Closest:
    """Distance of two cores; a distance of zero with `out_count[0]` simplex vertices where they overlap."""
    result = Closest()
    v = a.position - b.position
    if wp.dot(v, v) < TINY:
        v = vec3(real(1.0), real(0.0), real(0.0))
    count = int(0)
    last = real(1.0e30)
    for _step in range(GJK_STEPS):
        add_support(a, b, hulls, -v, count, w, wa, wb)
        vv = wp.dot(v, v)
        if count > 0 and vv - wp.dot(v, w[count]) <= RELATIVE * vv:
            break
        weights = nearest_weights(w, count + 1)
        if weights[0] < wp.float64(0.0):
            out_count[0] = 4
            result.distance = real(0.0)
            return result
        kept = int(0)
        v_new = vec3()
        pa = vec3()
        pb = vec3()
        for i in range(count + 1):
            if weights[i] > wp.float64(0.0):
                w[kept] = w[i]
                wa[kept] = wa[i]
                wb[kept] = wb[i]
                v_new += w[i] * real(weights[i])
                pa += wa[i] * real(weights[i])
                pb += wb[i] * real(weights[i])
                kept += 1
        vv = wp.dot(v_new, v_new)
        if vv >= last:
            break
        last = vv
        v = v_new
        count = kept
        result.point_a = pa
        result.point_b = pb
        result.distance = wp.sqrt(vv)
        if vv < real(1e-24):
            out_count[0] = kept
            result.distance = real(0.0)
            return result
        result.normal = -v / wp.sqrt(vv)
        if kept == 4:
            break
    out_count[0] = count
    return result


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
def epa(
    a: Core,
    b: Core,
    hulls: HullData,
    count: int,
    w: wp.array(dtype=vec3),
    wa: wp.array(dtype=vec3),
    wb: wp.array(dtype=vec3),
) -> Closest:
    """Depth of two overlapping cores, from a simplex of A − B that holds the origin."""
    corner = wp.zeros(shape=(EPA_FACES,), dtype=wp.vec3i)
    normal = wp.zeros(shape=(EPA_FACES,), dtype=vec3)
    offset = wp.zeros(shape=(EPA_FACES,), dtype=real)
    edge = wp.zeros(shape=(EPA_EDGES,), dtype=wp.vec2i)
    result = Closest()
    n = complete_simplex(a, b, hulls, count, w, wa, wb)
    if n < 4:
        result.normal = wp.normalize(b.position - a.position)
        if wp.length(result.normal) < real(0.5):
            result.normal = vec3(real(1.0), real(0.0), real(0.0))
        result.point_a = support_of(a, hulls, result.normal)
        result.point_b = support_of(b, hulls, -result.normal)
        result.distance = wp.dot(to_world(b, result.point_b) - to_world(a, result.point_a), result.normal)
        return result
    for f in range(4):
        i = (f + 1) % 4
        j = (f + 2) % 4
        k = (f + 3) % 4
        if wp.dot(wp.cross(w[j] - w[i], w[k] - w[i]), w[f] - w[i]) < real(0.0):
            add_face(i, j, k, f, w, corner, normal, offset)
        else:
            add_face(i, k, j, f, w, corner, normal, offset)
    faces = int(4)
    best = nearest_face(faces, offset)
    way = normal[best]
    depth = offset[best]
    nearest = corner[best]
    while n < EPA_VERTICES:
        if offset[best] < depth:  # the depth only grows; a smaller one is a facet turned over by rounding
            break
        way = normal[best]
        depth = offset[best]
        nearest = corner[best]
        add_support(a, b, hulls, way, n, w, wa, wb)
        if wp.dot(way, w[n]) - depth <= EPA_ACCURACY * (real(1.0) + depth):
            break
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
    p = nearest[0]
    q = nearest[1]
    r = nearest[2]
    weights = triangle_weights(w[p], w[q], w[r])
    result.normal = way
    result.distance = -depth
    result.point_a = wa[p] * weights[0] + wa[q] * weights[1] + wa[r] * weights[2]
    result.point_b = wb[p] * weights[0] + wb[q] * weights[1] + wb[r] * weights[2]
    return result


@wp.func
def closest_cores(a: Core, b: Core, hulls: HullData) -> Closest:
    """Closest points of two cores, or deepest ones where they overlap."""
    w = wp.zeros(shape=(EPA_PLACES,), dtype=vec3)
    wa = wp.zeros(shape=(EPA_PLACES,), dtype=vec3)
    wb = wp.zeros(shape=(EPA_PLACES,), dtype=vec3)
    count = wp.zeros(shape=(1,), dtype=int)
    result = gjk(a, b, hulls, w, wa, wb, count)
    if result.distance > real(0.0):
        return result
    return epa(a, b, hulls, count[0], w, wa, wb)
