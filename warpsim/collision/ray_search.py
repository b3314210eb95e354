"""Search, untaped: the first surface a ray meets, in a shape's own frame.

A ray is o + t·d with a unit direction; it meets a surface from either side, except a plane, which it meets only from
above. So does `mj_ray`, whose answers these are.
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.bounds import bounding_radius
from warpsim.collision.kinds import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, PLANE, SPHERE
from warpsim.collision.maths import TINY
from warpsim.collision.ray_surface import BOTTOM, SIDE, TOP, RayTriangles, has_triangles
from warpsim.core.precision import EPSILON, quat, real, vec3
from warpsim.core.spatial import quat_matrix

wp.set_module_options({"enable_backward": False, "max_unroll": 1})

MISS = wp.constant(real(1.0e30))
EDGE = wp.constant(real(64.0 * EPSILON))
"""Triangles are wider by this share, so that no ray slips between two of them."""


@wp.struct
class Hit:
    """The nearest surface found so far."""

    t: real  # m
    piece: int
    least: real  # no surface nearer than this counts


@wp.func
def _nearer(hit: Hit, t: real, piece: int) -> Hit:
    """The nearer of a hit and a new one at t; a NaN counts for nothing."""
    if t >= hit.least and t < hit.t:
        return Hit(t, piece, hit.least)
    return hit


@wp.func
def _meet_ball(hit: Hit, o: vec3, d: vec3, radius: real, piece: int, low: real, high: real) -> Hit:
    """A ball about the origin, met where low ≤ z ≤ high; the direction may have any length."""
    a = wp.dot(d, d)
    b = wp.dot(o, d)
    rest = b * b - a * (wp.dot(o, o) - radius * radius)
    if rest < real(0.0):
        return hit
    root = wp.sqrt(rest)
    out = hit
    for k in range(2):
        t = (-b + real(2 * k - 1) * root) / a
        z = o[2] + t * d[2]
        if z >= low and z <= high:
            out = _nearer(out, t, piece)
    return out


@wp.func
def _meet_box(hit: Hit, o: vec3, d: vec3, size: vec3) -> Hit:
    out = hit
    for k in range(6):
        axis = k // 2
        t = (real(2 * (k % 2) - 1) * size[axis] - o[axis]) / d[axis]
        p = o + d * t
        u = (axis + 1) % 3
        v = (axis + 2) % 3
        if wp.abs(p[u]) <= size[u] and wp.abs(p[v]) <= size[v]:
            out = _nearer(out, t, k)
    return out


@wp.func
def _meet_side(hit: Hit, o: vec3, d: vec3, low: real, high: real, half: real) -> Hit:
    """The side of a tapered cylinder: ρ = m + s·z, |z| ≤ half, with radius `low` at −half and `high` at +half."""
    s = real(0.5) * (high - low) / half
    m = real(0.5) * (high + low) + s * o[2]
    a = d[0] * d[0] + d[1] * d[1] - s * s * d[2] * d[2]
    b = o[0] * d[0] + o[1] * d[1] - s * d[2] * m
    c = o[0] * o[0] + o[1] * o[1] - m * m
    rest = b * b - a * c
    if rest < real(0.0):
        return hit
    # The stable roots of a·t² + 2·b·t + c; a zero divisor gives an infinity or NaN, which is no hit.
    q = -b - wp.sqrt(rest)
    if b < real(0.0):
        q = -b + wp.sqrt(rest)
    out = hit
    for k in range(2):
        t = q / a
        if k == 1:
            t = c / q
        if wp.abs(o[2] + t * d[2]) <= half:
            out = _nearer(out, t, SIDE)
    return out


@wp.func
def _meet_cap(hit: Hit, o: vec3, d: vec3, height: real, radius: real, piece: int) -> Hit:
    t = (height - o[2]) / d[2]
    x = o[0] + t * d[0]
    y = o[1] + t * d[1]
    if x * x + y * y <= radius * radius:
        return _nearer(hit, t, piece)
    return hit


@wp.func
def _meet_primitive(hit: Hit, kind: int, size: vec3, o: vec3, d: vec3) -> Hit:
    everywhere = MISS
    if kind == SPHERE:
        return _meet_ball(hit, o, d, size[0], 0, -everywhere, everywhere)
    if kind == ELLIPSOID:
        return _meet_ball(hit, wp.cw_div(o, size), wp.cw_div(d, size), real(1.0), 0, -everywhere, everywhere)
    if kind == BOX:
        return _meet_box(hit, o, d, size)
    if kind == CAPSULE:
        end = vec3(real(0.0), real(0.0), size[1])
        out = _meet_side(hit, o, d, size[0], size[0], wp.max(size[1], TINY))
        out = _meet_ball(out, o - end, d, size[0], TOP, real(0.0), everywhere)
        return _meet_ball(out, o + end, d, size[0], BOTTOM, -everywhere, real(0.0))
    if kind == CYLINDER:
        round_side = _meet_side(hit, o, d, size[0], size[0], size[1])
        with_top = _meet_cap(round_side, o, d, size[1], size[0], TOP)
        return _meet_cap(with_top, o, d, -size[1], size[0], BOTTOM)
    if kind == CONE:
        slanted = _meet_side(hit, o, d, size[0], real(0.0), size[1])
        return _meet_cap(slanted, o, d, -size[1], size[0], BOTTOM)
    return hit


@wp.func
def _meet_triangle(hit: Hit, mesh: RayTriangles, t: int, scale: real, o: vec3, d: vec3) -> Hit:
    """One triangle (Möller and Trumbore 1997)."""
    a = mesh.vertex[mesh.triangle[t, 0]] * scale
    ab = mesh.vertex[mesh.triangle[t, 1]] * scale - a
    ac = mesh.vertex[mesh.triangle[t, 2]] * scale - a
    across = wp.cross(d, ac)
    inverse = real(1.0) / wp.dot(ab, across)  # infinite where the ray lies in the plane: no hit
    away = o - a
    u = wp.dot(away, across) * inverse
    turned = wp.cross(away, ab)
    v = wp.dot(d, turned) * inverse
    if u >= -EDGE and v >= -EDGE and u + v <= real(1.0) + EDGE:
        return _nearer(hit, wp.dot(ac, turned) * inverse, t)
    return hit


@wp.func
def _single(x: real) -> wp.float32:
    """x in single precision, never zero: the boxes' test divides by it."""
    if wp.abs(x) < real(1.0e-18):
        return wp.float32(1.0e-18)
    return wp.float32(x)


