"""Contact of two patches, rebuilt differentiably: one point of the reference polygon clipped by the incident one.

MuJoCo's rule, as its results show it. The reference polygon gives the normal. It is cut by the sides of the incident
polygon, which stand upright on that; each corner of what is left is a contact with its foot on the incident polygon's
plane, and the distance is that between the two along the normal. A line is cut by the sides of the reference polygon
instead, upright on that, and its points' distances are from the reference's plane. Polygons that a file names need not
be quite flat: their plane goes through their last corner.
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
OVER_CORNER = wp.constant(2)
LINE_END = wp.constant(3)
LINE_CROSSING = wp.constant(4)
"""Corner of the reference polygon; where its edge crosses a side of the incident one; its point over a corner of the
incident one; end of an incident line; where that line crosses a side of the reference polygon."""

_PATCH = wp.constant(wp.int64((1 << 17) - 1))
_POINT = wp.constant(wp.int64((1 << 11) - 1))
ROUND_LINE = wp.constant(1024)
"""Added to the point's number where the incident patch is the line of a cylinder's side or a capsule."""


@wp.func
def patch_code(second: int, place: int, reference: int, incident: int, m: int, k: int) -> wp.int64:
    """Code of a contact, from bit 0.

    Type 3 (2 bits), whose patch is the reference (1: the second's), place (3), both patches (17 each), side or corner m
    of the reference (11), side or corner k of the incident patch (11).
    """
    code = wp.int64(3) | (wp.int64(second) << wp.int64(2)) | (wp.int64(place) << wp.int64(3))
    code = code | (wp.int64(reference) << wp.int64(6)) | (wp.int64(incident) << wp.int64(23))
    return code | (wp.int64(m) << wp.int64(40)) | (wp.int64(k) << wp.int64(51))


@wp.func
def reference_is_second(code: wp.int64) -> bool:
    """Whether the reference polygon is the second shape's."""
    return ((code >> wp.int64(2)) & wp.int64(1)) == wp.int64(1)


@wp.func
def point_place(code: wp.int64) -> int:
    """Which kind of point of the clipped patch a contact is."""
    return int((code >> wp.int64(3)) & wp.int64(7))


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
    own = (int((code >> wp.int64(51)) & _POINT) - ROUND_LINE) // 2
    if reference_is_second(code):
        return refined_normal(incident, own, reference, other, hulls, seed)
    return -refined_normal(reference, other, incident, own, hulls, seed)


@wp.func
def incident_patch(incident: Core, code: wp.int64) -> int:
    """Number of the incident patch."""
    if int((code >> wp.int64(51)) & _POINT) < ROUND_LINE:
        return int((code >> wp.int64(23)) & _PATCH)
    if incident.kind == CYLINDER:
        return SIDE
    return 0


@wp.func
def edge_crossing(core: Core, patch: int, i: int, a: vec3, beyond: vec3, way: vec3, hulls: HullData) -> vec3:
    """Where the line from a patch's point i to the next meets the plane through a across `beyond`."""
    p = patch_point(core, patch, i, way, hulls)
    q = patch_point(core, patch, (i + 1) % patch_size(core, patch, hulls), way, hulls)
    return p + (q - p) * (wp.dot(a - p, beyond) / wp.dot(q - p, beyond))


@wp.func
def polygon_side(core: Core, patch: int, i: int, upright: vec3, hulls: HullData) -> tuple[vec3, vec3]:
    """A point of a polygon's side i and its normal (any length), out of the polygon."""
    a = patch_point(core, patch, i, upright, hulls)
    b = patch_point(core, patch, (i + 1) % patch_size(core, patch, hulls), upright, hulls)
    return a, side_normal(a, b, upright)


@wp.func
def plane_origin(core: Core, patch: int, normal: vec3, hulls: HullData) -> vec3:
    """The corner of a polygon through which its plane goes."""
    return patch_point(core, patch, patch_size(core, patch, hulls) - 1, normal, hulls)


@wp.func
def line_contact(
    reference: Core, incident: Core, code: wp.int64, hulls: HullData, seed: vec3
) -> tuple[real, vec3, vec3]:
    """One point of an incident line cut by the reference polygon; as `patch_contact`."""
    face = int((code >> wp.int64(6)) & _PATCH)
    patch = incident_patch(incident, code)
    m = int((code >> wp.int64(40)) & _POINT)
    k = int((code >> wp.int64(51)) & _POINT)
    normal = patch_normal(reference, face, hulls)
    way = -normal
    if k >= ROUND_LINE:
        way = line_way(reference, incident, code, hulls, seed)
        k = k % 2
    x = vec3()
    if point_place(code) == LINE_END:
        x = patch_point(incident, patch, k, way, hulls)
    else:
        a, beyond = polygon_side(reference, face, m, normal, hulls)
        x = edge_crossing(incident, patch, k, a, beyond, way, hulls)
    distance = wp.dot(x - plane_origin(reference, face, normal, hulls), normal)
    return distance, x - normal * (real(0.5) * distance), normal


@wp.func
def patch_contact(
    reference: Core, incident: Core, code: wp.int64, hulls: HullData, seed: vec3
) -> tuple[real, vec3, vec3]:
    """One point of two patches that lie on one another.

    Args:
        reference: Whose polygon gives the normal.
        incident: Whose polygon or line lies on it.
        code: Of `patch_code`.
        hulls: All hulls.
        seed: Unit normal of the pair's nearest features, from the first shape to the second; no gradient.

    Returns:
        Distance (m), contact point and the reference's outward normal.
    """
    place = point_place(code)
    if place >= LINE_END:
        return line_contact(reference, incident, code, hulls, seed)
    face = int((code >> wp.int64(6)) & _PATCH)
    patch = incident_patch(incident, code)
    m = int((code >> wp.int64(40)) & _POINT)
    k = int((code >> wp.int64(51)) & _POINT)
    normal = patch_normal(reference, face, hulls)
    upright = patch_normal(incident, patch, hulls)
    x = patch_point(reference, face, m, normal, hulls)
    if place == CROSSING:
        a, beyond = polygon_side(incident, patch, k, upright, hulls)
        x = edge_crossing(reference, face, m, a, beyond, normal, hulls)
    elif place == OVER_CORNER:
        corner = patch_point(incident, patch, k, upright, hulls)
        rise = wp.dot(plane_origin(reference, face, normal, hulls) - corner, normal) / wp.dot(upright, normal)
        x = corner + upright * rise
    foot = x + upright * wp.dot(plane_origin(incident, patch, upright, hulls) - x, upright)
    distance = wp.dot(foot - x, normal)
    return distance, foot - normal * (real(0.5) * distance), normal
