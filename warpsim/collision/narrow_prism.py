"""Search, untaped: which prisms of a height field a convex shape touches, and by which features.

MuJoCo's rule: one contact with each prism under the shape's box, cell by cell along x and then y, up to a number.
Feature: as `contact_code` of type 0, with 32·prism + feature of the prism for the first shape.
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.bounds import bounding_radius, bounds_apart
from warpsim.collision.candidates import PRISM_CONTACTS
from warpsim.collision.convex_code import PRISM_FEATURES, contact_code
from warpsim.collision.convex_contact import convex_contact
from warpsim.collision.convex_search import feature_seed, find_features
from warpsim.collision.core import Core, support_of, to_world
from warpsim.collision.epa import closest_cores
from warpsim.collision.kinds import HULL
from warpsim.collision.near import NearPairs
from warpsim.collision.search_room import SearchRoom, room_row
from warpsim.collision.support import HullData, core_radius
from warpsim.core.precision import quat, real, vec3
from warpsim.core.spatial import quat_matrix

wp.set_module_options({"enable_backward": False, "max_unroll": 1})

MOST = wp.constant(PRISM_CONTACTS)
HALF_CELL = wp.constant(real(1e-9))
"""Share of a cell by which the box about a shape is widened, so that rounding leaves no prism out."""


@wp.func
def reach_along(core: Core, field: Core, axis: int, sign: real, hulls: HullData) -> real:
    """How far (m) a core and its radius reach along an axis of a field's frame, from its origin."""
    local = vec3()
    local[axis] = sign
    way = field.frame @ local
    return wp.dot(way, to_world(core, support_of(core, hulls, way)) - field.position) + core_radius(
        core.kind, core.size
    )


@wp.func
def first_cell(low: real, pitch: real, reach: real) -> int:
    """The cell in which a coordinate lies, counted from the field's edge; may lie beyond."""
    return int(wp.floor((reach - low) / pitch - HALF_CELL))


@wp.func
def find_on_prism(
    field: Core,
    prism: int,
    other: Core,
    hulls: HullData,
    margin: real,
    lowest: real,
    radius: real,
    room: SearchRoom,
    row: int,
    world: int,
    place: int,
    candidate_feature: wp.array2d(dtype=wp.int64),
    candidate_seed: wp.array2d(dtype=vec3),
) -> int:
    """The contact with one prism; 1 where there is one. `lowest` is the least height (m) the other reaches."""
    a = field
    a.kind = HULL
    a.shape = hulls.prism_grid[field.shape][2] + prism
    first = hulls.vertex_start[a.shape]
    height = wp.max(hulls.vertex[first][2], wp.max(hulls.vertex[first + 1][2], hulls.vertex[first + 2][2]))
    if height * field.size[0] < lowest - margin:
        return 0
    limit = wp.max(margin + core_radius(other.kind, other.size), real(0.0))
    found = closest_cores(a, other, hulls, limit, room, row)
    if not (found.distance <= limit):  # nor where a pose is not a number: there are no features to read then
        return 0
    reach = wp.length(hulls.vertex[first + 1] - hulls.vertex[first + 5]) * field.size[0]
    touch = find_features(a, other, hulls, found, reach, radius)
    seed = feature_seed(a, other, touch, found)
    distance, _point, _normal = convex_contact(a, touch.feature_a, other, touch.feature_b, hulls, seed)
    if distance >= margin:
        return 0
    candidate_feature[world, place] = contact_code(0, PRISM_FEATURES * prism + touch.feature_a, touch.feature_b)
    candidate_seed[world, place] = seed
    return 1


@wp.func
def find_on_prisms(
    field: Core,
    other: Core,
    hulls: HullData,
    margin: real,
    radius: real,
    room: SearchRoom,
    row: int,
    world: int,
    start: int,
    candidate_feature: wp.array2d(dtype=wp.int64),
    candidate_seed: wp.array2d(dtype=vec3),
) -> int:
    """Contacts with all prisms under a shape; returns their number."""
    grid = hulls.prism_grid[field.shape]
    first = hulls.vertex_start[grid[2]]
    low = hulls.vertex[first] * field.size[0]
    pitch = hulls.vertex[first + 2] * field.size[0] - low
    minus = real(-1.0)
    plus = real(1.0)
    left = first_cell(low[0], pitch[0], -reach_along(other, field, 0, minus, hulls) - margin)
    right = first_cell(low[0], pitch[0], reach_along(other, field, 0, plus, hulls) + margin) + 1
    near = first_cell(low[1], pitch[1], -reach_along(other, field, 1, minus, hulls) - margin)
    far = first_cell(low[1], pitch[1], reach_along(other, field, 1, plus, hulls) + margin) + 1
    lowest = -reach_along(other, field, 2, minus, hulls)
    count = int(0)
    for r in range(wp.max(near, 0), wp.min(far, grid[0] - 1)):
        for c in range(wp.max(left, 0), wp.min(right, grid[1] - 1)):
            for half in range(2):
                if count < MOST:
                    prism = 2 * (r * (grid[1] - 1) + c) + half
                    count += find_on_prism(
                        field,
                        prism,
                        other,
                        hulls,
                        margin,
                        lowest,
                        radius,
                        room,
                        row,
                        world,
                        start + count,
                        candidate_feature,
                        candidate_seed,
                    )
    return count


@wp.kernel(enable_backward=False)
def narrow_prism_kernel(
    # topology
    group: int,
    shape_kind: wp.array(dtype=int),
    shape_unit_radius: wp.array(dtype=real),
    pair_shapes: wp.array2d(dtype=int),
    pair_case: wp.array(dtype=int),
    pair_start: wp.array(dtype=int),
    hulls: HullData,
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
    """Active features of height fields' prisms with convex shapes, with the normal each was found at."""
    world, lane = wp.tid()
    row = room_row(room, world, lane)
    for place in range(near.first[world, group] + lane, near.first[world, group + 1], room.lanes):
        pair = near.pair[world, place]
        i = pair_shapes[pair, 0]
        j = pair_shapes[pair, 1]
        rotation = shape_rotation[world, i]
        position = shape_position[world, i]
        radius_a = bounding_radius(shape_kind[i], shape_size[world, i], shape_unit_radius[i])
        radius_b = bounding_radius(shape_kind[j], shape_size[world, j], shape_unit_radius[j])
        margin = pair_margin[world, pair]
        pair_count[world, pair] = 0
        if not bounds_apart(shape_kind[i], position, rotation, radius_a, shape_position[world, j], radius_b, margin):
            field = Core(shape_kind[i], i, position, quat_matrix(rotation), shape_size[world, i])
            turned = quat_matrix(shape_rotation[world, j])
            other = Core(shape_kind[j], j, shape_position[world, j], turned, shape_size[world, j])
            pair_count[world, pair] = find_on_prisms(
                field,
                other,
                hulls,
                margin,
                radius_b,
                room,
                row,
                world,
                pair_start[pair],
                candidate_feature,
                candidate_seed,
            )
