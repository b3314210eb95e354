"""The point of a simplex (point, segment, triangle, tetrahedron) nearest to the origin, by barycentric weights."""

from __future__ import annotations

import warp as wp

from warpsim.collision.maths import TINY
from warpsim.core.precision import EPSILON, real, vec3

FLAT = wp.constant(real(4096.0 * EPSILON))
"""Tetrahedra with a smaller relative volume are flat."""


@wp.func
def segment_weights(p: vec3, q: vec3) -> vec3:
    """Barycentric weights of the segment's point nearest to the origin."""
    d = q - p
    dd = wp.dot(d, d)
    if dd < TINY * TINY:
        return vec3(real(1.0), real(0.0), real(0.0))
    t = wp.min(wp.max(-wp.dot(p, d) / dd, real(0.0)), real(1.0))
    return vec3(real(1.0) - t, t, real(0.0))


@wp.func
def triangle_weights(p: vec3, q: vec3, r: vec3) -> vec3:
    """Barycentric weights of a triangle's point nearest to the origin (Ericson, Real-Time Collision Detection, 5.1)."""
    n = wp.cross(q - p, r - p)
    nn = wp.dot(n, n)
    u = wp.dot(wp.cross(q, r), n)
    v = wp.dot(wp.cross(r, p), n)
    w = wp.dot(wp.cross(p, q), n)
    if nn > TINY * TINY and u >= real(0.0) and v >= real(0.0) and w >= real(0.0):
        return vec3(u / nn, v / nn, w / nn)
    pq = segment_weights(p, q)
    best = pq
    point = p * pq[0] + q * pq[1]
    least = wp.dot(point, point)
    qr = segment_weights(q, r)
    point = q * qr[0] + r * qr[1]
    if wp.dot(point, point) < least:
        least = wp.dot(point, point)
        best = vec3(real(0.0), qr[0], qr[1])
    rp = segment_weights(r, p)
    point = r * rp[0] + p * rp[1]
    if wp.dot(point, point) < least:
        best = vec3(rp[1], real(0.0), rp[0])
    return best


@wp.func
def encloses(w: wp.array(dtype=vec3)) -> bool:
    """Whether the tetrahedron w[0…3] holds the origin."""
    p = w[1] - w[0]
    q = w[2] - w[0]
    r = w[3] - w[0]
    volume = wp.abs(wp.dot(wp.cross(p, q), r))
    if volume <= FLAT * wp.length(p) * wp.length(q) * wp.length(r):  # too flat for its sides to be told apart
        return False
    for i in range(4):
        a = w[(i + 1) % 4]
        b = w[(i + 2) % 4]
        c = w[(i + 3) % 4]
        n = wp.cross(b - a, c - a)
        if wp.dot(n, w[i] - a) * wp.dot(n, -a) < real(0.0):
            return False
    return True


@wp.func
def nearest_weights(w: wp.array(dtype=vec3), count: int) -> wp.vec4d:
    """Barycentric weights of the simplex' point nearest to the origin; all negative where the origin is inside."""
    out = wp.vec4d()
    if count == 1:
        out[0] = wp.float64(1.0)
        return out
    if count == 2:
        s = segment_weights(w[0], w[1])
        return wp.vec4d(wp.float64(s[0]), wp.float64(s[1]), wp.float64(0.0), wp.float64(0.0))
    if count == 3:
        s = triangle_weights(w[0], w[1], w[2])
        return wp.vec4d(wp.float64(s[0]), wp.float64(s[1]), wp.float64(s[2]), wp.float64(0.0))
    if encloses(w):
        return wp.vec4d(wp.float64(-1.0), wp.float64(-1.0), wp.float64(-1.0), wp.float64(-1.0))
    least = real(1.0e30)
    for skip in range(4):
        i = (skip + 1) % 4
        j = (skip + 2) % 4
        k = (skip + 3) % 4
        s = triangle_weights(w[i], w[j], w[k])
        point = w[i] * s[0] + w[j] * s[1] + w[k] * s[2]
        if wp.dot(point, point) < least:
            least = wp.dot(point, point)
            out = wp.vec4d()
            out[i] = wp.float64(s[0])
            out[j] = wp.float64(s[1])
            out[k] = wp.float64(s[2])
    return out
