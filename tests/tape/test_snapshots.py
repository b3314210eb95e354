"""Which starts of segments are stored, step by step, and the plans of odd lengths."""

from __future__ import annotations

import pytest

from warpsim.core.errors import InputError
from warpsim.tape.schedule import AllStarts, Plan, Revolve, _segments, _sizes, cut
from warpsim.tape.snapshots import Snapshots


def plan(segments: int, snapshots: int) -> Plan:
    return Plan(segments, 1, 1, snapshots, None, "device", {}, 0)


def test_the_first_start_is_always_stored_and_the_last_is_the_end():
    found = Snapshots(plan(3, 3))
    assert found.stored.tolist() == [0] and found.nearest(0) == found.nearest(2) == (0, 0) and not found.complete
    assert found.next_store() == 1 and found.push(1) == 1
    assert found.next_store() == 2 and found.push(2) == 2
    assert found.complete and found.next_store() == -1
    assert found.nearest(1) == (1, 1) and found.nearest(2) == (2, 2)
    found.pop()
    assert not found.complete and found.nearest(2) == (1, 1) and found.free.tolist() == [2]
    assert found.next_store() == 2


def test_without_frames_nothing_more_is_stored():
    found = Snapshots(plan(9, 2))
    first = found.next_store()
    assert 0 < first < 9
    found.push(first)
    assert found.next_store() == -1 and found.nearest(first - 1) == (0, 0) and found.nearest(8) == (first, 1)


def test_a_rollout_that_came_from_elsewhere_stores_from_there_on():
    found = Snapshots(plan(6, 4))
    found.taken_up = 4
    assert found.next_store() == 4
    found.push(4)
    assert found.next_store() == 5
    found.taken_up = 6
    assert found.next_store() == -1


def test_segments_of_windows_are_counted_window_by_window():
    assert _segments(10, 3, None) == 4 and _segments(9, 3, None) == 3
    assert _segments(10, 3, 5) == 4 and _segments(12, 3, 5) == 5 and _segments(5, 9, 5) == 1


def test_the_shorter_segment_stands_first_or_last():
    first = cut(10, 3, AllStarts(), rest_first=True)
    assert (first.first, first.segments, first.snapshots) == (1, 4, 4)
    assert cut(9, 3, AllStarts(), rest_first=True).first == 3 and cut(10, 3, AllStarts()).first == 3
    assert cut(10, 3, Revolve(2)).snapshots == 2
    with pytest.raises(InputError, match="0 snapshots"):
        cut(10, 3, Revolve(0))


def test_lengths_that_are_tried_grow_by_a_quarter():
    assert _sizes(10, 4) == [4] and _sizes(3, 4) == [3]
    sizes = _sizes(50, None)
    assert sizes[:5] == [1, 2, 3, 4, 5] and sizes[-1] == 50
    assert all(b <= max(a + 1, round(1.3 * a)) for a, b in zip(sizes, sizes[1:], strict=False))
