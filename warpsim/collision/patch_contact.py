"""Contact of two patches, rebuilt differentiably: one point of the incident patch clipped by the reference polygon.

MuJoCo's rule. The incident patch is cut by the sides of the reference polygon; each corner of what is left is a contact
whose normal is the reference polygon's and whose distance is that from its plane. Sides stand upright on the incident
polygon, or on the reference where the incident patch is a line.
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.convex_contact import refined_normal
from warpsim.collision.core import Core
from warpsim.collision.kinds import CYLINDER
from warpsim.collision.patch import SIDE, patch_normal, patch_point, patch_size
from warpsim.collision.support import HullData
from warpsim.core.precision import real, vec3

CORNER = wp.constant(0)
CROSSING = wp.constant(1)
BELOW_CORNER = wp.constant(2)
LINE_CROSSING = wp.constant(3)
"""Point of the incident patch; where it crosses a side of the reference; opposite a corner of the reference; the same
as a crossing with sides that stand on the reference."""

_PATCH = wp.constant(wp.int64((1 << 18) - 1))
_POINT = wp.constant(wp.int64((1 << 11) - 1))
ROUND_LINE = wp.constant(1024)
"""Added to the point's number where the incident patch is the line of a cylinder's side or a capsule."""


@wp.func
def patch_code(second: int, place: int, reference: int, incident: int, m: int, k: int) -> wp.int64:
    """Code of a contact, from bit 0.

    Type 3 (2 bits), whose patch is the reference (1: the second's), place (2), both patches (18 each), side or corner m
    of the reference (11), point k of the incident patch (11).
    """
    code = wp.int64(3) | (wp.int64(second) << wp.int64(2)) | (wp.int64(place) << wp.int64(3))
    code = code | (wp.int64(reference) << wp.int64(5)) | (wp.int64(incident) << wp.int64(23))
    return code | (wp.int64(m) << wp.int64(41)) | (wp.int64(k) << wp.int64(52))


@wp.func
def reference_is_second(code: wp.int64) -> bool:
    """Whether the reference polygon is the second shape's."""
    return ((code >> wp.int64(2)) & wp.int64(1)) == wp.int64(1)


@wp.func
def point_place(code: wp.int64) -> int:
    """Which kind of point of the clipped patch a contact is."""
    return int((code >> wp.int64(3)) & wp.int64(3))


@wp.func
def side_normal(a: vec3, b: vec3, upright: vec3) -> vec3:
    """Normal (any length) of the side plane through a polygon's edge a → b along `upright`."""
    return wp.cross(b - a, upright)


@wp.func
def line_way(reference: Core, incident: Core, code: wp.int64, hulls: HullData, seed: vec3) -> vec3:
    """Where the line of a round incident shape looks: along the normal of the nearest features of the pair.

    The code has those in place of the incident patch (the reference's) and above the point's number (its own).
    """
    other = int((code >> wp.int64(23)) & _PATCH)
    own = (int((code >> wp.int64(52)) & _POINT) - ROUND_LINE) // 2
    if reference_is_second(code):
        return refined_normal(incident, own, reference, other, hulls, seed)
    return -refined_normal(reference, other, incident, own, hulls, seed)


@wp.func
def incident_patch(incident: Core, code: wp.int64) -> int:
    """Number of the incident patch."""
    if int((code >> wp.int64(52)) & _POINT) < ROUND_LINE:
        return int((code >> wp.int64(23)) & _PATCH)
    if incident.kind == CYLINDER:
        return SIDE
    return 0


@wp.func
def patch_contact(
    reference: Core, incident: Core, code: wp.int64, hulls: HullData, seed: vec3
) -> tuple[real, vec3, vec3]:
    """One point of the clipped incident patch.

    Args:
        reference: Whose polygon clips.
        incident: Whose patch is clipped.
        code: Of `patch_code`.
        hulls: All hulls.
        seed: Unit normal of the pair's nearest features, from the first shape to the second; no gradient.

    Returns:
        Distance (m), contact point and the reference's outward normal.
    """
    place = point_place(code)
    face = int((code >> wp.int64(5)) & _PATCH)
    patch = incident_patch(incident, code)
    m = int((code >> wp.int64(41)) & _POINT)
    k = int((code >> wp.int64(52)) & _POINT)
    normal = patch_normal(reference, face, hulls)
    origin = patch_point(reference, face, 0, normal, hulls)
    way = -normal
    if k >= ROUND_LINE:
        way = line_way(reference, incident, code, hulls, seed)
        k = k % 2
    x = patch_point(incident, patch, k, way, hulls)
    if place != CORNER:
        a = patch_point(reference, face, m, normal, hulls)
        upright = normal
        if place != LINE_CROSSING:
            upright = patch_normal(incident, patch, hulls)
        if place == BELOW_CORNER:
            x = a + upright * wp.dot(x - a, upright)
        else:
            b = patch_point(reference, face, (m + 1) % patch_size(reference, face, hulls), normal, hulls)
            end = patch_point(incident, patch, (k + 1) % patch_size(incident, patch, hulls), way, hulls)
            beyond = side_normal(a, b, upright)
            x = x + (end - x) * (wp.dot(a - x, beyond) / wp.dot(end - x, beyond))
    distance = wp.dot(x - origin, normal)
    return distance, x - normal * (real(0.5) * distance), normal
