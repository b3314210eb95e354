"""Rebuild, taped: distance, point and frame of contacts with a box, and of sphere and cylinder."""

from __future__ import annotations

import warp as wp

from warpsim.collision.box_box import box_box
from warpsim.collision.box_contact import ball_box, capsule_box, sphere_cylinder
from warpsim.collision.kinds import CAPSULE_BOX, SPHERE_BOX, SPHERE_CYLINDER
from warpsim.collision.maths import column, contact_frame
from warpsim.core.precision import mat33, quat, real, vec3
from warpsim.core.spatial import quat_matrix


@wp.func
def box_contact(
    case: int,
    feature: int,
    position_a: vec3,
    frame_a: mat33,
    size_a: vec3,
    position_b: vec3,
    frame_b: mat33,
    size_b: vec3,
) -> tuple[real, vec3, vec3]:
    """Distance, point and normal of one contact."""
    if case == SPHERE_BOX:
        return ball_box(position_a, size_a[0], position_b, frame_b, size_b, feature)
    if case == SPHERE_CYLINDER:
        return sphere_cylinder(position_a, size_a[0], column(frame_a, 2), position_b, frame_b, size_b, feature)
    if case == CAPSULE_BOX:
        axis = column(frame_a, 2) * size_a[1]
        return capsule_box(position_a, axis, size_a[0], position_b, frame_b, size_b, feature)
    return box_box(position_a, frame_a, size_a, position_b, frame_b, size_b, feature)


@wp.kernel
def rebuild_box_kernel(
    # topology
    first_pair: int,
    last_pair: int,
    pair_shapes: wp.array2d(dtype=int),
    pair_case: wp.array(dtype=int),
    # choices
    contact_count: wp.array(dtype=int),
    contact_pair: wp.array2d(dtype=int),
    contact_feature: wp.array2d(dtype=wp.int64),
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
    a = pair_shapes[pair, 0]
    b = pair_shapes[pair, 1]
    distance, point, normal = box_contact(
        pair_case[pair],
        int(contact_feature[world, place]),
        shape_position[world, a],
        quat_matrix(shape_rotation[world, a]),
        shape_size[world, a],
        shape_position[world, b],
        quat_matrix(shape_rotation[world, b]),
        shape_size[world, b],
    )
    contact_distance[world, place] = distance
    contact_point[world, place] = point
    contact_axes[world, place] = contact_frame(normal, vec3())
