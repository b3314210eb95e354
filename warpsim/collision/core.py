"""One shape of a pair, as the general kernels pass it around."""

from __future__ import annotations

import warp as wp

from warpsim.collision.kinds import HULL
from warpsim.collision.support import HullData, core_support, hull_support
from warpsim.core.precision import mat33, vec3


@wp.struct
class Core:
    """One shape of a pair."""

    kind: int
    shape: int
    position: vec3
    frame: mat33
    size: vec3


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
    """A point of the shape's frame in the world."""
    return core.position + core.frame @ local
