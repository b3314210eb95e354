"""Coordinates of joints that close loops, from the poses of the joint's two frames; see `warpsim.rigid.model.loops`.

Frame A is fixed in body a, frame B in body b; both start at their body's end of the joint. Turns x, y, z of B in A have
axes e₁ = A's first, e₂, e₃ = B's last; the rate of each is g · ω with ω the angular velocity of B relative to A and g
the vector that is normal to the other two axes.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import quat, real, vec3, vec6
from warpsim.core.spatial import quat_conj, quat_log, quat_mul, quat_rotate, spatial
from warpsim.rigid.model.loops import FIRST, LAST, MIDDLE, SLIDE, WHOLE


@wp.func
def frame_axis(frame: quat, k: int) -> vec3:
    """The k-th axis of a frame, world axes."""
    if k == 0:
        return quat_rotate(frame, vec3(real(1.0), real(0.0), real(0.0)))
    if k == 1:
        return quat_rotate(frame, vec3(real(0.0), real(1.0), real(0.0)))
    return quat_rotate(frame, vec3(real(0.0), real(0.0), real(1.0)))


@wp.func
def loop_value(kind: int, i: int, j: int, a: quat, b: quat, gap: vec3) -> real:
    """The coordinate, m or rad; `gap` leads from A's origin to B's."""
    if kind == WHOLE:
        return wp.length(quat_log(quat_mul(quat_conj(a), b)))
    ai = frame_axis(a, i)
    if kind == SLIDE:
        return wp.dot(ai, gap)
    bj = frame_axis(b, j)
    if kind == FIRST:
        aj = frame_axis(a, j)
        return wp.atan2(wp.dot(bj, wp.cross(ai, aj)), wp.dot(bj, aj))
    if kind == LAST:
        bi = frame_axis(b, i)
        return wp.atan2(wp.dot(ai, wp.cross(bi, bj)), wp.dot(ai, bi))
    return wp.atan2(wp.dot(ai, bj), wp.length(wp.cross(ai, bj)))


@wp.func
def loop_direction(kind: int, turns: int, i: int, j: int, a: quat, b: quat) -> vec3:
    """Along which the coordinate measures velocity (slides) or angular velocity of B relative to A: g above."""
    if kind == WHOLE:
        turn = quat_log(quat_mul(quat_conj(a), b))
        angle = wp.length(turn)
        if angle > real(0.0):
            return quat_rotate(a, turn / angle)
        return vec3()
    ai = frame_axis(a, i)
    bj = frame_axis(b, j)
    if turns < 3 or kind == SLIDE:
        if kind == LAST:
            return bj
        return ai
    across = wp.cross(bj, ai)
    cosine = wp.length(across)
    if kind == MIDDLE:
        return across / cosine
    if kind == FIRST:
        return wp.cross(across, bj) / (cosine * cosine)
    return wp.cross(ai, across) / (cosine * cosine)


@wp.func
def loop_drift(kind: int, turns: int, i: int, j: int, a: quat, b: quat, omega_a: vec3, omega_b: vec3) -> vec3:
    """What the turning of the axes adds to the relative angular acceleration of B before g picks a turn's part."""
    if kind == WHOLE:  # as of a ball joint, whose velocity turns with b
        return wp.cross(omega_b, omega_a)
    omega = omega_b - omega_a
    ai = frame_axis(a, i)
    bj = frame_axis(b, j)
    if turns < 3:
        return -wp.dot(omega, ai) * wp.cross(omega_a, ai) - wp.dot(omega, bj) * wp.cross(omega_b, bj)
    across = wp.cross(bj, ai)
    square = wp.dot(across, across)
    first = wp.dot(omega, wp.cross(across, bj)) / square
    last = wp.dot(omega, wp.cross(ai, across)) / square
    carried = (wp.dot(omega, across) / square) * wp.cross(omega_a + first * ai, across)
    return -first * wp.cross(omega_a, ai) - carried - last * wp.cross(omega_b, bj)


@wp.func
def loop_wrench(kind: int, along: vec3, arm: vec3) -> vec6:
    """Wrench on b of a unit force on the coordinate, about the point from which `arm` leads to B's origin."""
    if kind == SLIDE:
        return spatial(wp.cross(arm, along), along)
    return spatial(along, vec3())
