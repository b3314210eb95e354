"""Convex shapes by their support points: the point of a shape furthest along a direction, in the shape's own frame.

Spheres and capsules are a core (point, segment) and a radius around it; the support is that of the core.
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.kinds import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, HULL, SPHERE
from warpsim.collision.maths import TINY
from warpsim.core.precision import real, vec3


@wp.struct
class HullData:
    """Convex hulls of all shapes, flat; a shape's part is [start[shape], start[shape + 1]).

    The ns shapes are followed by the prisms of height fields (np in all), without patches.
    """

    vertex_start: wp.array(dtype=int)  # (ns + 1,)
    vertex: wp.array(dtype=vec3)  # m, at scale one
    edge_start: wp.array(dtype=int)  # (ns + 1,)
    edge: wp.array2d(dtype=int)  # (ne, 2) vertex numbers within the shape
    face_start: wp.array(dtype=int)  # (ns + 1,)
    face_vertex: wp.array2d(dtype=int)  # (nf, 3) three vertices of a face, counterclockwise from outside
    face_normal: wp.array(dtype=vec3)  # (nf,) outward
    patch_start: wp.array(dtype=int)  # (ns + 1,)
    patch_normal: wp.array(dtype=vec3)  # (np,) outward
    loop_start: wp.array(dtype=int)  # (np + 1,)
    loop: wp.array(dtype=int)  # vertex numbers within the shape, round each patch
    vertex_patch_start: wp.array(dtype=int)  # (nv + 1,)
    vertex_patch: wp.array(dtype=int)  # patches, within the shape, that a vertex is a corner of, ascending
    neighbor_start: wp.array(dtype=int)  # (nv + 1,)
    neighbor: wp.array(dtype=int)  # vertices, within the shape, that a vertex has an edge to, ascending
    extreme: wp.array2d(dtype=int)  # (ns, 14) vertices furthest along ± the axes and the diagonals; −1: a small hull
    prism_grid: wp.array(dtype=wp.vec3i)  # (ns,) of a height field: rows, columns, and the hull that is its first prism


@wp.func
def core_radius(kind: int, size: vec3) -> real:
    """Radius around a shape's core, m."""
    if kind == SPHERE or kind == CAPSULE:
        return size[0]
    return real(0.0)


@wp.func
def is_polytope(kind: int) -> bool:
    """Whether a shape's core has corners, edges and flat faces only: then searches end at its features exactly."""
    return kind == BOX or kind == HULL or kind == CAPSULE or kind == SPHERE


@wp.func
def signed(value: real, sign: real) -> real:
    """`value` with the sign of `sign` (+ at zero)."""
    if sign < real(0.0):
        return -value
    return value


@wp.func
def rim_support(m: vec3, radius: real, z: real) -> vec3:
    """Point of the circle of `radius` at height z furthest along m."""
    across = wp.length(vec3(m[0], m[1], real(0.0)))  # unlike sqrt, its adjoint at zero is zero
    if across < TINY:
        return vec3(radius, real(0.0), z)
    return vec3(radius * m[0] / across, radius * m[1] / across, z)


@wp.func
def climb_hull(hulls: HullData, shape: int, m: vec3) -> int:
    """`hull_support` of a hull with many vertices, from the best of some that depend on the hull alone.

    A vertex no neighbor of which lies further along m is the furthest of a convex hull. Among equals it goes on to
    lower numbers, so that it ends at one that depends on m alone.
    """
    first = hulls.vertex_start[shape]
    best = hulls.extreme[shape, 0]
    furthest = wp.dot(hulls.vertex[first + best], m)
    for k in range(1, hulls.extreme.shape[1]):
        i = hulls.extreme[shape, k]
        along = wp.dot(hulls.vertex[first + i], m)
        if along > furthest:
            furthest = along
            best = i
    climbing = bool(True)
    while climbing:
        here = best
        for k in range(hulls.neighbor_start[first + here], hulls.neighbor_start[first + here + 1]):
            i = hulls.neighbor[k]
            along = wp.dot(hulls.vertex[first + i], m)
            if along > furthest or (along == furthest and i < best):
                furthest = along
                best = i
        climbing = best != here
    return best


@wp.func
def hull_support(hulls: HullData, shape: int, m: vec3) -> int:
    """Number, within the hull, of the vertex furthest along m; of a small hull the lowest number among equals."""
    if shape < hulls.extreme.shape[0]:
        if hulls.extreme[shape, 0] >= 0:
            return climb_hull(hulls, shape, m)
    first = hulls.vertex_start[shape]
    best = int(0)
    furthest = real(-1.0e30)
    for i in range(first, hulls.vertex_start[shape + 1]):
        along = wp.dot(hulls.vertex[i], m)
        if along > furthest:
            furthest = along
            best = i - first
    return best


@wp.func
def core_support(kind: int, size: vec3, m: vec3) -> vec3:
    """Support point of a shape's core along the local direction m (any length); hulls have their own function."""
    if kind == CAPSULE:
        return vec3(real(0.0), real(0.0), signed(size[1], m[2]))
    if kind == BOX:
        return vec3(signed(size[0], m[0]), signed(size[1], m[1]), signed(size[2], m[2]))
    if kind == CYLINDER:
        return rim_support(m, size[0], signed(size[1], m[2]))
    if kind == CONE:
        rim = rim_support(m, size[0], -size[1])
        if wp.dot(rim, m) > size[1] * m[2]:
            return rim
        return vec3(real(0.0), real(0.0), size[1])
    if kind == ELLIPSOID:
        scaled = wp.cw_mul(size, m)
        return wp.cw_mul(size, scaled) / wp.max(wp.length(scaled), TINY)
    return vec3()
