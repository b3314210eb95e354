"""Which of many touching points to keep: those that span the widest polygon."""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import EPSILON, real, vec3

TIE = wp.constant(real(EPSILON**0.5))
"""Scores that differ by a smaller share are equal: points of a symmetric shape tie at every pose, up to rounding."""


@wp.func
def beats(score: real, best: real) -> bool:
    """Whether a score is higher than the best so far, rounding aside: among equals the first stays."""
    return score > best + TIE * wp.abs(best)


@wp.func
def spread(i: int, point: vec3, p: vec3, q: vec3, r: vec3, normal: vec3) -> real:
    """How much a point adds to the i points chosen so far: distance from the first, then area of the polygon."""
    if i == 1:
        return wp.length(point - p)
    if i == 2:
        return wp.length(wp.cross(point - p, q - p))
    turn = wp.dot(wp.cross(q - p, r - p), normal)
    side_pq = wp.dot(wp.cross(q - p, point - p), normal)
    side_qr = wp.dot(wp.cross(r - q, point - q), normal)
    side_rp = wp.dot(wp.cross(p - r, point - r), normal)
    if turn < real(0.0):
        return wp.max(side_pq, wp.max(side_qr, side_rp))
    return -wp.min(side_pq, wp.min(side_qr, side_rp))
