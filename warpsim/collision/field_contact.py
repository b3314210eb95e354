"""Contact of a shape's surface point with another shape's distance field: how meshes, convex or not, touch everything.

A shape offers a fixed list of material points, each with a radius (spheres and capsules) or none. The contact at such
a point is a function of both poses and sizes with no search in it, so its derivative is exact.
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.box_contact import digits
from warpsim.collision.core import Core
from warpsim.collision.grid import GridData, grid_sdf, has_grid
from warpsim.collision.kinds import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, HULL, PLANE
from warpsim.collision.sdf import primitive_sdf
from warpsim.collision.support import HullData, core_radius
from warpsim.core.precision import real, vec3

CAPSULE_POINTS = wp.constant(7)
RIM_POINTS = wp.constant(8)
EIGHTH_TURN = wp.constant(real(0.7853981633974483))


@wp.func
def has_own_points(core: Core, grids: GridData) -> bool:
    """Whether a shape's points are listed: a grid's are, and those of a hull with too many vertices to try them all."""
    if has_grid(core.kind):
        return True
    return core.kind == HULL and grids.point_start[core.shape + 1] > grids.point_start[core.shape]


@wp.func
def material_point_count(core: Core, hulls: HullData, grids: GridData) -> int:
    """How many points a shape offers; a plane offers none."""
    if has_own_points(core, grids):
        return grids.point_start[core.shape + 1] - grids.point_start[core.shape]
    if core.kind == HULL:
        return hulls.vertex_start[core.shape + 1] - hulls.vertex_start[core.shape]
    if core.kind == BOX or core.kind == ELLIPSOID:
        return 26
    if core.kind == CYLINDER:
        return 2 * RIM_POINTS + 2
    if core.kind == CONE:
        return RIM_POINTS + 2
    if core.kind == CAPSULE:
        return CAPSULE_POINTS
    if core.kind == PLANE:
        return 0
    return 1


@wp.func
def around(i: int, radius: real, z: real) -> vec3:
    """Point i of eight on a circle about the z axis."""
    angle = EIGHTH_TURN * real(i % RIM_POINTS)
    return vec3(radius * wp.cos(angle), radius * wp.sin(angle), z)


@wp.func
def material_point(core: Core, i: int, hulls: HullData, grids: GridData) -> vec3:
    """Point i of a shape, in its own frame."""
    size = core.size
    if has_own_points(core, grids):
        return grids.point[grids.point_start[core.shape] + i] * size[0]
    if core.kind == HULL:
        return hulls.vertex[hulls.vertex_start[core.shape] + i] * size[0]
    if core.kind == BOX or core.kind == ELLIPSOID:
        region = i
        if i >= 13:
            region = i + 1
        d = digits(region)
        if core.kind == ELLIPSOID:
            d = wp.normalize(d)
        return wp.cw_mul(d, size)
    if core.kind == CAPSULE:
        return vec3(real(0.0), real(0.0), size[1] * real(i - 3) / real(3.0))
    if core.kind == CYLINDER:
        z = size[1]
        if i % 2 == 0:
            z = -size[1]
        if i >= 2 * RIM_POINTS:
            return vec3(real(0.0), real(0.0), z)
        return around(i // 2, size[0], z)
    if core.kind == CONE:
        if i == RIM_POINTS:
            return vec3(real(0.0), real(0.0), size[1])
        if i > RIM_POINTS:
            return vec3(real(0.0), real(0.0), -size[1])
        return around(i, size[0], -size[1])
    return vec3()


@wp.func
def hull_face(hulls: HullData, shape: int, scale: real, x: vec3) -> int:
    """The face of a hull whose plane lies furthest below a point."""
    first = hulls.vertex_start[shape]
    best = int(0)
    furthest = real(-1.0e30)
    for f in range(hulls.face_start[shape], hulls.face_start[shape + 1]):
        above = wp.dot(hulls.face_normal[f], x - hulls.vertex[first + hulls.face_vertex[f, 0]] * scale)
        if above > furthest:
            furthest = above
            best = f
    return best


@wp.func
def hull_sdf(hulls: HullData, shape: int, scale: real, x: vec3) -> tuple[real, vec3]:
    """Largest distance to a hull's face planes: exact inside and over faces, less than the distance beside edges."""
    face = hull_face(hulls, shape, scale, x)
    corner = hulls.vertex[hulls.vertex_start[shape] + hulls.face_vertex[face, 0]]
    normal = hulls.face_normal[face]
    return wp.dot(normal, x - corner * scale), normal


@wp.func
def field(core: Core, x: vec3, hulls: HullData, grids: GridData) -> tuple[real, vec3]:
    """Signed distance (m) and unit gradient of any shape at a world point, world frame."""
    local = wp.transpose(core.frame) @ (x - core.position)
    if has_grid(core.kind):
        value, slope = grid_sdf(grids, core.shape, core.size[0], local)
        return value, core.frame @ slope
    if core.kind == HULL:
        value_h, slope_h = hull_sdf(hulls, core.shape, core.size[0], local)
        return value_h, core.frame @ slope_h
    value_p, slope_p = primitive_sdf(core.kind, core.size, local)
    return value_p, core.frame @ slope_p


@wp.func
def field_contact(holder: Core, i: int, other: Core, hulls: HullData, grids: GridData) -> tuple[real, vec3, vec3]:
    """Contact of point i of `holder` with the field of `other`.

    Returns:
        Distance (m), contact point, unit normal out of `other`.
    """
    x = holder.position + holder.frame @ material_point(holder, i, hulls, grids)
    value, outward = field(other, x, hulls, grids)
    radius = core_radius(holder.kind, holder.size)
    distance = value - radius
    return distance, x - outward * (radius + real(0.5) * distance), outward
