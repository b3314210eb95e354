"""Rebuild, taped: distance, point and frame of general convex contacts from their frozen features and normals."""

from __future__ import annotations

import warp as wp

from warpsim.collision.convex_code import (
    PRISM_FEATURES,
    contact_code,
    contact_type,
    first_feature,
    second_feature,
)
from warpsim.collision.convex_contact import convex_contact
from warpsim.collision.convex_plane import face_plane, plane_point
from warpsim.collision.core import Core
from warpsim.collision.kinds import HEIGHTFIELD, HULL, KINDS
from warpsim.collision.maths import contact_frame
from warpsim.collision.patch_contact import patch_contact, reference_is_second
from warpsim.collision.support import HullData
from warpsim.core.precision import mat33, quat, real, vec3
from warpsim.core.spatial import quat_matrix


@wp.func
def convex_pair_contact(a: Core, b: Core, code: wp.int64, seed: vec3, hulls: HullData) -> tuple[real, vec3, vec3]:
    """Distance, point and normal of one contact; see `narrow_convex` for the code's types."""
    feature_a = first_feature(code)
    feature_b = second_feature(code)
    if contact_type(code) == 1:
        origin, normal = face_plane(a, feature_a, hulls)
        distance, point = plane_point(origin, normal, b, feature_b, hulls)
        return distance, point, normal
    if contact_type(code) == 2:
        origin, normal = face_plane(b, feature_b, hulls)
        distance, point = plane_point(origin, normal, a, feature_a, hulls)
        return distance, point, -normal
    if contact_type(code) == 3:
        if reference_is_second(code):
            distance, point, normal = patch_contact(b, a, code, hulls, seed)
            return distance, point, -normal
        return patch_contact(a, b, code, hulls, seed)
    return convex_contact(a, feature_a, b, feature_b, hulls, seed)


@wp.kernel
def rebuild_convex_kernel(
    # topology
    first_pair: int,
    last_pair: int,
    pair_shapes: wp.array2d(dtype=int),
    pair_case: wp.array(dtype=int),
    hulls: HullData,
    # choices
    contact_count: wp.array(dtype=int),
    contact_pair: wp.array2d(dtype=int),
    contact_feature: wp.array2d(dtype=wp.int64),
    contact_seed: wp.array2d(dtype=vec3),
    # state
    shape_position: wp.array2d(dtype=vec3),
    shape_rotation: wp.array2d(dtype=quat),
    shape_size: wp.array2d(dtype=vec3),
    # out
    contact_distance: wp.array2d(dtype=real),
    contact_point: wp.array2d(dtype=vec3),
    contact_axes: wp.array2d(dtype=mat33),
):
    """Distance, point and frame of the contacts whose pair lies in [first_pair, last_pair)."""
    world, place = wp.tid()
    if place >= contact_count[world]:
        return
    pair = contact_pair[world, place]
    if pair < first_pair or pair >= last_pair:
        return
    i = pair_shapes[pair, 0]
    j = pair_shapes[pair, 1]
    code = contact_feature[world, place]
    kind = pair_case[pair] // KINDS
    hull = i
    if kind == HEIGHTFIELD:
        kind = HULL
        hull = hulls.prism_grid[i][2] + first_feature(code) // PRISM_FEATURES
        code = contact_code(0, first_feature(code) % PRISM_FEATURES, second_feature(code))
    a = Core(
        kind,
        hull,
        shape_position[world, i],
        quat_matrix(shape_rotation[world, i]),
        shape_size[world, i],
    )
    b = Core(
        pair_case[pair] % KINDS,
        j,
        shape_position[world, j],
        quat_matrix(shape_rotation[world, j]),
        shape_size[world, j],
    )
    distance, point, normal = convex_pair_contact(a, b, code, contact_seed[world, place], hulls)
    contact_distance[world, place] = distance
    contact_point[world, place] = point
    contact_axes[world, place] = contact_frame(normal, vec3())
