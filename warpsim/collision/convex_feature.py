"""The parts of a convex core that can touch: corners, edges, faces, rims, sides, smooth skin.

Seen from the contact normal n, a feature pins n down by 0, 1 or 2 equations: a corner, a rim or smooth skin by none
(its support point follows n), an edge or a side by n·e = k, a face by n = its normal. Codes by kind:

- sphere, ellipsoid 0; capsule 0 end at −z, 1 side, 2 end at +z; box its region (`box_contact`);
- cylinder 0 side, 1 and 2 caps at +z and −z, 3 and 4 their rims; cone 0 side, 2 base, 4 base rim, 5 apex;
- hull 3·vertex, 3·edge + 1, 3·face + 2.
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.box_contact import digit, digits, face_axis, region_rank, zero_axis
from warpsim.collision.kinds import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, HULL, PLANE
from warpsim.collision.maths import TINY
from warpsim.collision.support import HullData, rim_support
from warpsim.core.precision import real, vec3


@wp.func
def constraint_count(kind: int, feature: int) -> int:
    """Equations by which a feature pins down the normal: 0, 1 or 2."""
    if kind == PLANE:
        return 2
    if kind == BOX:
        return 3 - region_rank(feature)
    if kind == CYLINDER or kind == CONE:
        if feature == 0:
            return 1
        if feature <= 2:
            return 2
        return 0
    if kind == HULL:
        return feature % 3
    if kind == CAPSULE and feature == 1:
        return 1
    return 0


@wp.func
def hull_vertex(hulls: HullData, shape: int, i: int, size: vec3) -> vec3:
    """Vertex i of a hull, scaled, in the shape's frame."""
    return hulls.vertex[hulls.vertex_start[shape] + i] * size[0]


@wp.func
def feature_point(kind: int, shape: int, size: vec3, feature: int, m: vec3, hulls: HullData) -> vec3:
    """A point of the feature, in the shape's frame: its support along the outward direction m where that is unique."""
    if kind == BOX:
        return wp.cw_mul(digits(feature), size)
    if kind == CAPSULE:
        return vec3(real(0.0), real(0.0), real(feature - 1) * size[1])
    if kind == CYLINDER:
        if feature == 0:
            return rim_support(m, size[0], real(0.0))
        z = size[1]
        if feature % 2 == 0:
            z = -size[1]
        if feature <= 2:
            return vec3(real(0.0), real(0.0), z)
        return rim_support(m, size[0], z)
    if kind == CONE:
        if feature == 5:
            return vec3(real(0.0), real(0.0), size[1])
        if feature == 2:
            return vec3(real(0.0), real(0.0), -size[1])
        return rim_support(m, size[0], -size[1])
    if kind == ELLIPSOID:
        scaled = wp.cw_mul(size, m)
        return wp.cw_mul(size, scaled) / wp.max(wp.length(scaled), TINY)
    if kind == HULL:
        i = feature // 3
        if feature % 3 == 0:
            return hull_vertex(hulls, shape, i, size)
        if feature % 3 == 1:
            return hull_vertex(hulls, shape, hulls.edge[hulls.edge_start[shape] + i, 0], size)
        return hull_vertex(hulls, shape, hulls.face_vertex[hulls.face_start[shape] + i, 0], size)
    return vec3()


@wp.func
def feature_axis(kind: int, shape: int, feature: int, hulls: HullData) -> vec3:
    """Unit vector e (shape's frame) of the equation m·e = k of a feature with one constraint."""
    if kind == BOX:
        axis = vec3()
        axis[zero_axis(feature)] = real(1.0)
        return axis
    if kind == HULL:
        edge = hulls.edge_start[shape] + feature // 3
        first = hulls.vertex_start[shape]
        return wp.normalize(hulls.vertex[first + hulls.edge[edge, 1]] - hulls.vertex[first + hulls.edge[edge, 0]])
    return vec3(real(0.0), real(0.0), real(1.0))


@wp.func
def feature_slope(kind: int, size: vec3) -> real:
    """k of the equation m·e = k: the sine of a cone's opening, 0 for everything else."""
    if kind == CONE:
        return size[0] / wp.sqrt(size[0] * size[0] + real(4.0) * size[1] * size[1])
    return real(0.0)


@wp.func
def feature_line(kind: int, shape: int, size: vec3, feature: int, m: vec3, hulls: HullData) -> vec3:
    """Direction (shape's frame) of the straight line that a feature with one constraint touches along."""
    if kind == CONE:
        return vec3(real(0.0), real(0.0), size[1]) - rim_support(m, size[0], -size[1])
    return feature_axis(kind, shape, feature, hulls)


@wp.func
def feature_normal(kind: int, shape: int, feature: int, hulls: HullData) -> vec3:
    """Outward normal (shape's frame) of a face."""
    if kind == BOX:
        axis = face_axis(feature)
        normal = vec3()
        normal[axis] = real(digit(feature, axis))
        return normal
    if kind == HULL:
        return hulls.face_normal[hulls.face_start[shape] + feature // 3]
    if feature == 2:
        return vec3(real(0.0), real(0.0), real(-1.0))
    return vec3(real(0.0), real(0.0), real(1.0))


@wp.func
def feature_curvature(kind: int, size: vec3, feature: int, m: vec3, u: vec3, v: vec3) -> real:
    """uᵀKv, with K the second derivative of the support function at the unit direction m: radii of curvature, m."""
    if kind == ELLIPSOID:
        scaled = wp.cw_mul(size, m)
        reach = wp.max(wp.length(scaled), TINY)
        su = wp.cw_mul(size, u)
        sv = wp.cw_mul(size, v)
        return wp.dot(su, sv) / reach - wp.dot(su, scaled) * wp.dot(sv, scaled) / (reach * reach * reach)
    if (kind == CYLINDER or kind == CONE) and (feature == 0 or feature == 3 or feature == 4):
        across = wp.sqrt(wp.max(m[0] * m[0] + m[1] * m[1], TINY))
        along_u = (m[0] * u[1] - m[1] * u[0]) / across
        along_v = (m[0] * v[1] - m[1] * v[0]) / across
        return size[0] / across * along_u * along_v
    return real(0.0)
