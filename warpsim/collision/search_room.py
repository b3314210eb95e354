"""Room for what a search lists on its way: a polytope that grows, a polygon that is clipped.

It lies in arrays, a row for each thread: as a stack, a GPU would keep 34 kB for each. On the CPU a launch is one loop,
and all its indices share one row, which stays in the nearest cache.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from warpsim.core.host_path import on_host
from warpsim.core.precision import real, vec3

EPA_VERTICES = wp.constant(96)
EPA_PLACES = wp.constant(97)
"""Vertices of the expanding polytope, and places for them and one candidate."""
EPA_FACES = wp.constant(192)
EPA_EDGES = wp.constant(64)
CLIP_POINTS = wp.constant(256)
"""Room for the points of a clipped polygon; more are left out."""
_POINT_LISTS = 4
_CODE_LISTS = 2
_GPU_BYTES = 256_000_000
"""Of all rows on a GPU: where there are many worlds, fewer threads share a world's pairs."""


@wp.struct
class SearchRoom:
    """A row for each thread that searches; nothing in it outlives the search of a pair."""

    point: wp.array3d(dtype=vec3)  # (rows, 4, 256) the polytope's vertices and normals, or polygons
    code: wp.array3d(dtype=wp.int64)  # (rows, 2, 256) of polygons
    edge: wp.array3d(dtype=wp.int32)  # (rows, 2, 256) of polygons
    corner: wp.array2d(dtype=wp.vec3i)  # (rows, faces) of the polytope
    offset: wp.array2d(dtype=real)  # (rows, faces) of the polytope
    horizon: wp.array2d(dtype=wp.vec2i)  # (rows, edges) of the polytope
    lanes: wp.int32  # threads that share a group's near pairs of one world


@wp.func
def room_row(room: SearchRoom, world: int, lane: int) -> int:
    """The row of a thread; on the CPU always the same one."""
    return (world * room.lanes + lane) % room.offset.shape[0]


def make_search_room(worlds: int, lanes: int, pairs: int, device: wp.Device) -> Any:
    """Allocates the rows.

    Args:
        worlds: Searched in one launch.
        lanes: Threads that share a world's near pairs, at most.
        pairs: That are searched with room, at most, in one launch; 0: no room is needed.
        device: Where.
    """
    room = SearchRoom()
    kinds = (vec3, _POINT_LISTS * 256), (wp.int64, _CODE_LISTS * 256), (wp.int32, _CODE_LISTS * 256)
    polytope = (wp.vec3i, EPA_FACES), (real, EPA_FACES), (wp.vec2i, EPA_EDGES)
    row = sum(int(count) * wp.types.type_size_in_bytes(kind) for kind, count in (*kinds, *polytope))
    room.lanes = lanes
    if not on_host(device):
        room.lanes = max(1, min(lanes, pairs, _GPU_BYTES // (row * worlds)))
    rows = 0 if not pairs else 1 if on_host(device) else worlds * room.lanes
    points = int(CLIP_POINTS)
    room.point = wp.empty((rows, _POINT_LISTS, points), dtype=vec3, device=device)
    room.code = wp.empty((rows, _CODE_LISTS, points), dtype=wp.int64, device=device)
    room.edge = wp.empty((rows, _CODE_LISTS, points), dtype=wp.int32, device=device)
    room.corner = wp.empty((rows, int(EPA_FACES)), dtype=wp.vec3i, device=device)
    room.offset = wp.empty((rows, int(EPA_FACES)), dtype=real, device=device)
    room.horizon = wp.empty((rows, int(EPA_EDGES)), dtype=wp.vec2i, device=device)
    return room
