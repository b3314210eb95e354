"""Volumes of sites: which points lie in them and which rays meet them. Forms are numbered as in SITE_FORMS."""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real, vec2, vec3


@wp.func
def _round_reach(a: real, b: real, c: real) -> vec2:
    """The times t at which a t² + 2 b t + c ≤ 0, as an interval; from > to: never."""
    if a < real(1e-30):
        if c <= real(0.0):
            return vec2(real(-1e30), real(1e30))
        return vec2(real(1.0), real(-1.0))
    root = b * b - a * c
    if root < real(0.0):
        return vec2(real(1.0), real(-1.0))
    half = wp.sqrt(root)
    return vec2((-b - half) / a, (-b + half) / a)


@wp.func
def _slab_reach(o: real, d: real, half: real) -> vec2:
    """The times at which |o + t d| ≤ half."""
    if wp.abs(d) < real(1e-15):
        if wp.abs(o) <= half:
            return vec2(real(-1e30), real(1e30))
        return vec2(real(1.0), real(-1.0))
    u = (-half - o) / d
    v = (half - o) / d
    return vec2(wp.min(u, v), wp.max(u, v))


@wp.func
def _both(x: vec2, y: vec2) -> vec2:
    return vec2(wp.max(x[0], y[0]), wp.min(x[1], y[1]))


@wp.func
def _ahead(x: vec2) -> int:
    """Whether an interval has a time that is not negative."""
    if x[0] <= x[1] and x[1] >= real(0.0):
        return 1
    return 0


@wp.func
def ray_meets(form: int, size: vec3, o: vec3, d: vec3) -> int:
    """1 if a ray from `o` along `d`, both in the site's frame, meets the volume or starts in it."""
    if form == 0:
        return _ahead(_round_reach(wp.dot(d, d), wp.dot(o, d), wp.dot(o, o) - size[0] * size[0]))
    if form == 2:
        x = wp.cw_div(o, size)
        y = wp.cw_div(d, size)
        return _ahead(_round_reach(wp.dot(y, y), wp.dot(x, y), wp.dot(x, x) - real(1.0)))
    if form == 4:
        flat = _both(_slab_reach(o[0], d[0], size[0]), _slab_reach(o[1], d[1], size[1]))
        return _ahead(_both(flat, _slab_reach(o[2], d[2], size[2])))
    across = _round_reach(
        d[0] * d[0] + d[1] * d[1],
        o[0] * d[0] + o[1] * d[1],
        o[0] * o[0] + o[1] * o[1] - size[0] * size[0],
    )
    found = _ahead(_both(across, _slab_reach(o[2], d[2], size[1])))
    if form == 1 and found == 0:
        for end in range(2):
            c = o + vec3(real(0.0), real(0.0), size[1] * real(1 - 2 * end))
            cap = _round_reach(wp.dot(d, d), wp.dot(c, d), wp.dot(c, c) - size[0] * size[0])
            found = wp.max(found, _ahead(cap))
    return found


@wp.func
def holds(form: int, size: vec3, o: vec3) -> int:
    """1 if the point `o` of the site's frame lies in the volume."""
    return ray_meets(form, size, o, vec3(real(0.0), real(0.0), real(0.0)))
