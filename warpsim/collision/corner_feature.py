"""The feature of a polytope that some of its corners span, as a search of the nearest points ends with. Never taped."""

from __future__ import annotations

import warp as wp

from warpsim.collision.core import Core
from warpsim.collision.kinds import BOX, CAPSULE, HULL
from warpsim.collision.support import HullData
from warpsim.core.precision import mat33, real, vec3

NEARLY = wp.constant(real(0.999))
"""Cosine between a facet's normal and a face that may be its own."""


@wp.func
def row(m: mat33, i: int) -> vec3:
    """Row i of a matrix."""
    return vec3(m[i, 0], m[i, 1], m[i, 2])


@wp.func
def facing_face(hulls: HullData, shape: int, way: vec3) -> int:
    """The face of a hull, within it, that looks most along a direction of its frame; the lowest among equals."""
    face = int(0)
    best = real(-2.0)
    for i in range(hulls.face_start[shape], hulls.face_start[shape + 1]):
        cosine = wp.dot(hulls.face_normal[i], way)
        if cosine > best:
            best = cosine
            face = i - hulls.face_start[shape]
    return face


@wp.func
def face_of_corners(core: Core, corners: mat33, way: vec3, hulls: HullData) -> int:
    """The face of a hull in whose plane three of its vertices lie; the lowest number among equals.

    Triangles of a nearly flat part look the same way to rounding, but their planes are apart.
    """
    face = int(-1)
    least = real(1.0e30)
    first = hulls.vertex_start[core.shape]
    for i in range(hulls.face_start[core.shape], hulls.face_start[core.shape + 1]):
        normal = hulls.face_normal[i]
        if wp.dot(normal, way) > NEARLY:
            origin = hulls.vertex[first + hulls.face_vertex[i, 0]] * core.size[0]
            off = real(0.0)
            for k in range(3):
                off = wp.max(off, wp.abs(wp.dot(normal, row(corners, k) - origin)))
            if off < least:
                least = off
                face = i - hulls.face_start[core.shape]
    if face < 0:
        return facing_face(hulls, core.shape, way)
    return face


@wp.func
def hull_corner(hulls: HullData, shape: int, scale: real, point: vec3) -> int:
    """Number of the vertex at a support point of a hull; −1 if there is none."""
    first = hulls.vertex_start[shape]
    for i in range(first, hulls.vertex_start[shape + 1]):
        if hulls.vertex[i] * scale == point:
            return i - first
    return -1


@wp.func
def hull_of_corners(core: Core, corners: mat33, way: vec3, hulls: HullData) -> int:
    """Vertex, edge or face of a hull that three of its vertices span, two of which or all may be one."""
    p = row(corners, 0)
    q = row(corners, 1)
    r = row(corners, 2)
    if q == p:
        q = r
    elif not (r == p or r == q):
        return 3 * face_of_corners(core, corners, way, hulls) + 2
    i = hull_corner(hulls, core.shape, core.size[0], p)
    if q == p:
        return 3 * i
    j = hull_corner(hulls, core.shape, core.size[0], q)
    low = wp.min(i, j)
    high = wp.max(i, j)
    first = hulls.edge_start[core.shape]
    for k in range(first, hulls.edge_start[core.shape + 1]):
        if hulls.edge[k, 0] == low and hulls.edge[k, 1] == high:
            return 3 * (k - first) + 1
    return 3 * face_of_corners(core, corners, way, hulls) + 2  # across a face of more than three corners


@wp.func
def feature_of_corners(core: Core, corners: mat33, way: vec3, hulls: HullData) -> int:
    """Feature (as in `convex_feature`) of a polytope on which the touching simplex' corners lie.

    Args:
        core: The shape: a sphere, capsule, box or hull.
        corners: Rows: support points, in its frame.
        way: Outward direction there, in its frame.
        hulls: All hulls.
    """
    if core.kind == HULL:
        return hull_of_corners(core, corners, way, hulls)
    if core.kind == BOX:
        region = int(13)
        step = int(1)
        for k in range(3):
            if corners[0, k] > real(0.0) and corners[1, k] > real(0.0) and corners[2, k] > real(0.0):
                region += step
            elif corners[0, k] < real(0.0) and corners[1, k] < real(0.0) and corners[2, k] < real(0.0):
                region -= step
            step *= 3
        return region
    if core.kind == CAPSULE:
        if corners[0, 2] > real(0.0) and corners[1, 2] > real(0.0) and corners[2, 2] > real(0.0):
            return 2
        if corners[0, 2] < real(0.0) and corners[1, 2] < real(0.0) and corners[2, 2] < real(0.0):
            return 0
        return 1
    return 0
