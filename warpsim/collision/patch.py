"""The flat parts of convex shapes: polygons (faces, caps) and straight lines that can lie on one (sides, segments).

A *patch* is a polygon of a shape with its outward normal, or a line of two points:

- box: 2·axis + (1 where it is the negative side), four corners;
- cylinder: 0 and 1 its caps at +z and −z, sixteen points of the rim as in MuJoCo; 2 the line of its side that looks
  along a given direction;
- capsule: 0 the line of its side that does, not further out than the sphere at its end in that direction;
- hull: its faces, as in `HullData`.

Loops run counterclockwise seen from outside.
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.box_box import face_corner
from warpsim.collision.core import Core
from warpsim.collision.kinds import BOX, CAPSULE, CYLINDER, HULL
from warpsim.collision.support import HullData, rim_support
from warpsim.core.precision import real, vec3

CAP_POINTS = wp.constant(16)
CAP_TURN = wp.constant(real(0.39269908169872414))
"""Angle between two of a cap's points, rad."""
SIDE = wp.constant(2)
"""A cylinder's side among its patches."""


@wp.func
def has_patches(kind: int) -> bool:
    """Whether shapes of a kind touch by patches."""
    return kind == BOX or kind == CYLINDER or kind == CAPSULE or kind == HULL


@wp.func
def patch_size(core: Core, patch: int, hulls: HullData) -> int:
    """Points of a patch; two make a line."""
    if core.kind == HULL:
        first = hulls.patch_start[core.shape] + patch
        return hulls.loop_start[first + 1] - hulls.loop_start[first]
    if core.kind == BOX:
        return 4
    if core.kind == CYLINDER and patch != SIDE:
        return CAP_POINTS
    return 2


@wp.func
def patch_point(core: Core, patch: int, i: int, way: vec3, hulls: HullData) -> vec3:
    """Point i of a patch, world frame; `way` (world, unit) is where the line of a cylinder or capsule looks."""
    local = vec3()
    if core.kind == HULL:
        first = hulls.loop_start[hulls.patch_start[core.shape] + patch]
        local = hulls.vertex[hulls.vertex_start[core.shape] + hulls.loop[first + i]] * core.size[0]
    elif core.kind == BOX:
        corner = i
        if patch % 2 == 1:
            corner = 3 - i
        local = face_corner(patch // 2, 1 - patch % 2, corner, core.size)
    elif core.kind == CYLINDER:
        if patch == SIDE:
            local = rim_support(wp.transpose(core.frame) @ way, core.size[0], real(2 * i - 1) * core.size[1])
        elif patch == 0:
            angle = CAP_TURN * real(i)
            local = vec3(core.size[0] * wp.cos(angle), core.size[0] * wp.sin(angle), core.size[1])
        else:
            angle = -CAP_TURN * real(i)
            local = vec3(core.size[0] * wp.cos(angle), core.size[0] * wp.sin(angle), -core.size[1])
    else:
        out = wp.transpose(core.frame) @ way
        local = vec3(core.size[0] * out[0], core.size[0] * out[1], real(2 * i - 1) * core.size[1])
    return core.position + core.frame @ local


@wp.func
def patch_normal(core: Core, patch: int, hulls: HullData) -> vec3:
    """Outward unit normal of a polygon, world frame; zero for a line."""
    local = vec3()
    if core.kind == HULL:
        local = hulls.patch_normal[hulls.patch_start[core.shape] + patch]
    elif core.kind == BOX:
        local[patch // 2] = real(1 - 2 * (patch % 2))
    elif core.kind == CYLINDER and patch != SIDE:
        local[2] = real(1 - 2 * patch)
    return core.frame @ local
