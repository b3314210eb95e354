"""Nearest points of a vertex and a face, and of two edges, as shares of four vertices: d = Σ wᵢxᵢ. Differentiable.

A vertex and a face are (i, a, b, c) with shares (1, −β); two edges (a, b, c, d) with (1 − s, s, t − 1, −t). So one rule
serves both. Which region the nearest point lies in is decided by comparisons, and within a region the shares are
smooth.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real, vec3
from warpsim.deformable.types import vec4

VERTEX_FACE, EDGE_EDGE = wp.constant(0), wp.constant(1)
_PARALLEL, _CROSSED = wp.constant(real(1e-6)), wp.constant(real(1e-3))
"""Squares of the sine of an angle between edges: below the first they have no nearest points of their own, above the
second they count in full."""
_RAMP, _SHARE = wp.constant(real(2.0)), wp.constant(real(0.25))
"""Over how much of an edge's end pairs of edges come and go: so many distances of contact, at most this share of it."""


@wp.func
def vertex_face_shares(p: vec3, a: vec3, b: vec3, c: vec3) -> vec4:
    """Ericson, Real-Time Collision Detection, §5.1.5; a face whose last two corners are one is a segment."""
    zero, one = real(0.0), real(1.0)
    ab, ac, ap = b - a, c - a, p - a
    d1, d2 = wp.dot(ab, ap), wp.dot(ac, ap)
    if d1 <= zero and d2 <= zero:
        return vec4(one, -one, zero, zero)
    bp = p - b
    d3, d4 = wp.dot(ab, bp), wp.dot(ac, bp)
    if d3 >= zero and d4 <= d3:
        return vec4(one, zero, -one, zero)
    cp = p - c
    d5, d6 = wp.dot(ab, cp), wp.dot(ac, cp)
    if d6 >= zero and d5 <= d6:
        return vec4(one, zero, zero, -one)
    vc = d1 * d4 - d3 * d2
    if vc <= zero and d1 >= zero and d3 <= zero:
        t = d1 / (d1 - d3)
        return vec4(one, t - one, -t, zero)
    vb = d5 * d2 - d1 * d6
    if vb <= zero and d2 >= zero and d6 <= zero:
        t = d2 / (d2 - d6)
        return vec4(one, t - one, zero, -t)
    va = d3 * d6 - d5 * d4
    if va <= zero and d4 - d3 >= zero and d5 - d6 >= zero:
        t = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        return vec4(one, zero, t - one, -t)
    total = va + vb + vc
    return vec4(one, -va / total, -vb / total, -vc / total)


@wp.func
def edge_edge_shares(a: vec3, b: vec3, c: vec3, d: vec3) -> vec4:
    """Where both nearest points lie within their edges; else zeros: a vertex and a face see to the pair."""
    zero, one = real(0.0), real(1.0)
    e, f, r = b - a, d - c, a - c
    ee, ff, ef = wp.dot(e, e), wp.dot(f, f), wp.dot(e, f)
    er, fr = wp.dot(e, r), wp.dot(f, r)
    det = ee * ff - ef * ef
    if det <= _PARALLEL * ee * ff:
        return vec4()
    s = (ef * fr - er * ff) / det
    t = (ee * fr - ef * er) / det
    if s <= zero or s >= one or t <= zero or t >= one:
        return vec4()
    return vec4(one - s, s, t - one, -t)


@wp.func
def nearest_shares(kind: int, a: vec3, b: vec3, c: vec3, d: vec3) -> vec4:
    """Of either kind."""
    if kind == VERTEX_FACE:
        return vertex_face_shares(a, b, c, d)
    return edge_edge_shares(a, b, c, d)


@wp.func
def smooth_step(u: real) -> real:
    """0 at 0, 1 from 1 on, with slopes that are zero there."""
    if u >= real(1.0):
        return real(1.0)
    return u * u * (real(3.0) - real(2.0) * u)


@wp.func
def end_weight(share: real, edge: vec3, distance: real) -> real:
    """What a nearest point on an edge counts: 0 at the edge's ends, where a vertex takes over."""
    beside = share
    if share > real(0.5):
        beside = real(1.0) - share
    length = wp.length(edge)
    if _RAMP * distance < _SHARE * length:
        return smooth_step(beside * length / (_RAMP * distance))
    return smooth_step(beside / _SHARE)


@wp.func
def pair_weight(kind: int, s: vec4, a: vec3, b: vec3, c: vec3, d: vec3, distance: real) -> real:
    """What a pair counts: edges come and go smoothly, at their ends and where they become parallel."""
    if kind == VERTEX_FACE:
        return real(1.0)
    e, f = b - a, d - c
    ee, ff, ef = wp.dot(e, e), wp.dot(f, f), wp.dot(e, f)
    crossed = smooth_step((real(1.0) - ef * ef / (ee * ff)) / _CROSSED)
    return crossed * end_weight(s[1], e, distance) * end_weight(-s[3], f, distance)


@wp.func
def crosses(p: vec3, q: vec3, a: vec3, b: vec3, c: vec3) -> int:
    """Whether the segment pq passes through the triangle abc."""
    zero = real(0.0)
    n = wp.cross(b - a, c - a)
    above, below = wp.dot(n, p - a), wp.dot(n, q - a)
    if above * below >= zero:
        return 0
    along = q - p
    first = wp.dot(along, wp.cross(a - p, b - p))
    second = wp.dot(along, wp.cross(b - p, c - p))
    third = wp.dot(along, wp.cross(c - p, a - p))
    if (first > zero and second > zero and third > zero) or (first < zero and second < zero and third < zero):
        return 1
    return 0
