"""Closest points of two convex cores that are apart (Gilbert, Johnson and Keerthi). Never taped.

G. van den Bergen, *Collision Detection in Interactive 3D Environments*, 2003, ch. 4. Works on the difference A − B, in
world axes, whose point nearest to the origin gives the distance. Polytopes end exactly; curved shapes are polished
later (`convex_contact`).
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.core import Core, support_of, to_world
from warpsim.collision.maths import TINY
from warpsim.collision.simplex import nearest_weights
from warpsim.collision.support import HullData
from warpsim.core.precision import EPSILON, mat33, real, vec3

GJK_STEPS = wp.constant(64)
RELATIVE = wp.constant(real(64.0 * EPSILON))
"""Relative accuracy of GJK's squared distance."""


@wp.struct
class Closest:
    """What the search found."""

    normal: vec3  # unit, from A to B, world frame
    distance: real  # of the cores, m
    point_a: vec3  # on A's core, in A's frame
    point_b: vec3
    corners_a: mat33  # rows: the support points of A, in its frame, that span the touching simplex; some are equal
    corners_b: mat33


@wp.func
def add_support(
    a: Core,
    b: Core,
    hulls: HullData,
    way: vec3,
    i: int,
    w: wp.array(dtype=vec3),
    wa: wp.array(dtype=vec3),
    wb: wp.array(dtype=vec3),
):
    """Stores the support of A − B along `way` as vertex i."""
    local_a = support_of(a, hulls, way)
    local_b = support_of(b, hulls, -way)
    wa[i] = local_a
    wb[i] = local_b
    w[i] = to_world(a, local_a) - to_world(b, local_b)


@wp.func
def three_rows(points: wp.array(dtype=vec3), i: int, j: int, k: int) -> mat33:
    """Three of some points as the rows of a matrix."""
    p = points[i]
    q = points[j]
    r = points[k]
    return mat33(p[0], p[1], p[2], q[0], q[1], q[2], r[0], r[1], r[2])


@wp.func
def gjk(
    a: Core,
    b: Core,
    hulls: HullData,
    limit: real,
    w: wp.array(dtype=vec3),
    wa: wp.array(dtype=vec3),
    wb: wp.array(dtype=vec3),
    out_count: wp.array(dtype=int),
) -> Closest:
    """Distance of two cores; a distance of zero with `out_count[0]` simplex vertices where they overlap.

    Cores that are surely further apart than `limit` (m) get a distance between it and the true one.
    """
    result = Closest()
    v = a.position - b.position
    if wp.dot(v, v) < TINY:
        v = vec3(real(1.0), real(0.0), real(0.0))
    count = int(0)
    last = real(1.0e30)
    for _step in range(GJK_STEPS):
        add_support(a, b, hulls, -v, count, w, wa, wb)
        vv = wp.dot(v, v)
        along = wp.dot(v, w[count])
        if along > real(0.0) and along * along > limit * limit * vv:  # no point of A − B lies nearer along v
            result.distance = along / wp.sqrt(vv)
            return result
        if count > 0 and vv - along <= RELATIVE * vv:
            break
        weights = nearest_weights(w, count + 1)
        if weights[0] < wp.float64(0.0):
            out_count[0] = 4
            result.distance = real(0.0)
            return result
        kept = int(0)
        v_new = vec3()
        pa = vec3()
        pb = vec3()
        for i in range(count + 1):
            if weights[i] > wp.float64(0.0):
                w[kept] = w[i]
                wa[kept] = wa[i]
                wb[kept] = wb[i]
                v_new += w[i] * real(weights[i])
                pa += wa[i] * real(weights[i])
                pb += wb[i] * real(weights[i])
                kept += 1
        vv = wp.dot(v_new, v_new)
        if vv >= last:
            break
        last = vv
        v = v_new
        count = kept
        result.point_a = pa
        result.point_b = pb
        result.corners_a = three_rows(wa, 0, wp.min(kept, 2) - 1, wp.min(kept, 3) - 1)
        result.corners_b = three_rows(wb, 0, wp.min(kept, 2) - 1, wp.min(kept, 3) - 1)
        result.distance = wp.sqrt(vv)
        if vv < real(1e-24):
            out_count[0] = kept
            result.distance = real(0.0)
            return result
        result.normal = -v / wp.sqrt(vv)
        if kept == 4:
            break
    out_count[0] = count
    return result
