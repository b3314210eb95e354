"""Search, untaped: which features of plane, sphere and capsule pairs touch.

A pair's active features are written, in a fixed order, to its own places of `candidate_feature`; see `contacts`.
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.bounds import bounding_radius, bounds_apart
from warpsim.collision.kinds import (
    PLANE_BOX,
    PLANE_CAPSULE,
    PLANE_CYLINDER,
    PLANE_ELLIPSOID,
    PLANE_SPHERE,
    SPHERE_CAPSULE,
    SPHERE_SPHERE,
)
from warpsim.collision.maths import TINY
from warpsim.collision.near import NearPairs
from warpsim.collision.plane_contact import box_corner, end_sign, plane_cone, plane_cylinder, plane_ellipsoid
from warpsim.collision.round_contact import capsule_capsule, segment_parameter, sphere_capsule
from warpsim.collision.witness import line_parameters
from warpsim.core.precision import mat33, quat, real, vec3
from warpsim.core.spatial import quat_matrix, quat_rotate

wp.set_module_options({"enable_backward": False})


@wp.func
def end_code(t: real) -> int:
    """Capsule code of a segment parameter: beyond the −z end 0, between the ends 1, beyond the +z end 2."""
    if t <= real(-1.0):
        return 0
    if t >= real(1.0):
        return 2
    return 1


@wp.func
def end_code_near(point: vec3, center: vec3, axis: vec3) -> int:
    """Code of the segment's point nearest to `point`; a segment of no length is its own end."""
    if wp.dot(axis, axis) < TINY:
        return 2
    return end_code(segment_parameter(point, center, axis))


@wp.func
def crossing_code(a: vec3, axis_a: vec3, b: vec3, axis_b: vec3) -> int:
    """Code of the closest points of two segments that are not parallel."""
    ta, tb = line_parameters(a, axis_a, b, axis_b)
    code_a = end_code(ta)
    code_b = end_code(tb)
    if code_a != 1:
        code_b = end_code_near(a + axis_a * real(code_a - 1), b, axis_b)
    if code_b != 1:
        code_a = end_code_near(b + axis_b * real(code_b - 1), a, axis_a)
    return 3 * code_a + code_b


@wp.func
def find_capsule_capsule(
    a: vec3,
    axis_a: vec3,
    radius_a: real,
    b: vec3,
    axis_b: vec3,
    radius_b: real,
    margin: real,
    world: int,
    start: int,
    candidate_feature: wp.array2d(dtype=wp.int64),
) -> int:
    """One contact, or up to two for parallel capsules: ends of the first, then of the second, as in MuJoCo."""
    dot = wp.dot(axis_a, axis_b)
    count = int(0)
    if wp.abs(wp.dot(axis_a, axis_a) * wp.dot(axis_b, axis_b) - dot * dot) >= TINY:
        code = crossing_code(a, axis_a, b, axis_b)
        distance, _point, _normal = capsule_capsule(a, axis_a, radius_a, b, axis_b, radius_b, code)
        if distance < margin:
            candidate_feature[world, start] = wp.int64(code)
            count = 1
        return count
    for i in range(4):
        code = int(0)
        if i < 2:
            code = 6 - 6 * i + end_code_near(a + axis_a * end_sign(i), b, axis_b)
        else:
            code = 3 * end_code_near(b + axis_b * end_sign(i - 2), a, axis_a) + 6 - 2 * i
        distance, _point, _normal = capsule_capsule(a, axis_a, radius_a, b, axis_b, radius_b, code)
        if distance < margin and count < 2:
            if count == 0 or wp.int64(code) != candidate_feature[world, start]:
                candidate_feature[world, start + count] = wp.int64(code)
                count += 1
    return count


@wp.func
def find_plane_box(
    origin: vec3,
    normal: vec3,
    position: vec3,
    frame: mat33,
    size: vec3,
    margin: real,
    world: int,
    start: int,
    candidate_feature: wp.array2d(dtype=wp.int64),
) -> int:
    """Up to four corners of the lower half that are closer than the margin."""
    count = int(0)
    height = wp.dot(position - origin, normal)
    for corner in range(8):
        rise = wp.dot(frame @ box_corner(corner, size), normal)
        if rise <= real(0.0) and height + rise < margin and count < 4:
            candidate_feature[world, start + count] = wp.int64(corner)
            count += 1
    return count


