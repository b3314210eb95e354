"""The piece of a shape's surface that a ray met, as a smooth function: zero on the piece, its gradient outward.

Pieces, by kind: capsule and cylinder 0 side, 1 top, 2 bottom; box 2·axis + (1 for its positive face); cone 0 side,
2 base; meshes, hulls and height fields the triangle's number; the others 0.
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.kinds import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, HEIGHTFIELD, HULL, MESH, PLANE
from warpsim.core.precision import real, vec3

SIDE = wp.constant(0)
TOP = wp.constant(1)
BOTTOM = wp.constant(2)


@wp.struct
class RayTriangles:
    """Triangles of all meshes that rays may meet; arrays by shape are (ns,)."""

    bvh: wp.array(dtype=wp.uint64)  # boxes of the shape's triangles, at scale one
    start: wp.array(dtype=int)  # first triangle of the shape's mesh
    triangle: wp.array2d(dtype=int)  # (nt, 3) vertex numbers
    vertex: wp.array(dtype=vec3)  # m, at scale one
    unit_radius: wp.array(dtype=real)  # m: of a ball about the shape's origin at scale one


@wp.func
def has_triangles(kind: int) -> bool:
    """Whether rays meet a kind of shape as triangles."""
    return kind == MESH or kind == HULL or kind == HEIGHTFIELD


@wp.func
def _round(x: vec3, radius: real) -> tuple[real, vec3]:
    far = wp.length(x)
    return far - radius, x / far


@wp.func
def _tilted(x: vec3, along: real, up: real, offset: real) -> tuple[real, vec3]:
    """along·ρ + up·z − offset, ρ the distance from the z axis; (along, up) is a unit vector."""
    radius = wp.length(vec3(x[0], x[1], real(0.0)))
    return along * radius + up * x[2] - offset, vec3(along * x[0] / radius, along * x[1] / radius, up)


@wp.func
def _cone_side(size: vec3, x: vec3) -> tuple[real, vec3]:
    height = real(2.0) * size[1]
    slant = wp.length(vec3(size[0], height, real(0.0)))
    value, slope = _tilted(x, height / slant, size[0] / slant, size[1] * size[0] / slant)
    return value, slope


@wp.func
def _ellipsoid(size: vec3, x: vec3) -> tuple[real, vec3]:
    scaled = wp.cw_div(x, size)
    far = wp.length(scaled)
    slope = wp.cw_div(scaled, size) / far
    steepness = wp.length(slope)
    return (far - real(1.0)) / steepness, slope / steepness


@wp.func
def _box_face(size: vec3, piece: int, x: vec3) -> tuple[real, vec3]:
    axis = piece // 2
    sign = real(2 * (piece % 2) - 1)
    normal = vec3()
    if axis == 0:
        normal = vec3(sign, real(0.0), real(0.0))
    elif axis == 1:
        normal = vec3(real(0.0), sign, real(0.0))
    else:
        normal = vec3(real(0.0), real(0.0), sign)
    return wp.dot(normal, x) - size[axis], normal


@wp.func
def _triangle(mesh: RayTriangles, t: int, scale: real, x: vec3) -> tuple[real, vec3]:
    a = mesh.vertex[mesh.triangle[t, 0]]
    b = mesh.vertex[mesh.triangle[t, 1]]
    c = mesh.vertex[mesh.triangle[t, 2]]
    normal = wp.normalize(wp.cross(b - a, c - a))
    return wp.dot(normal, x - a * scale), normal


@wp.func
def surface_piece(kind: int, piece: int, size: vec3, mesh: RayTriangles, x: vec3) -> tuple[real, vec3]:
    """Value (m) and unit gradient of a piece's function near the piece.

    Args:
        kind: Code from `kinds`.
        piece: See above.
        size: As `Shape.size`.
        mesh: Triangles of meshes, hulls and height fields.
        x: Point in the shape's frame, m.
    """
    flat = real(0.0)
    one = real(1.0)
    if has_triangles(kind):
        value_t, slope_t = _triangle(mesh, piece, size[0], x)
        return value_t, slope_t
    if kind == BOX:
        value_b, slope_b = _box_face(size, piece, x)
        return value_b, slope_b
    if kind == ELLIPSOID:
        value_e, slope_e = _ellipsoid(size, x)
        return value_e, slope_e
    if kind == PLANE:
        return x[2], vec3(flat, flat, one)
    if kind == CAPSULE and piece != SIDE:
        end = vec3(flat, flat, size[1] * real(3 - 2 * piece))
        value_c, slope_c = _round(x - end, size[0])
        return value_c, slope_c
    if (kind == CYLINDER or kind == CONE) and piece != SIDE:
        up = real(3 - 2 * piece)
        return up * x[2] - size[1], vec3(flat, flat, up)
    if kind == CAPSULE or kind == CYLINDER:
        value_s, slope_s = _tilted(x, one, flat, size[0])
        return value_s, slope_s
    if kind == CONE:
        value_k, slope_k = _cone_side(size, x)
        return value_k, slope_k
    value, slope = _round(x, size[0])
    return value, slope
