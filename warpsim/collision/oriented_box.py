"""Bounding boxes along the shapes' own axes: what keeps most pairs of long or flat shapes out of the convex search.

A pair is dropped only where it is surely apart, so contacts and their bits are those of the search without it.
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.core import Core
from warpsim.collision.kinds import CAPSULE, CONE, CYLINDER, HULL, PLANE, SPHERE
from warpsim.core.precision import real, vec3

SLACK = wp.constant(real(1e-6))
"""Share of the boxes' extents by which they have to be further apart than the margin: far above rounding."""


@wp.struct
class HullBoxes:
    """Boxes of all hulls in their own frames, at scale one; arrays are (ns,), zero for other kinds."""

    center: wp.array(dtype=vec3)  # m
    half: wp.array(dtype=vec3)  # m


@wp.func
def half_box(core: Core, boxes: HullBoxes) -> vec3:
    """Half edges (m) of the box about a shape, along the shape's axes."""
    size = core.size
    if core.kind == HULL:
        return boxes.half[core.shape] * size[0]
    if core.kind == SPHERE:
        return vec3(size[0], size[0], size[0])
    if core.kind == CAPSULE:
        return vec3(size[0], size[0], size[0] + size[1])
    if core.kind == CYLINDER or core.kind == CONE:
        return vec3(size[0], size[0], size[1])
    return size


@wp.func
def box_center(core: Core, boxes: HullBoxes) -> vec3:
    """Center (m, world) of the box about a shape."""
    if core.kind == HULL:
        return core.position + core.frame @ (boxes.center[core.shape] * core.size[0])
    return core.position


@wp.func
def boxes_apart(a: Core, b: Core, boxes: HullBoxes, margin: real) -> bool:
    """Whether the face of one shape's box shows that two bounded shapes are at least `margin` (m) apart."""
    if a.kind == PLANE:
        return False
    half_a = half_box(a, boxes)
    half_b = half_box(b, boxes)
    gap = box_center(b, boxes) - box_center(a, boxes)
    turn = wp.transpose(a.frame) @ b.frame
    along_a = wp.transpose(a.frame) @ gap
    along_b = wp.transpose(b.frame) @ gap
    needed = margin + SLACK * (wp.length(half_a) + wp.length(half_b))
    for k in range(3):
        reach_b = wp.abs(turn[k, 0]) * half_b[0] + wp.abs(turn[k, 1]) * half_b[1] + wp.abs(turn[k, 2]) * half_b[2]
        if wp.abs(along_a[k]) - half_a[k] - reach_b > needed:
            return True
        reach_a = wp.abs(turn[0, k]) * half_a[0] + wp.abs(turn[1, k]) * half_a[1] + wp.abs(turn[2, k]) * half_a[2]
        if wp.abs(along_b[k]) - half_b[k] - reach_a > needed:
            return True
    return False
