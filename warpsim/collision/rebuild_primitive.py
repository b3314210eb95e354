"""Rebuild, taped: distance, point and frame of plane, sphere and capsule contacts from their frozen features."""

from __future__ import annotations

import warp as wp

from warpsim.collision.kinds import (
    KINDS,
    PLANE_CAPSULE,
    PLANE_ELLIPSOID,
    SPHERE_CAPSULE,
    SPHERE_SPHERE,
)
from warpsim.collision.maths import column, contact_frame
from warpsim.collision.plane_contact import plane_shape
from warpsim.collision.round_contact import capsule_capsule, normal_of_crossing, sphere_capsule
from warpsim.collision.witness import ball_ball
from warpsim.core.precision import mat33, quat, real, vec3
from warpsim.core.spatial import quat_matrix


@wp.func
def round_contact(
    case: int, feature: int, position_a: vec3, z_a: vec3, size_a: vec3, position_b: vec3, z_b: vec3, size_b: vec3
) -> tuple[real, vec3, vec3]:
    """Distance, point and normal of a sphere or capsule pair's contact."""
    if case == SPHERE_SPHERE:
        return ball_ball(position_a, size_a[0], position_b, size_b[0], normal_of_crossing(z_a, z_b))
    if case == SPHERE_CAPSULE:
        return sphere_capsule(position_a, size_a[0], z_a, position_b, z_b * size_b[1], size_b[0], feature)
    return capsule_capsule(position_a, z_a * size_a[1], size_a[0], position_b, z_b * size_b[1], size_b[0], feature)


@wp.kernel
def rebuild_primitive_kernel(
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
    case = pair_case[pair]
    feature = int(contact_feature[world, place])
    a = pair_shapes[pair, 0]
    b = pair_shapes[pair, 1]
    position_a = shape_position[world, a]
    position_b = shape_position[world, b]
    frame_a = quat_matrix(shape_rotation[world, a])
    frame_b = quat_matrix(shape_rotation[world, b])
    size_b = shape_size[world, b]
    z_a = column(frame_a, 2)
    if case <= PLANE_ELLIPSOID:
        distance, point = plane_shape(case % KINDS, feature, position_a, z_a, position_b, frame_b, size_b)
        hint = vec3()
        if case == PLANE_CAPSULE:
            hint = column(frame_b, 2)
        contact_distance[world, place] = distance
        contact_point[world, place] = point
        contact_axes[world, place] = contact_frame(z_a, hint)
    else:
        size_a = shape_size[world, a]
        distance, point, normal = round_contact(
            case, feature, position_a, z_a, size_a, position_b, column(frame_b, 2), size_b
        )
        contact_distance[world, place] = distance
        contact_point[world, place] = point
        contact_axes[world, place] = contact_frame(normal, vec3())
