"""From the touching points of two convex cores to the features they lie on and their normal. Never taped."""

from __future__ import annotations

import warp as wp

from warpsim.collision.convex_contact import point_of, refined_normal
from warpsim.collision.convex_feature import constraint_count
from warpsim.collision.core import Core, support_of, to_world
from warpsim.collision.corner_feature import facing_face, feature_of_corners
from warpsim.collision.gjk import Closest
from warpsim.collision.kinds import BOX, CAPSULE, CONE, CYLINDER, HULL
from warpsim.collision.support import HullData, is_polytope
from warpsim.core.precision import EPSILON, real, vec3

POLISH_STEPS = wp.constant(64)
"""Most Newton steps on a normal."""
EXPLAINED = wp.constant(real(1e-8))
"""Share of the shapes' sizes by which the gap of two features may fall short of the distance found."""
FLAT_EXPLAINED = wp.constant(real(max(1e-12, 1024.0 * EPSILON)))
"""The same for polytopes, whose features come from the search itself."""
SQUARE = wp.constant(real(1.0 - 1e-10))
"""Cosine above which a normal is a face's: flat shapes at rest on one another touch by their faces, not by a corner."""


@wp.func
def classify_hull(hulls: HullData, shape: int, scale: real, point: vec3, way: vec3, tolerance: real) -> int:
    """Vertex, edge or face of a hull on which a point lies (shape's frame)."""
    face = facing_face(hulls, shape, way)
    if wp.dot(hulls.face_normal[hulls.face_start[shape] + face], way) > SQUARE:
        return 3 * face + 2
    local = point / scale
    near = tolerance / scale
    first = hulls.vertex_start[shape]
    for i in range(first, hulls.vertex_start[shape + 1]):
        if wp.length(hulls.vertex[i] - local) < near:
            return 3 * (i - first)
    for i in range(hulls.edge_start[shape], hulls.edge_start[shape + 1]):
        p = hulls.vertex[first + hulls.edge[i, 0]]
        along = wp.normalize(hulls.vertex[first + hulls.edge[i, 1]] - p)
        if wp.length(wp.cross(local - p, along)) < near:
            return 3 * (i - hulls.edge_start[shape]) + 1
    return 3 * face + 2


@wp.func
def classify_box(size: vec3, point: vec3, way: vec3, tolerance: real) -> int:
    """Region of a box on which a point lies; the face where the outward direction is along an axis."""
    region = int(13)
    step = int(1)
    for k in range(3):
        if way[k] > SQUARE:
            return 13 + step
        if way[k] < -SQUARE:
            return 13 - step
        if point[k] > size[k] - tolerance:
            region += step
        elif point[k] < tolerance - size[k]:
            region -= step
        step *= 3
    if region == 13:
        return 14
    return region


@wp.func
def classify_turned(kind: int, size: vec3, point: vec3, way: vec3, tolerance: real) -> int:
    """Side, cap, rim or apex of a cylinder or cone on which a point lies."""
    cone = kind == CONE
    if way[2] < -SQUARE:
        return 2
    if way[2] > SQUARE and not cone:
        return 1
    rim = wp.sqrt(point[0] * point[0] + point[1] * point[1]) > size[0] - tolerance
    if point[2] < tolerance - size[1]:
        if rim:
            return 4
        return 2
    if point[2] > size[1] - tolerance:
        if cone:
            return 5
        if rim:
            return 3
        return 1
    return 0


@wp.func
def classify(core: Core, point: vec3, way: vec3, hulls: HullData, tolerance: real) -> int:
    """Feature on which a core's point lies; `way` is the outward direction there (both in the shape's frame)."""
    if core.kind == BOX:
        return classify_box(core.size, point, way, tolerance)
    if core.kind == HULL:
        return classify_hull(hulls, core.shape, core.size[0], point, way, tolerance)
    if core.kind == CYLINDER or core.kind == CONE:
        return classify_turned(core.kind, core.size, point, way, tolerance)
    if core.kind == CAPSULE:
        if point[2] > core.size[1] - tolerance:
            return 2
        if point[2] < tolerance - core.size[1]:
            return 0
        return 1
    return 0


@wp.func
def gap_along(a: Core, b: Core, hulls: HullData, n: vec3) -> real:
    """g(n): the gap between two cores along a unit direction, never more than their signed distance."""
    return wp.dot(n, to_world(b, support_of(b, hulls, -n)) - to_world(a, support_of(a, hulls, n)))