@wp.func
def _meet_triangles(hit: Hit, mesh: RayTriangles, shape: int, scale: real, o: vec3, d: vec3, entry: real) -> Hit:
    """All triangles whose boxes the ray may meet; the boxes are searched from t = `entry`, near the mesh."""
    start = (o + d * entry) / scale
    query = wp.bvh_query_ray(
        mesh.bvh[shape],
        wp.vec3f(wp.float32(start[0]), wp.float32(start[1]), wp.float32(start[2])),
        wp.vec3f(_single(d[0]), _single(d[1]), _single(d[2])),
    )
    out = hit
    number = int(0)
    while wp.bvh_query_next(query, number):
        out = _meet_triangle(out, mesh, mesh.start[shape] + number, scale, o, d)
    return out


@wp.func
def _meet_shape(kind: int, shape: int, size: vec3, mesh: RayTriangles, o: vec3, d: vec3) -> Hit:
    """Nearest surface of one shape, ray in its frame; t = MISS for none."""
    nothing = Hit(MISS, 0, real(0.0))
    if kind == PLANE:
        if d[2] > -TINY:
            return nothing
        return _nearer(nothing, -o[2] / d[2], 0)
    # From the point of the ray nearest the shape's origin, so that rays from far keep the digits of a small shape.
    shift = -wp.dot(o, d)
    p = o + d * shift
    radius = bounding_radius(kind, size, mesh.unit_radius[shape])
    if wp.dot(p, p) > radius * radius * real(1.0001) or shift < -radius:
        return nothing
    hit = Hit(MISS, 0, -shift)
    if has_triangles(kind):
        hit = _meet_triangles(hit, mesh, shape, size[0], p, d, wp.max(-shift, -real(1.01) * radius))
    else:
        hit = _meet_primitive(hit, kind, size, p, d)
    if hit.t < MISS:
        return Hit(hit.t + shift, hit.piece, real(0.0))
    return nothing


@wp.kernel(enable_backward=False)
def ray_search_kernel(
    # topology
    shape_kind: wp.array(dtype=int),
    target: wp.array2d(dtype=wp.uint8),
    mesh: RayTriangles,
    # state
    shape_position: wp.array2d(dtype=vec3),
    shape_rotation: wp.array2d(dtype=quat),
    shape_size: wp.array2d(dtype=vec3),
    origin: wp.array2d(dtype=vec3),
    direction: wp.array2d(dtype=vec3),
    # out
    hit_shape: wp.array2d(dtype=int),
    hit_piece: wp.array2d(dtype=int),
    hit_distance: wp.array2d(dtype=real),
):
    """First shape, piece and distance of every ray; shape −1 for none."""
    world, ray = wp.tid()
    hit_shape[world, ray] = -1
    way = direction[world, ray]
    length = wp.length(way)
    if length < TINY:
        return
    best = MISS
    for shape in range(shape_kind.shape[0]):
        if target[ray, shape] != wp.uint8(0):
            turn = wp.transpose(quat_matrix(shape_rotation[world, shape]))
            o = turn @ (origin[world, ray] - shape_position[world, shape])
            d = turn @ (way / length)
            hit = _meet_shape(shape_kind[shape], shape, shape_size[world, shape], mesh, o, d)
            if hit.t < best:
                best = hit.t
                hit_shape[world, ray] = shape
                hit_piece[world, ray] = hit.piece
                hit_distance[world, ray] = hit.t