@wp.func
def find_plane_disc(
    case: int,
    origin: vec3,
    normal: vec3,
    position: vec3,
    frame: mat33,
    size: vec3,
    margin: real,
    world: int,
    start: int,
    candidate_feature: wp.array2d(dtype=wp.int64),
) -> int:
    """The features of a cylinder or cone that are closer than the margin."""
    count = int(0)
    for feature in range(4):
        distance = real(0.0)
        if case == PLANE_CYLINDER:
            distance, _point = plane_cylinder(origin, normal, position, frame, size, feature)
        else:
            distance, _point = plane_cone(origin, normal, position, frame, size, feature)
        if distance < margin:
            candidate_feature[world, start + count] = wp.int64(feature)
            count += 1
    return count


@wp.func
def find_with_plane(
    case: int,
    origin: vec3,
    plane_rotation: quat,
    position: vec3,
    rotation: quat,
    size: vec3,
    margin: real,
    world: int,
    start: int,
    candidate_feature: wp.array2d(dtype=wp.int64),
) -> int:
    """Active features of a plane pair; returns their number."""
    normal = quat_rotate(plane_rotation, vec3(real(0.0), real(0.0), real(1.0)))
    if case == PLANE_SPHERE:  # the bounds test was exact
        candidate_feature[world, start] = wp.int64(0)
        return 1
    count = int(0)
    if case == PLANE_CAPSULE:
        height = wp.dot(position - origin, normal) - size[0]
        rise = size[1] * wp.dot(quat_rotate(rotation, vec3(real(0.0), real(0.0), real(1.0))), normal)
        for end in range(2):
            if height + end_sign(end) * rise < margin:
                candidate_feature[world, start + count] = wp.int64(end)
                count += 1
        return count
    frame = quat_matrix(rotation)
    if case == PLANE_BOX:
        return find_plane_box(origin, normal, position, frame, size, margin, world, start, candidate_feature)
    if case == PLANE_ELLIPSOID:
        distance, _point = plane_ellipsoid(origin, normal, position, frame, size)
        if distance < margin:
            candidate_feature[world, start] = wp.int64(0)
            count = 1
        return count
    return find_plane_disc(case, origin, normal, position, frame, size, margin, world, start, candidate_feature)


@wp.func
def find_among_round(
    case: int,
    position_a: vec3,
    rotation_a: quat,
    size_a: vec3,
    position_b: vec3,
    rotation_b: quat,
    size_b: vec3,
    margin: real,
    world: int,
    start: int,
    candidate_feature: wp.array2d(dtype=wp.int64),
) -> int:
    """Active features of a sphere or capsule pair; returns their number."""
    if case == SPHERE_SPHERE:  # the bounds test was exact
        candidate_feature[world, start] = wp.int64(0)
        return 1
    z = vec3(real(0.0), real(0.0), real(1.0))
    axis_a = quat_rotate(rotation_a, z)
    axis_b = quat_rotate(rotation_b, z) * size_b[1]
    if case == SPHERE_CAPSULE:
        code = end_code_near(position_a, position_b, axis_b)
        distance, _point, _normal = sphere_capsule(position_a, size_a[0], axis_a, position_b, axis_b, size_b[0], code)
        if distance < margin:
            candidate_feature[world, start] = wp.int64(code)
            return 1
        return 0
    return find_capsule_capsule(
        position_a,
        axis_a * size_a[1],
        size_a[0],
        position_b,
        axis_b,
        size_b[0],
        margin,
        world,
        start,
        candidate_feature,
    )


@wp.func
def _narrow_primitive_pair(
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
    kind_a = shape_kind[a]
    position_a = shape_position[world, a]
    rotation_a = shape_rotation[world, a]
    size_a = shape_size[world, a]
    position_b = shape_position[world, b]
    size_b = shape_size[world, b]
    margin = pair_margin[world, pair]
    radius_a = bounding_radius(kind_a, size_a, shape_unit_radius[a])
    radius_b = bounding_radius(shape_kind[b], size_b, shape_unit_radius[b])
    if bounds_apart(kind_a, position_a, rotation_a, radius_a, position_b, radius_b, margin):
        pair_count[world, pair] = 0
        return
    case = pair_case[pair]
    start = pair_start[pair]
    rotation_b = shape_rotation[world, b]
    if case <= PLANE_ELLIPSOID:
        pair_count[world, pair] = find_with_plane(
            case, position_a, rotation_a, position_b, rotation_b, size_b, margin, world, start, candidate_feature
        )
    else:
        pair_count[world, pair] = find_among_round(
            case,
            position_a,
            rotation_a,
            size_a,
            position_b,
            rotation_b,
            size_b,
            margin,
            world,
            start,
            candidate_feature,
        )


@wp.kernel(enable_backward=False)
def narrow_primitive_kernel(
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
    """Active features of pairs among planes, spheres and capsules, and of planes with the other primitives."""
    world, lane = wp.tid()
    for place in range(near.first[world, group] + lane, near.first[world, group + 1], near.lanes):
        _narrow_primitive_pair(
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
