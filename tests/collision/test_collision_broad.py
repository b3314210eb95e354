"""The broad phase: every pair of balls that meet is near, and contacts are those of a search over all pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import warp as wp

from crowd_support import CrowdBench, assert_equal_results, crowd
from warpsim.collision.broad import MIN_PAIRS, BroadPhase
from warpsim.collision.kinds import PLANE


def _spread(bench: CrowdBench, factors: np.ndarray) -> None:
    """Moves the shapes apart, or together along an axis."""
    bench.set_poses(bench.position * factors, bench.rotation, bench.size)


def _over_all_pairs(bench: CrowdBench) -> list[np.ndarray]:
    """Contacts without a sweep."""
    near = bench.search.broad.near
    pairs, worlds = bench.table.pair_count, bench.position.shape[0]
    first = [start for _group, start, _stop in bench.table.ranges] + [pairs]
    near.pair.assign(np.tile(np.arange(pairs, dtype=np.int32), (worlds, 1)))
    near.first.assign(np.tile(np.array(first, np.int32), (worlds, 1)))
    sweeping, bench.search = bench.search, replace(bench.search, broad=BroadPhase(near, None, None))
    bench.run()
    bench.search = sweeping
    return [values.copy() for values in bench.read()]


def _poison(bench: CrowdBench) -> None:
    """Nothing of an earlier call is left."""
    broad = bench.search.broad
    for array in (broad.work.radius, broad.work.key):
        array.fill_(float("nan"))
    for array in (broad.work.order, broad.work.near, broad.near.pair, broad.near.first):
        array.fill_(-7)
    bench.search.pair_count.fill_(1000)


def _near(bench: CrowdBench, world: int) -> list[int]:
    near = bench.search.broad.near
    return near.pair.numpy()[world, : near.first.numpy()[world, -1]].tolist()


@pytest.mark.parametrize("factors", [(1, 1, 1), (4, 4, 1), (0.3, 0.3, 12), (0.0, 0.0, 0.0)])
@pytest.mark.parametrize("margin", [0.0, 0.05])
def test_contacts_are_those_of_a_search_over_all_pairs(factors, margin):
    bench = CrowdBench(crowd(30), 3)
    _spread(bench, np.array(factors, float))
    bench.margin.assign(np.random.default_rng(1).uniform(0.0, margin, bench.margin.shape))
    expected = _over_all_pairs(bench)
    for _ in range(2):
        _poison(bench)
        bench.run()
        assert_equal_results(bench.read(), expected)
    assert expected[0].min() > 0


def test_near_pairs_are_those_whose_balls_meet():
    """By all distances at once; a pair with a plane is always near. In the table's order, each once."""
    bench = CrowdBench(crowd(40), 2, seed=3)
    _spread(bench, np.array([3.0, 3.0, 1.0]))
    bench.margin.fill_(0.02)
    _poison(bench)
    bench.run()
    shapes, kinds = bench.table.pair_shapes.numpy(), bench.table.shape_kind.numpy()
    radius = bench.search.broad.work.radius.numpy()
    for world in range(2):
        gap = np.linalg.norm(np.diff(bench.position[world][shapes], axis=1)[:, 0], axis=1)
        meets = gap < radius[world][shapes].sum(1) + 0.02
        expected = np.flatnonzero(meets | (kinds[shapes] == int(PLANE)).any(1))
        assert _near(bench, world) == expected.tolist()
        assert len(expected) < 0.3 * len(shapes)


def test_replay_of_a_captured_search():
    bench = CrowdBench(crowd(30), 2)
    bench.run()
    expected = [values.copy() for values in bench.read()]
    with wp.ScopedCapture("cpu") as capture:
        bench.run()
    _poison(bench)
    wp.capture_launch(capture.graph)
    assert_equal_results(bench.read(), expected)


def test_positions_that_are_not_numbers_do_no_harm():
    bench = CrowdBench(crowd(30), 1)
    bench.position[0, 5] = np.nan
    bench.position[0, 7] = np.inf
    _spread(bench, np.ones(3))
    _poison(bench)
    bench.run()
    assert set(_near(bench, 0)) <= set(range(bench.table.pair_count))


def test_few_pairs_are_not_swept():
    bench = CrowdBench(crowd(8), 1)
    assert bench.table.pair_count < MIN_PAIRS
    assert bench.search.broad.lists is None
    bench.run()
    assert _near(bench, 0) == list(range(bench.table.pair_count))
