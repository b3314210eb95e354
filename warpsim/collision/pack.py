"""Pack, untaped: the active candidates of a world, in pair order, into its contact places."""

from __future__ import annotations

import warp as wp

from warpsim.collision.near import NearPairs
from warpsim.core.precision import vec3

wp.set_module_options({"enable_backward": False})


@wp.kernel(enable_backward=False)
def pack_kernel(
    # topology
    pair_start: wp.array(dtype=int),
    # in
    near: NearPairs,
    pair_count: wp.array2d(dtype=int),
    candidate_feature: wp.array2d(dtype=wp.int64),
    candidate_seed: wp.array2d(dtype=vec3),
    # out
    contact_count: wp.array(dtype=int),
    contact_pair: wp.array2d(dtype=int),
    contact_feature: wp.array2d(dtype=wp.int64),
    contact_seed: wp.array2d(dtype=vec3),
):
    """Copies active candidates to the contact places, and counts the places needed even where there are too few."""
    world = wp.tid()
    places = contact_pair.shape[1]
    seeds = candidate_seed.shape[1]
    total = int(0)
    for place in range(near.first[world, near.first.shape[1] - 1]):
        pair = near.pair[world, place]
        start = pair_start[pair]
        for i in range(pair_count[world, pair]):
            if total < places:
                contact_pair[world, total] = pair
                contact_feature[world, total] = candidate_feature[world, start + i]
                if start + i < seeds:
                    contact_seed[world, total] = candidate_seed[world, start + i]
            total += 1
    contact_count[world] = total
