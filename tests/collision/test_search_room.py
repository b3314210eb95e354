"""Room for the search of convex pairs: a row for each thread that searches."""

from __future__ import annotations

import pytest
import warp as wp

from warpsim.check.rehearsal import rehearsing
from warpsim.collision.search_room import make_search_room


@pytest.mark.parametrize(("worlds", "lanes", "pairs"), [(1000, 4, 3), (64, 8, 6), (1024, 1, 1)])
def test_where_threads_run_beside_each_other_each_has_a_row(worlds, lanes, pairs):
    device = wp.get_device("cpu")
    with rehearsing():
        room = make_search_room(worlds, lanes, pairs, device)
    assert 1 <= room.lanes <= min(lanes, pairs)
    assert len(room.point) == len(room.offset) == len(room.horizon) == worlds * room.lanes


@pytest.mark.parametrize(("pairs", "rows"), [(0, 0), (5, 1)])
def test_one_loop_needs_one_row(pairs, rows):
    assert len(make_search_room(16, 2, pairs, wp.get_device("cpu")).point) == rows
