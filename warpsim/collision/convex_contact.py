"""Contact of two features of convex cores, rebuilt differentiably from a normal that the search has found.

The signed distance of two convex shapes is the largest, over unit vectors n, of g(n) = n·(s_B(−n) − s_A(n)), with s the
support points. At the maximum, dg/dθ at fixed n is the whole derivative of the distance (envelope theorem); the normal
itself moves by the implicit function theorem, dn/dθ = (K + λ)⁻¹ dw/dθ in the tangent plane, with w = s_B − s_A, λ =
n·w and K the sum of both radii of curvature. One Newton step from the frozen normal has exactly this derivative,
because its residual is zero there; so the taped kernel takes that one step and needs no iteration.
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.convex_feature import (
    constraint_count,
    feature_axis,
    feature_curvature,
    feature_line,
    feature_normal,
    feature_point,
    feature_slope,
)
from warpsim.collision.core import Core
from warpsim.collision.support import HullData, core_radius
from warpsim.collision.witness import line_parameters
from warpsim.core.precision import real, vec3

PARALLEL = wp.constant(real(1e-10))
"""Squared sine below which two lines count as parallel."""
LEAST_CURVATURE = wp.constant(real(1e-9))
"""Two corners that touch leave the normal undetermined; this radius (m) keeps its derivative finite."""
FLOOR = wp.constant(real(0.01))
"""Least curvature of a step where the gap is not concave, as a share of the greatest."""


@wp.func
def point_of(core: Core, feature: int, hulls: HullData, way: vec3) -> vec3:
    """A feature's point in the world, seen along the world direction `way` out of the shape."""
    m = wp.transpose(core.frame) @ way
    return core.position + core.frame @ feature_point(core.kind, core.shape, core.size, feature, m, hulls)


@wp.func
def curvature_of(core: Core, feature: int, way: vec3, u: vec3, v: vec3) -> real:
    """uᵀKv of a feature, all in world axes."""
    inverse = wp.transpose(core.frame)
    return feature_curvature(core.kind, core.size, feature, inverse @ way, inverse @ u, inverse @ v)


@wp.func
def tangent_of(n: vec3) -> vec3:
    """Some unit vector across n."""
    if wp.abs(n[0]) < real(0.6):
        return wp.normalize(wp.cross(n, vec3(real(1.0), real(0.0), real(0.0))))
    return wp.normalize(wp.cross(n, vec3(real(0.0), real(1.0), real(0.0))))


@wp.func
def away_from_zero(x: real) -> real:
    """x, or the least curvature where x is smaller in size."""
    if wp.abs(x) < LEAST_CURVATURE:
        return LEAST_CURVATURE
    return x


@wp.func
def free_step(a: Core, feature_a: int, b: Core, feature_b: int, hulls: HullData, n: vec3) -> vec3:
    """Newton step on the normal where neither feature pins it down."""
    w = point_of(b, feature_b, hulls, -n) - point_of(a, feature_a, hulls, n)
    reach = wp.dot(n, w)
    t = tangent_of(n)
    u = wp.cross(n, t)
    k_tt = curvature_of(a, feature_a, n, t, t) + curvature_of(b, feature_b, -n, t, t) + reach
    k_tu = curvature_of(a, feature_a, n, t, u) + curvature_of(b, feature_b, -n, t, u)
    k_uu = curvature_of(a, feature_a, n, u, u) + curvature_of(b, feature_b, -n, u, u) + reach
    determinant = k_tt * k_uu - k_tu * k_tu
    wt = wp.dot(w, t)
    wu = wp.dot(w, u)
    if determinant < LEAST_CURVATURE * LEAST_CURVATURE or k_tt <= real(0.0):
        # Not at a maximum of g, where the matrix M is positive definite: step by |M| = (M² + |det M|)/s instead, with
        # s² = tr M² + 2|det M|, which climbs g out of saddles and valleys alike.
        size = wp.abs(determinant)
        s = wp.sqrt(k_tt * k_tt + k_uu * k_uu + real(2.0) * (k_tu * k_tu + size)) + LEAST_CURVATURE
        a_tt = (k_tt * k_tt + k_tu * k_tu + size) / s + FLOOR * s
        a_uu = (k_uu * k_uu + k_tu * k_tu + size) / s + FLOOR * s
        a_tu = k_tu * (k_tt + k_uu) / s
        size = a_tt * a_uu - a_tu * a_tu
        return wp.normalize(n + (t * (a_uu * wt - a_tu * wu) + u * (a_tt * wu - a_tu * wt)) / size)
    return wp.normalize(n + (t * (k_uu * wt - k_tu * wu) + u * (k_tt * wu - k_tu * wt)) / determinant)


