"""Packing, overflow, determinism and capture of contact generation, on scenes of many shapes."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from crowd_support import CrowdBench, assert_equal_results, crowd
from warpsim.collision.contacts import PairTable
from warpsim.core.errors import SimulationError, UnsupportedError
from warpsim.scene.description import Scene, Shape


def test_active_pairs_come_in_the_tables_order():
    bench = CrowdBench(crowd(), 3)
    bench.run()
    count, pair, _feature, distance, point, frame = bench.read()
    assert (count > 10).all()
    for world in range(3):
        used = slice(0, count[world])
        assert (np.diff(pair[world, used]) >= 0).all()
        assert (distance[world, used] < 0).all()
        assert np.isfinite(point[world, used]).all()
        products = frame[world, used] @ frame[world, used].transpose(0, 2, 1)
        np.testing.assert_allclose(products, np.eye(3)[None].repeat(count[world], 0), atol=1e-9)


def test_the_same_bits_every_time_and_in_every_company():
    bench = CrowdBench(crowd(), 4)
    bench.run()
    first = bench.read()
    bench.run()
    assert_equal_results(first, bench.read())
    alone = CrowdBench(crowd(), 1, max_contacts=bench.table.candidates)
    alone.set_poses(bench.position[2:3], bench.rotation[2:3], bench.size[2:3])
    alone.run()
    assert_equal_results([x[2:3] for x in first], alone.read())


def test_captured_replay_is_eager_forward_and_backward():
    bench = CrowdBench(crowd(), 2)
    tape = wp.Tape()
    with tape:
        bench.run()
    eager = bench.read()

    def backward() -> list[np.ndarray]:
        for array in (bench.shapes.position, bench.shapes.rotation, bench.shapes.size):
            array.grad.zero_()
        bench.contacts.distance.grad.fill_(1.0)

    backward()
    tape.backward()
    gradients = [a.grad.numpy().copy() for a in (bench.shapes.position, bench.shapes.rotation, bench.shapes.size)]
    with wp.ScopedCapture(device="cpu") as forward_capture:
        bench.run()
    with wp.ScopedCapture(device="cpu") as backward_capture:
        tape.backward()
    bench.contacts.distance.zero_()
    bench.contacts.count.zero_()
    wp.capture_launch(forward_capture.graph)
    assert_equal_results(eager, bench.read())
    backward()
    wp.capture_launch(backward_capture.graph)
    for expected, array in zip(
        gradients, (bench.shapes.position, bench.shapes.rotation, bench.shapes.size), strict=True
    ):
        np.testing.assert_array_equal(expected, array.grad.numpy())
        assert np.abs(expected).max() > 0


def test_overflow_names_the_world_and_the_size_needed():
    bench = CrowdBench(crowd(), 2, max_contacts=3)
    bench.run()
    needed = bench.contacts.count.numpy()
    assert needed.max() > 3
    with pytest.raises(SimulationError, match=f"step 7: world {needed.argmax()} .*max_contacts={needed.max()}"):
        bench.contacts.check_overflow("step 7")
    roomy = CrowdBench(crowd(), 2)
    roomy.run()
    roomy.contacts.check_overflow()
    pair = bench.contacts.pair.numpy()
    np.testing.assert_array_equal(pair, roomy.contacts.pair.numpy()[:, :3])


def test_kinds_without_a_contact_are_refused():
    scene = crowd(1)
    scene.shapes.append(Shape(name="ground", kind="heightfield", mesh="cube", size=np.ones(3)))
    with pytest.raises(UnsupportedError, match="'plane' and 'heightfield'"):
        PairTable.from_pairs(scene, np.array([[0, 2]]), "cpu")


def test_a_scene_without_pairs_is_empty():
    scene = Scene(shapes=[Shape(name="floor", kind="plane")])
    table = PairTable.from_scene(scene, "cpu")
    assert table.pair_count == 0 and table.candidates == 0
