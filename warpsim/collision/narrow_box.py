"""Search, untaped: which features of pairs with a box, and of sphere and cylinder, touch."""

from __future__ import annotations

import warp as wp

from warpsim.collision.bounds import bounding_radius, bounds_apart
from warpsim.collision.box_box_search import find_box_box
from warpsim.collision.box_contact import ball_box, sphere_cylinder
from warpsim.collision.box_search import box_region, find_capsule_box, sphere_cylinder_feature
from warpsim.collision.kinds import CAPSULE_BOX, SPHERE_BOX, SPHERE_CYLINDER
from warpsim.collision.maths import column
from warpsim.collision.near import NearPairs
from warpsim.core.precision import quat, real, vec3
from warpsim.core.spatial import quat_matrix

wp.set_module_options({"enable_backward": False})


@wp.func
def _narrow_box_pair(
    # topology
    world: int,
    pair: int,
    shape_kind: wp.array(dtype=int),
    shape_unit_radius: wp.array(dtype=real),
    pair_shapes: wp.array2d(dtype=int),
    pair_case: wp.array(dtype=int),
    pair_start: wp.array(dtype=int),
    # state
    shape_position: wp.array2d(dtype=vec3),
    shape_rotation: wp.array2d(dtype=quat),
    shape_size: wp.array2d(dtype=vec3),
    pair_margin: wp.array2d(dtype=real),
    # out
    pair_count: wp.array2d(dtype=int),
    candidate_feature: wp.array2d(dtype=wp.int64),
):
    a = pair_shapes[pair, 0]
    b = pair_shapes[pair, 1]
    position_a = shape_position[world, a]
    position_b = shape_position[world, b]
    size_a = shape_size[world, a]
    size_b = shape_size[world, b]
    margin = pair_margin[world, pair]
    radius_a = bounding_radius(shape_kind[a], size_a, shape_unit_radius[a])
    radius_b = bounding_radius(shape_kind[b], size_b, shape_unit_radius[b])
    pair_count[world, pair] = 0
    if bounds_apart(shape_kind[a], position_a, quat(), radius_a, position_b, radius_b, margin):
        return
    case = pair_case[pair]
    start = pair_start[pair]
    frame_a = quat_matrix(shape_rotation[world, a])
    frame_b = quat_matrix(shape_rotation[world, b])
    if case == CAPSULE_BOX:
        axis = column(frame_a, 2) * size_a[1]
        pair_count[world, pair] = find_capsule_box(
            position_a, axis, size_a[0], position_b, frame_b, size_b, margin, world, start, candidate_feature
        )
    elif case == SPHERE_BOX or case == SPHERE_CYLINDER:
        feature = int(0)
        distance = real(0.0)
        if case == SPHERE_BOX:
            feature = box_region(wp.transpose(frame_b) @ (position_a - position_b), size_b)
            distance, _p, _n = ball_box(position_a, size_a[0], position_b, frame_b, size_b, feature)
        else:
            feature = sphere_cylinder_feature(position_a, position_b, frame_b, size_b)
            distance, _p, _n = sphere_cylinder(
                position_a, size_a[0], column(frame_a, 2), position_b, frame_b, size_b, feature
            )
        if distance < margin:
            candidate_feature[world, start] = wp.int64(feature)
            pair_count[world, pair] = 1
    else:
        pair_count[world, pair] = find_box_box(
            position_a, frame_a, size_a, position_b, frame_b, size_b, margin, world, start, candidate_feature
        )


@wp.kernel(enable_backward=False)
def narrow_box_kernel(
    # topology
    group: int,
    shape_kind: wp.array(dtype=int),
    shape_unit_radius: wp.array(dtype=real),
    pair_shapes: wp.array2d(dtype=int),
    pair_case: wp.array(dtype=int),
    pair_start: wp.array(dtype=int),
    # near pairs, and the state
    near: NearPairs,
    shape_position: wp.array2d(dtype=vec3),
    shape_rotation: wp.array2d(dtype=quat),
    shape_size: wp.array2d(dtype=vec3),
    pair_margin: wp.array2d(dtype=real),
    # out
    pair_count: wp.array2d(dtype=int),
    candidate_feature: wp.array2d(dtype=wp.int64),
):
    """Active features of sphere–box, sphere–cylinder, capsule–box and box–box pairs."""
    world, lane = wp.tid()
    for place in range(near.first[world, group] + lane, near.first[world, group + 1], near.lanes):
        _narrow_box_pair(
            world,
            near.pair[world, place],
            shape_kind,
            shape_unit_radius,
            pair_shapes,
            pair_case,
            pair_start,
            shape_position,
            shape_rotation,
            shape_size,
            pair_margin,
            pair_count,
            candidate_feature,
        )
