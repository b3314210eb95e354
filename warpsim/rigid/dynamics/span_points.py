"""Points on bodies that tendons run over."""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import quat, real, vec3
from warpsim.core.spatial import quat_rotate
from warpsim.rigid.model.topology import Topology

TINY = wp.constant(real(1e-15))


@wp.struct
class Links:
    """Poses of links in the world."""

    origin: wp.array2d(dtype=vec3)
    position: wp.array2d(dtype=vec3)
    rotation: wp.array2d(dtype=quat)


@wp.func
def link_point(t: Topology, x: Links, w: int, body: int, offset: vec3) -> vec3:
    """A point of a body, m, world."""
    link = t.body_link[body]
    return x.position[w, link] + quat_rotate(x.rotation[w, link], offset)


@wp.func
def direction(a: vec3, b: vec3) -> vec3:
    """Unit vector from a to b; x for none."""
    gap = b - a
    n = wp.length(gap)
    if n < TINY:
        return vec3(real(1.0), real(0.0), real(0.0))
    return gap / n


@wp.func
def rod_reach(axis: vec3, pin: vec3, rod: real) -> real:
    """How far ahead of the slider on its axis the pin stands, m, both from the axis's origin; 0: out of reach."""
    along = wp.dot(axis, pin)
    square = along * along + rod * rod - wp.dot(pin, pin)
    if square <= real(0.0):
        return real(0.0)
    return wp.sqrt(square)


@wp.func
def rod_share(axis: vec3, pin: vec3, reach: real) -> real:
    """Change of the slider's place per change of the pin's along the axis, but for the part along the pin's way."""
    if reach > real(0.0):
        return real(1.0) - wp.dot(axis, pin) / reach
    return real(1.0)
