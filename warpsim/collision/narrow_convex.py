"""Search, untaped: which features of two general convex shapes touch.

GJK and EPA give the touching points; where those lie on the shapes names the features, and Newton steps on the normal
polish what curved shapes leave open. Faces and edges that lie on one another touch by several points, so that shapes
rest (`patch_features`); a cone's face against anything becomes plane contacts.

Feature bits (`contact_code`): type (2), feature of the first shape (30), of the second (30). Type 0: the two
features themselves (`convex_contact`); 1: the first shape's face as a plane, against a point of the second (numbered as
in `plane_contact`, hulls by vertex); 2: the same with the roles exchanged; 3: a point of two patches, with bits of its
own (`patch_contact`).
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.bounds import bounding_radius, bounds_apart
from warpsim.collision.convex_code import contact_code
from warpsim.collision.convex_contact import convex_contact
from warpsim.collision.convex_feature import constraint_count
from warpsim.collision.convex_plane import face_plane, plane_point, point_count
from warpsim.collision.convex_search import feature_seed, find_features
from warpsim.collision.core import Core
from warpsim.collision.epa import closest_cores
from warpsim.collision.kinds import BOX, HULL, PLANE
from warpsim.collision.near import NearPairs
from warpsim.collision.oriented_box import HullBoxes, boxes_apart
from warpsim.collision.patch import has_patches, patch_normal, patch_point, patch_size
from warpsim.collision.patch_features import facing_polygon, loop_place
from warpsim.collision.patch_search import find_on_patches, widest_quad
from warpsim.collision.search_room import CLIP_POINTS, SearchRoom, room_row
from warpsim.collision.selection import beats, spread
from warpsim.collision.support import HullData, core_radius, hull_support
from warpsim.core.precision import quat, real, vec3
from warpsim.core.spatial import quat_matrix

wp.set_module_options({"enable_backward": False, "max_unroll": 1})

PLANE_CONTACTS = wp.constant(4)
"""Most contacts with one face."""
FLAT = wp.constant(real(1.0 - 0.5 * 2e-3**2))
"""Cosine above which a face lies flat on a plane (2e-3 rad). Which of its vertices is lowest then changes from step to
step: four of more than four chosen from that one on would change with it, and the hull would rock, as in MuJoCo."""
ANYWHERE = wp.constant(real(1e9))
"""A margin that asks for the distance itself, by one contact of the nearest features, however far."""


@wp.func
def over_face(core: Core, feature: int, hulls: HullData, point: vec3, slack: real) -> bool:
    """Whether a world point lies over (or under) a face, not beside it."""
    if core.kind == PLANE:
        return True
    local = wp.transpose(core.frame) @ (point - core.position)
    if core.kind == BOX:
        for k in range(3):
            side = (feature // (1 + 2 * k * k)) % 3 - 1
            if side == 0 and wp.abs(local[k]) > core.size[k] + slack:
                return False
        return True
    if core.kind == HULL:
        first = hulls.face_start[core.shape]
        face = first + feature // 3
        normal = hulls.face_normal[face]
        start = hulls.vertex_start[core.shape]
        on_face = hulls.vertex[start + hulls.face_vertex[face, 0]] * core.size[0]
        local = local - normal * wp.dot(local - on_face, normal)
        for i in range(first, hulls.face_start[core.shape + 1]):
            corner = hulls.vertex[start + hulls.face_vertex[i, 0]] * core.size[0]
            if i != face and wp.dot(local - corner, hulls.face_normal[i]) > slack:
                return False
        return True
    reach = core.size[0] + slack
    return local[0] * local[0] + local[1] * local[1] <= reach * reach


@wp.func
def find_on_face(
    plane: Core,
    face: int,
    other: Core,
    hulls: HullData,
    margin: real,
    swapped: bool,
    world: int,
    start: int,
    candidate_feature: wp.array2d(dtype=wp.int64),
) -> int:
    """Up to four points of `other` near a face of `plane`: the deepest, then those that spread the contacts widest.

    `swapped` says that `plane` is the pair's second shape.
    """
    origin, normal = face_plane(plane, face, hulls)
    slack = real(1e-9) * (real(1.0) + wp.length(other.size))
    chosen = wp.zeros(shape=(4,), dtype=vec3)
    count = int(0)
    searching = bool(True)
    while searching and count < PLANE_CONTACTS:
        best = int(-1)
        best_score = real(1e-9)
        if count == 0:
            best_score = -margin
        for i in range(point_count(other, hulls)):
            distance, point = plane_point(origin, normal, other, i, hulls)
            if distance < margin:
                score = -distance
                if count > 0:
                    score = spread(count, point, chosen[0], chosen[1], chosen[2], normal)
                if beats(score, best_score):
                    if over_face(plane, face, hulls, point, slack):
                        best = i
                        best_score = score
                        chosen[count] = point
        searching = best >= 0
        if best >= 0:
            if swapped:
                candidate_feature[world, start + count] = contact_code(2, best, face)
            else:
                candidate_feature[world, start + count] = contact_code(1, face, best)
            count += 1
    return count


@wp.func
def find_under_hull(
    plane: Core,
    hull: Core,
    hulls: HullData,
    margin: real,
    room: SearchRoom,
    row: int,
    world: int,
    start: int,
    candidate_feature: wp.array2d(dtype=wp.int64),
) -> int:
    """Up to four vertices of a hull near a plane: of the face at its deepest vertex that looks at the plane most."""
    origin, normal = face_plane(plane, 0, hulls)
    lowest = hull_support(hulls, hull.shape, wp.transpose(hull.frame) @ (-normal))
    distance, _point = plane_point(origin, normal, hull, lowest, hulls)
    if distance >= margin:
        return 0
    patch = facing_polygon(hull, hulls.vertex_start[hull.shape] + lowest, -normal, hulls)
    if patch < 0:
        candidate_feature[world, start] = contact_code(1, 0, lowest)
        return 1
    first = hulls.loop_start[hulls.patch_start[hull.shape] + patch]
    size = patch_size(hull, patch, hulls)
    place = loop_place(hulls, hull.shape, patch, lowest)
    if -wp.dot(patch_normal(hull, patch, hulls), normal) > FLAT:
        place = 0
    count = wp.min(size, CLIP_POINTS)
    chosen = wp.vec4i(0, 1, 2, 3)
    if count > PLANE_CONTACTS:
        point = room.point[row, 0]
        for i in range(count):
            point[i] = patch_point(hull, patch, (place + i) % size, normal, hulls)
        chosen = widest_quad(count, point)
        count = PLANE_CONTACTS
    total = int(0)
    for i in range(count):
        corner = hulls.loop[first + (place + chosen[i]) % size]
        distance, _point = plane_point(origin, normal, hull, corner, hulls)
        if distance < margin:
            candidate_feature[world, start + total] = contact_code(1, 0, corner)
            total += 1
    return total


@wp.func
def find_convex(
    a: Core,
    b: Core,
    hulls: HullData,
    margin: real,
    radius_a: real,
    radius_b: real,
    room: SearchRoom,
    row: int,
    world: int,
    start: int,
    candidate_feature: wp.array2d(dtype=wp.int64),
    candidate_seed: wp.array2d(dtype=vec3),
) -> int:
    """Active features of a convex pair; returns their number."""
    if a.kind == PLANE:
        return find_under_hull(a, b, hulls, margin, room, row, world, start, candidate_feature)
    limit = wp.max(margin + core_radius(a.kind, a.size) + core_radius(b.kind, b.size), real(0.0))
    found = closest_cores(a, b, hulls, limit, room, row)
    if not (found.distance <= limit):  # nor where a pose is not a number: there are no features to read then
        return 0
    touch = find_features(a, b, hulls, found, radius_a, radius_b)
    feature_a = touch.feature_a
    feature_b = touch.feature_b
    count_a = constraint_count(a.kind, feature_a)
    count_b = constraint_count(b.kind, feature_b)
    count = int(0)
    flat = has_patches(a.kind) and has_patches(b.kind)
    if flat and margin < ANYWHERE:
        count = find_on_patches(
            a,
            feature_a,
            b,
            feature_b,
            touch.normal,
            hulls,
            margin,
            room,
            row,
            world,
            start,
            candidate_feature,
            candidate_seed,
        )
        if count > 0:
            return count
    if count_a == 2 and not flat:
        count = find_on_face(a, feature_a, b, hulls, margin, False, world, start, candidate_feature)
    if count_b == 2 and not flat:
        count += find_on_face(b, feature_b, a, hulls, margin, True, world, start + count, candidate_feature)
    if count > 0:
        return count
    seed = feature_seed(a, b, touch, found)
    distance, _point, _normal = convex_contact(a, feature_a, b, feature_b, hulls, seed)
    if distance >= margin:
        return 0
    candidate_feature[world, start] = contact_code(0, feature_a, feature_b)
    candidate_seed[world, start] = seed
    return 1


@wp.func
def _narrow_convex_pair(
    # topology
    world: int,
    pair: int,
    shape_kind: wp.array(dtype=int),
    shape_unit_radius: wp.array(dtype=real),
    pair_shapes: wp.array2d(dtype=int),
    pair_case: wp.array(dtype=int),
    pair_start: wp.array(dtype=int),
    hulls: HullData,
    boxes: HullBoxes,
    # state
    shape_position: wp.array2d(dtype=vec3),
    shape_rotation: wp.array2d(dtype=quat),
    shape_size: wp.array2d(dtype=vec3),
    pair_margin: wp.array2d(dtype=real),
    # work
    room: SearchRoom,
    row: int,
    # out
    pair_count: wp.array2d(dtype=int),
    candidate_feature: wp.array2d(dtype=wp.int64),
    candidate_seed: wp.array2d(dtype=vec3),
):
    i = pair_shapes[pair, 0]
    j = pair_shapes[pair, 1]
    margin = pair_margin[world, pair]
    a = Core()
    a.kind = shape_kind[i]
    a.shape = i
    a.position = shape_position[world, i]
    a.size = shape_size[world, i]
    b = Core()
    b.kind = shape_kind[j]
    b.shape = j
    b.position = shape_position[world, j]
    b.size = shape_size[world, j]
    radius_a = bounding_radius(a.kind, a.size, shape_unit_radius[i])
    radius_b = bounding_radius(b.kind, b.size, shape_unit_radius[j])
    pair_count[world, pair] = 0
    if bounds_apart(a.kind, a.position, shape_rotation[world, i], radius_a, b.position, radius_b, margin):
        return
    a.frame = quat_matrix(shape_rotation[world, i])
    b.frame = quat_matrix(shape_rotation[world, j])
    if boxes_apart(a, b, boxes, margin):
        return
    pair_count[world, pair] = find_convex(
        a, b, hulls, margin, radius_a, radius_b, room, row, world, pair_start[pair], candidate_feature, candidate_seed
    )


@wp.kernel(enable_backward=False)
def narrow_convex_kernel(
    # topology
    group: int,
    shape_kind: wp.array(dtype=int),
    shape_unit_radius: wp.array(dtype=real),
    pair_shapes: wp.array2d(dtype=int),
    pair_case: wp.array(dtype=int),
    pair_start: wp.array(dtype=int),
    hulls: HullData,
    boxes: HullBoxes,
    # near pairs, and the state
    near: NearPairs,
    shape_position: wp.array2d(dtype=vec3),
    shape_rotation: wp.array2d(dtype=quat),
    shape_size: wp.array2d(dtype=vec3),
    pair_margin: wp.array2d(dtype=real),
    # work
    room: SearchRoom,
    # out
    pair_count: wp.array2d(dtype=int),
    candidate_feature: wp.array2d(dtype=wp.int64),
    candidate_seed: wp.array2d(dtype=vec3),
):
    """Active features of general convex pairs, with the normal each was found at."""
    world, lane = wp.tid()
    row = room_row(room, world, lane)
    for place in range(near.first[world, group] + lane, near.first[world, group + 1], room.lanes):
        _narrow_convex_pair(
            world,
            near.pair[world, place],
            shape_kind,
            shape_unit_radius,
            pair_shapes,
            pair_case,
            pair_start,
            hulls,
            boxes,
            shape_position,
            shape_rotation,
            shape_size,
            pair_margin,
            room,
            row,
            pair_count,
            candidate_feature,
            candidate_seed,
        )
