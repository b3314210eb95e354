"""The pairs that a narrow phase searches: all of a table, or those that a broad phase let through."""

from __future__ import annotations

import warp as wp


@wp.struct
class NearPairs:
    """Pairs to search, by world and group of pairs, in the table's order."""

    pair: wp.array2d(dtype=wp.int32)  # (W, np)
    first: wp.array2d(dtype=wp.int32)  # (W, groups + 1) into `pair`
    lanes: wp.int32  # threads that share a group's near pairs of one world
