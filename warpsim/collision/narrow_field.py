"""Search, untaped: which points of two shapes, one a mesh or height field, lie in or near the other's distance field.

Feature: 2·point of the first shape in the second's field, or 2·point of the second in the first's + 1.
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.bounds import bounding_radius, bounds_apart
from warpsim.collision.core import Core
from warpsim.collision.field_contact import field_contact, material_point, material_point_count
from warpsim.collision.grid import GridData, grid_bound, has_grid
from warpsim.collision.kinds import PLANE, SPHERE
from warpsim.collision.near import NearPairs
from warpsim.collision.selection import beats, spread
from warpsim.collision.support import HullData, core_radius
from warpsim.core.precision import quat, real, vec3
from warpsim.core.spatial import quat_matrix

wp.set_module_options({"enable_backward": False, "max_unroll": 1})

FIELD_CONTACTS = wp.constant(4)
"""Most contacts of one shape's points with the other's field."""
CACHED_POINTS = wp.constant(512)
FAR = wp.constant(real(1.0e30))


@wp.func
def find_in_field(
    holder: Core,
    other: Core,
    reach: real,
    hulls: HullData,
    grids: GridData,
    margin: real,
    second: int,
    world: int,
    start: int,
    candidate_feature: wp.array2d(dtype=wp.int64),
) -> int:
    """Up to four points of `holder` in `other`'s field: the deepest, then those that spread the contacts widest.

    `reach` is the radius (m) of a ball about `other`'s origin that holds it, negative for none; `second` is 1 where the
    holder is the pair's second shape.
    """
    depth = wp.zeros(shape=(CACHED_POINTS,), dtype=real)
    radius = core_radius(holder.kind, holder.size)
    count = wp.min(material_point_count(holder, hulls, grids), CACHED_POINTS)
    deepest = int(-1)
    least = margin
    for i in range(count):
        gap = holder.position + holder.frame @ material_point(holder, i, hulls, grids) - other.position
        bound = real(-1.0e30)
        if has_grid(other.kind):
            bound = grid_bound(grids, other.shape, other.size[0], wp.transpose(other.frame) @ gap)
        elif reach >= real(0.0):
            bound = wp.length(gap) - reach
        depth[i] = FAR
        if bound - radius < margin:
            distance, _point, _normal = field_contact(holder, i, other, hulls, grids)
            depth[i] = distance
            if distance < least:
                least = distance
                deepest = i
    if deepest < 0:
        return 0
    chosen = wp.zeros(shape=(4,), dtype=vec3)
    _distance, _point, normal = field_contact(holder, deepest, other, hulls, grids)
    chosen[0] = holder.position + holder.frame @ material_point(holder, deepest, hulls, grids)
    depth[deepest] = FAR
    candidate_feature[world, start] = wp.int64(2 * deepest + second)
    total = int(1)
    searching = bool(True)
    while searching and total < FIELD_CONTACTS:
        best = int(-1)
        best_score = real(1e-9)
        for i in range(count):
            if depth[i] < margin:
                place = holder.position + holder.frame @ material_point(holder, i, hulls, grids)
                score = spread(total, place, chosen[0], chosen[1], chosen[2], normal)
                if beats(score, best_score):
                    best_score = score
                    best = i
                    chosen[total] = place
        searching = best >= 0
        if best >= 0:
            candidate_feature[world, start + total] = wp.int64(2 * best + second)
            depth[best] = FAR
            total += 1
    return total


@wp.func
def _narrow_field_pair(
    # topology
    world: int,
    pair: int,
    shape_kind: wp.array(dtype=int),
    shape_unit_radius: wp.array(dtype=real),
    pair_shapes: wp.array2d(dtype=int),
    pair_case: wp.array(dtype=int),
    pair_start: wp.array(dtype=int),
    hulls: HullData,
    grids: GridData,
    # state
    shape_position: wp.array2d(dtype=vec3),
    shape_rotation: wp.array2d(dtype=quat),
    shape_size: wp.array2d(dtype=vec3),
    pair_margin: wp.array2d(dtype=real),
    # out
    pair_count: wp.array2d(dtype=int),
    candidate_feature: wp.array2d(dtype=wp.int64),
):
    i = pair_shapes[pair, 0]
    j = pair_shapes[pair, 1]
    margin = pair_margin[world, pair]
    radius_a = bounding_radius(shape_kind[i], shape_size[world, i], shape_unit_radius[i])
    radius_b = bounding_radius(shape_kind[j], shape_size[world, j], shape_unit_radius[j])
    rotation_a = shape_rotation[world, i]
    position_a = shape_position[world, i]
    position_b = shape_position[world, j]
    pair_count[world, pair] = 0
    if bounds_apart(shape_kind[i], position_a, rotation_a, radius_a, position_b, radius_b, margin):
        return
    a = Core(shape_kind[i], i, position_a, quat_matrix(rotation_a), shape_size[world, i])
    b = Core(shape_kind[j], j, position_b, quat_matrix(shape_rotation[world, j]), shape_size[world, j])
    start = pair_start[pair]
    count = int(0)
    if b.kind != SPHERE:
        count = find_in_field(a, b, radius_b, hulls, grids, margin, 0, world, start, candidate_feature)
    if a.kind == PLANE:
        radius_a = real(-1.0)
    if a.kind != SPHERE:
        count += find_in_field(b, a, radius_a, hulls, grids, margin, 1, world, start + count, candidate_feature)
    pair_count[world, pair] = count


@wp.kernel(enable_backward=False)
def narrow_field_kernel(
    # topology
    group: int,
    shape_kind: wp.array(dtype=int),
    shape_unit_radius: wp.array(dtype=real),
    pair_shapes: wp.array2d(dtype=int),
    pair_case: wp.array(dtype=int),
    pair_start: wp.array(dtype=int),
    hulls: HullData,
    grids: GridData,
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
    """Active points of pairs with a mesh or height field; a sphere's center alone says all of its contact."""
    world, lane = wp.tid()
    for place in range(near.first[world, group] + lane, near.first[world, group + 1], near.lanes):
        _narrow_field_pair(
            world,
            near.pair[world, place],
            shape_kind,
            shape_unit_radius,
            pair_shapes,
            pair_case,
            pair_start,
            hulls,
            grids,
            shape_position,
            shape_rotation,
            shape_size,
            pair_margin,
            pair_count,
            candidate_feature,
        )