@wp.func
def polished_normal(a: Core, feature_a: int, b: Core, feature_b: int, hulls: HullData, start: vec3) -> vec3:
    """Newton steps on the normal, shortened until the gap does not shrink, so that they end at a maximum of it."""
    n = start
    gap = gap_along(a, b, hulls, n)
    for _step in range(POLISH_STEPS):
        target = refined_normal(a, feature_a, b, feature_b, hulls, n)
        trial = target
        share = real(1.0)
        new_gap = gap_along(a, b, hulls, trial)
        while new_gap < gap - real(1e-12) and share > real(0.02):
            share *= real(0.5)
            trial = wp.normalize(n + (target - n) * share)
            new_gap = gap_along(a, b, hulls, trial)
        if new_gap < gap - real(1e-12):
            return n
        moved = wp.length(trial - n)
        n = trial
        gap = new_gap
        if moved < real(1e-13):
            return n
    return n


@wp.struct
class Touch:
    """The features by which two cores touch, and their normal."""

    feature_a: int
    feature_b: int
    normal: vec3  # unit, from A to B, world frame
    gap: real  # along the normal, m; less what the features claim beyond it


@wp.func
def feature_seed(a: Core, b: Core, touch: Touch, found: Closest) -> vec3:
    """What `convex_contact` takes of a search: the normal, or where a face leaves it open the touching point."""
    count_a = constraint_count(a.kind, touch.feature_a)
    count_b = constraint_count(b.kind, touch.feature_b)
    if count_a == 2 and count_b > 0:
        return found.point_b
    if count_b == 2 and count_a > 0:
        return found.point_a
    return touch.normal


@wp.func
def try_features(a: Core, b: Core, hulls: HullData, trial: Touch, slack: real) -> Touch:
    """The normal that two features call for, near a first guess, and the gap along it."""
    out = trial
    out.normal = polished_normal(a, trial.feature_a, b, trial.feature_b, hulls, trial.normal)
    n = refined_normal(a, trial.feature_a, b, trial.feature_b, hulls, out.normal)
    gap = gap_along(a, b, hulls, n)
    # Features that are not the outermost ones along their own normal claim more than there is.
    claimed = wp.dot(n, point_of(b, trial.feature_b, hulls, -n) - point_of(a, trial.feature_a, hulls, n))
    if claimed > gap + slack:
        gap -= claimed - gap
    out.gap = gap
    return out


@wp.func
def find_features(a: Core, b: Core, hulls: HullData, found: Closest, radius_a: real, radius_b: real) -> Touch:
    """Features of the touching points: the first tried that explain the distance, or the best.

    Of polytopes first those that the corners of the touching simplex span. Then those on which the points lie within
    three tolerances. On round shapes the touching points may all be corners or rim points where an edge or a side
    touches: the normal is then at a ridge of the gap, and a step goes past it. As a last try the features are those
    midway between the support points before and after that step.

    Args:
        a: First core.
        b: Second core.
        hulls: All hulls.
        found: Their touching points, normal and distance.
        radius_a: Bounding radius of the first, m; the tolerances are shares of it.
        radius_b: Of the second.
    """
    best = Touch()
    best.gap = real(-1.0e30)
    slack = EXPLAINED * (radius_a + radius_b)
    trial = Touch()
    if is_polytope(a.kind) and is_polytope(b.kind):
        trial.normal = found.normal
        trial.feature_a = feature_of_corners(a, found.corners_a, wp.transpose(a.frame) @ found.normal, hulls)
        trial.feature_b = feature_of_corners(b, found.corners_b, wp.transpose(b.frame) @ (-found.normal), hulls)
        best = try_features(a, b, hulls, trial, FLAT_EXPLAINED * (radius_a + radius_b))
        if best.gap >= found.distance - FLAT_EXPLAINED * (radius_a + radius_b):
            return best
    better = real(0.0)
    point_a = found.point_a
    point_b = found.point_b
    share = real(1e-6)
    tries = int(0)
    while tries < 4 and best.gap < found.distance - slack:
        if tries == 3:
            past = refined_normal(a, best.feature_a, b, best.feature_b, hulls, best.normal)
            point_a = real(0.5) * (support_of(a, hulls, best.normal) + support_of(a, hulls, past))
            point_b = real(0.5) * (support_of(b, hulls, -best.normal) + support_of(b, hulls, -past))
            share = real(1e-6)
            better = slack  # nothing changes hands by rounding
        trial.normal = found.normal
        trial.feature_a = classify(a, point_a, wp.transpose(a.frame) @ found.normal, hulls, share * radius_a)
        trial.feature_b = classify(b, point_b, wp.transpose(b.frame) @ (-found.normal), hulls, share * radius_b)
        trial = try_features(a, b, hulls, trial, slack)
        if trial.gap > best.gap + better:
            best = trial
        share *= real(100.0)
        tries += 1
    return best
