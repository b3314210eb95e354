"""Small vector functions shared by the collision kernels; every one has a finite value and a finite adjoint."""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import mat33, real, vec3

TINY = wp.constant(real(1e-15))
"""Lengths (m) below this have no direction; MuJoCo's mjMINVAL."""


@wp.func
def column(m: mat33, i: int) -> vec3:
    """Axis i of a frame given by its rotation matrix."""
    return vec3(m[0, i], m[1, i], m[2, i])


@wp.func
def direction(v: vec3, fallback: vec3) -> vec3:
    """v / |v|, or the constant `fallback` where v is too short to have a direction (its adjoint there is zero)."""
    length = wp.length(v)
    if length < TINY:
        return fallback
    return v / length


@wp.func
def contact_frame(normal: vec3, hint: vec3) -> mat33:
    """Rows: the unit normal and two tangents, by MuJoCo's rule (mju_makeFrame).

    The first tangent is `hint` made orthogonal to the normal; without a hint (shorter than 1/2) it is world y, or
    world z where the normal is within 60° of y.

    Args:
        normal: Unit vector, world frame.
        hint: Wanted first tangent, world frame; zero for none.
    """
    y = hint
    if wp.dot(hint, hint) < real(0.25):
        if normal[1] < real(0.5) and normal[1] > real(-0.5):
            y = vec3(real(0.0), real(1.0), real(0.0))
        else:
            y = vec3(real(0.0), real(0.0), real(1.0))
    y_tangent = y - normal * wp.dot(normal, y)
    if wp.dot(y_tangent, y_tangent) < real(1e-20):  # the hint is along the normal: MuJoCo takes world x
        x = vec3(real(1.0), real(0.0), real(0.0))
        if wp.abs(normal[0]) > real(0.9):
            x = vec3(real(0.0), real(1.0), real(0.0))
        y_tangent = x - normal * wp.dot(normal, x)
    t1 = wp.normalize(y_tangent)
    t2 = wp.cross(normal, t1)
    return mat33(normal[0], normal[1], normal[2], t1[0], t1[1], t1[2], t2[0], t2[1], t2[2])