@wp.func
def bound_step(a: Core, feature_a: int, b: Core, feature_b: int, hulls: HullData, n: vec3, e: vec3, k: real) -> vec3:
    """Newton step on the normal under one equation n·e = k."""
    w = point_of(b, feature_b, hulls, -n) - point_of(a, feature_a, hulls, n)
    slope = wp.dot(n, e)
    e_tangent = e - n * slope
    ee = wp.max(wp.dot(e_tangent, e_tangent), real(1e-12))
    shift = (k - slope) / ee
    across = wp.normalize(wp.cross(e, n))
    multiplier = wp.dot(w, e_tangent) / ee
    reach = wp.dot(n, w) - multiplier * slope
    k_ee = curvature_of(a, feature_a, n, across, e_tangent) + curvature_of(b, feature_b, -n, across, e_tangent)
    k_aa = curvature_of(a, feature_a, n, across, across) + curvature_of(b, feature_b, -n, across, across) + reach
    step = (wp.dot(w, across) - shift * k_ee) / away_from_zero(k_aa)
    return wp.normalize(n + e_tangent * shift + across * step)


@wp.func
def both_bound(e_a: vec3, k_a: real, e_b: vec3, k_b: real, n: vec3) -> vec3:
    """The unit vector with n·e_a = k_a and n·e_b = k_b, on the side of n."""
    cosine = wp.dot(e_a, e_b)
    sine2 = real(1.0) - cosine * cosine
    flat = e_a * ((k_a - cosine * k_b) / sine2) + e_b * ((k_b - cosine * k_a) / sine2)
    across = wp.cross(e_a, e_b)
    if wp.dot(across, n) < real(0.0):
        across = wp.cross(e_b, e_a)
    return flat + across * wp.sqrt(wp.max(real(1.0) - wp.dot(flat, flat), real(1e-12)) / sine2)


@wp.func
def refined_normal(a: Core, feature_a: int, b: Core, feature_b: int, hulls: HullData, n: vec3) -> vec3:
    """The normal (A to B) that two features call for, to second order from a nearby n."""
    count_a = constraint_count(a.kind, feature_a)
    count_b = constraint_count(b.kind, feature_b)
    if count_a == 2:
        return a.frame @ feature_normal(a.kind, a.shape, feature_a, hulls)
    if count_b == 2:
        return -(b.frame @ feature_normal(b.kind, b.shape, feature_b, hulls))
    if count_a == 0 and count_b == 0:
        return free_step(a, feature_a, b, feature_b, hulls, n)
    e_a = a.frame @ feature_axis(a.kind, a.shape, feature_a, hulls)
    e_b = b.frame @ feature_axis(b.kind, b.shape, feature_b, hulls)
    k_a = feature_slope(a.kind, a.size)
    k_b = -feature_slope(b.kind, b.size)
    if count_a == 1 and count_b == 1:
        across = wp.cross(e_a, e_b)
        if wp.dot(across, across) > PARALLEL:
            return both_bound(e_a, k_a, e_b, k_b, n)
    if count_a == 1:
        return bound_step(a, feature_a, b, feature_b, hulls, n, e_a, k_a)
    return bound_step(a, feature_a, b, feature_b, hulls, n, e_b, k_b)


@wp.func
def convex_contact(
    a: Core, feature_a: int, b: Core, feature_b: int, hulls: HullData, seed: vec3
) -> tuple[real, vec3, vec3]:
    """Contact of two features.

    Args:
        a: First shape.
        feature_a: Its feature.
        b: Second shape.
        feature_b: Its feature.
        hulls: All hulls.
        seed: Unit normal that the search ended with; where a face meets an edge or a face, so that the features alone
        give
            the normal, the touching point of the feature that is not the reference face, in its shape's frame. No
            gradient.

    Returns:
        Distance (m), contact point, unit normal from the first to the second.
    """
    count_a = constraint_count(a.kind, feature_a)
    count_b = constraint_count(b.kind, feature_b)
    n = refined_normal(a, feature_a, b, feature_b, hulls, seed)
    point_a = point_of(a, feature_a, hulls, n)
    point_b = point_of(b, feature_b, hulls, -n)
    if count_a == 2 and count_b > 0:
        point_b = b.position + b.frame @ seed
    elif count_b == 2 and count_a > 0:
        point_a = a.position + a.frame @ seed
    radius_a = core_radius(a.kind, a.size)
    radius_b = core_radius(b.kind, b.size)
    distance = wp.dot(n, point_b - point_a) - radius_a - radius_b
    if count_a == 0 or (count_b == 2 and count_a == 1):
        return distance, point_a + n * (radius_a + real(0.5) * distance), n
    if count_a == 1 and count_b == 1:
        m_a = wp.transpose(a.frame) @ n
        m_b = wp.transpose(b.frame) @ (-n)
        line_a = a.frame @ feature_line(a.kind, a.shape, a.size, feature_a, m_a, hulls)
        line_b = b.frame @ feature_line(b.kind, b.shape, b.size, feature_b, m_b, hulls)
        across = wp.cross(line_a, line_b)
        if wp.dot(across, across) > PARALLEL * wp.dot(line_a, line_a) * wp.dot(line_b, line_b):
            t_a, t_b = line_parameters(point_a, line_a, point_b, line_b)
            surface_a = point_a + line_a * t_a + n * radius_a
            surface_b = point_b + line_b * t_b - n * radius_b
            return distance, real(0.5) * (surface_a + surface_b), n
    return distance, point_b - n * (radius_b + real(0.5) * distance), n
