"""A face of one convex shape as a plane, and the points of another that meet it."""

from __future__ import annotations

import warp as wp

from warpsim.collision.convex_feature import feature_normal, feature_point, hull_vertex
from warpsim.collision.core import Core
from warpsim.collision.kinds import BOX, CAPSULE, CONE, CYLINDER, HULL
from warpsim.collision.plane_contact import plane_shape
from warpsim.collision.support import HullData
from warpsim.collision.witness import plane_ball
from warpsim.core.precision import real, vec3


@wp.func
def face_plane(core: Core, feature: int, hulls: HullData) -> tuple[vec3, vec3]:
    """A point of a shape's face and its outward normal, world frame."""
    local = feature_normal(core.kind, core.shape, feature, hulls)
    point = feature_point(core.kind, core.shape, core.size, feature, local, hulls)
    return core.position + core.frame @ point, core.frame @ local


@wp.func
def plane_point(origin: vec3, normal: vec3, core: Core, i: int, hulls: HullData) -> tuple[real, vec3]:
    """Distance (m) and point of a plane's contact with point i of a shape (as in `plane_contact`; hulls: vertex i)."""
    if core.kind == HULL:
        vertex = core.position + core.frame @ hull_vertex(hulls, core.shape, i, core.size)
        return plane_ball(origin, normal, vertex, real(0.0))
    return plane_shape(core.kind, i, origin, normal, core.position, core.frame, core.size)


@wp.func
def point_count(core: Core, hulls: HullData) -> int:
    """How many points of a shape can meet a plane."""
    if core.kind == HULL:
        return hulls.vertex_start[core.shape + 1] - hulls.vertex_start[core.shape]
    if core.kind == BOX:
        return 8
    if core.kind == CYLINDER or core.kind == CONE:
        return 4
    if core.kind == CAPSULE:
        return 2
    return 1
