"""Rebuild, taped: distance, point and frame of mesh contacts from the frozen point numbers."""

from __future__ import annotations

import warp as wp

from warpsim.collision.core import Core
from warpsim.collision.field_contact import field_contact
from warpsim.collision.grid import GridData
from warpsim.collision.kinds import KINDS
from warpsim.collision.maths import contact_frame
from warpsim.collision.support import HullData
from warpsim.core.precision import mat33, quat, real, vec3
from warpsim.core.spatial import quat_matrix


@wp.func
def field_pair_contact(a: Core, b: Core, feature: int, hulls: HullData, grids: GridData) -> tuple[real, vec3, vec3]:
    """Distance, point and normal (first to second) of one contact; see `narrow_field` for the feature."""
    if feature % 2 == 0:
        distance_a, point_a, outward_b = field_contact(a, feature // 2, b, hulls, grids)
        return distance_a, point_a, -outward_b
    return field_contact(b, feature // 2, a, hulls, grids)


@wp.kernel
def rebuild_field_kernel(
    # topology
    first_pair: int,
    last_pair: int,
    pair_shapes: wp.array2d(dtype=int),
    pair_case: wp.array(dtype=int),
    hulls: HullData,
    grids: GridData,
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
    i = pair_shapes[pair, 0]
    j = pair_shapes[pair, 1]
    case = pair_case[pair]
    a = Core(case // KINDS, i, shape_position[world, i], quat_matrix(shape_rotation[world, i]), shape_size[world, i])
    b = Core(case % KINDS, j, shape_position[world, j], quat_matrix(shape_rotation[world, j]), shape_size[world, j])
    distance, point, normal = field_pair_contact(a, b, int(contact_feature[world, place]), hulls, grids)
    contact_distance[world, place] = distance
    contact_point[world, place] = point
    contact_axes[world, place] = contact_frame(normal, vec3())
