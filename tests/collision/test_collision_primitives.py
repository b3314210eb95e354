"""Closed-form contacts against MuJoCo, and their gradients against central differences."""

from __future__ import annotations

import numpy as np
import pytest

from collision_support import (
    SIZES,
    ContactBench,
    directional_errors,
    mujoco_contacts,
    random_poses,
    random_quats,
    rotate,
    two_shape_scene,
)

CLOSED_FORMS = [
    ("plane", "sphere"),
    ("plane", "capsule"),
    ("plane", "box"),
    ("plane", "cylinder"),
    ("plane", "ellipsoid"),
    ("sphere", "sphere"),
    ("sphere", "capsule"),
    ("sphere", "cylinder"),
    ("sphere", "box"),
    ("capsule", "capsule"),
    ("box", "box"),
]
ALL_PAIRS = [*CLOSED_FORMS, ("plane", "cone"), ("capsule", "box")]
MARGIN = 0.05
FULL = pytest.param(4000, marks=pytest.mark.long)


def assert_same_contacts(found, oracle, world: int, tolerance: float) -> None:
    """Equal contacts up to their order."""
    assert found.count[world] == len(oracle), f"world {world}"
    distance = found.distance[world, : len(oracle)]
    order, expected = np.argsort(distance), sorted(oracle, key=lambda c: c[0])
    np.testing.assert_allclose(distance[order], [c[0] for c in expected], atol=tolerance, rtol=0)
    for _distance, point, frame in oracle:
        gap = np.abs(found.point[world, : len(oracle)] - point).max(axis=1)
        assert gap.min() < tolerance
        np.testing.assert_allclose(found.frame[world, gap.argmin()], frame, atol=tolerance, rtol=0)


@pytest.mark.parametrize("count", [200, FULL])
@pytest.mark.parametrize(("first", "second"), CLOSED_FORMS)
def test_distance_point_and_frame_are_mujocos(first, second, count, rng):
    scene = two_shape_scene(first, second)
    position, rotation = random_poses(first, rng, count, 0.6)
    found = ContactBench(scene, position, rotation, margin=MARGIN if first != "box" else 0.0).run()
    oracle = mujoco_contacts(scene, position, rotation, MARGIN if first != "box" else 0.0)
    assert sum(map(len, oracle)) > count / 4
    for world in range(count):
        assert_same_contacts(found, oracle[world], world, 1e-6)


@pytest.mark.parametrize("count", [200, FULL])
def test_capsule_on_box_is_mujocos_where_the_axis_stays_outside(count, rng):
    scene = two_shape_scene("capsule", "box")
    position, rotation = random_poses("capsule", rng, count, 0.8)
    found = ContactBench(scene, position, rotation).run()
    oracle = mujoco_contacts(scene, position, rotation)
    radius, compared = SIZES["capsule"][0], 0
    for world in range(count):
        assert bool(found.count[world]) == bool(oracle[world])
        if not oracle[world] or found.distance[world, : found.count[world]].min() < -0.95 * radius:
            continue
        compared += 1
        ours, theirs = found.distance[world, : found.count[world]].argmin(), min(oracle[world], key=lambda c: c[0])
        assert found.distance[world, ours] == pytest.approx(theirs[0], abs=1e-6)
        np.testing.assert_allclose(found.frame[world, ours, 0], theirs[2][0], atol=1e-6)
    assert compared > count / 10


@pytest.mark.parametrize("count", [200, FULL])
def test_capsule_that_ends_inside_a_box_is_mujocos(count, rng):
    scene = two_shape_scene("capsule", "box", sizes=((0.1, 0.3, 0.0), SIZES["box"]))
    position, rotation = random_poses("capsule", rng, count, 0.5)
    found = ContactBench(scene, position, rotation).run()
    oracle = mujoco_contacts(scene, position, rotation)
    half = rotate(rotation[:, 0], np.tile([0.0, 0.0, 0.3], (count, 1)))
    inverse, compared = rotation[:, 1] * [1, -1, -1, -1], 0
    for sign in (-1.0, 1.0):
        end = rotate(inverse, position[:, 0] + sign * half - position[:, 1])
        for world in np.flatnonzero((np.abs(end) < SIZES["box"]).all(axis=1)):
            assert_same_contacts(found, oracle[world], world, 1e-9)
            compared += 1
    assert compared > count / 10


@pytest.mark.parametrize("count", [200, FULL])
@pytest.mark.parametrize(("first", "second"), ALL_PAIRS)
def test_gradients_in_both_poses_and_sizes(first, second, count, rng):
    scene = two_shape_scene(first, second)
    position, rotation = random_poses(first, rng, count, 0.7)
    error, touching = directional_errors(scene, position, rotation, rng, MARGIN)
    assert touching.sum() > count / 4
    assert len(error) > 0.98 * touching.sum()  # the rest straddle a change of a discrete choice
    assert error.max() < 1e-6


def resting(first: str, second: str) -> tuple[np.ndarray, np.ndarray]:
    """One pose, both shapes at the origin and unturned."""
    return np.zeros((1, 2, 3)), np.tile([1.0, 0.0, 0.0, 0.0], (1, 2, 1))


HALF = np.sqrt(0.5)
DEGENERATE = [
    ("sphere", "sphere", (0, 0, 0), (1, 0, 0, 0)),  # coincident centers
    ("sphere", "sphere", (0.6, 0, 0), (1, 0, 0, 0)),  # touching exactly
    ("sphere", "capsule", (0, 0, 0.1), (1, 0, 0, 0)),  # center on the axis
    ("sphere", "box", (0, 0, 0), (1, 0, 0, 0)),
    ("sphere", "box", (0.3, 0.4, 0.5), (1, 0, 0, 0)),  # center on a corner
    ("sphere", "box", (0.3, 0.4, 0), (1, 0, 0, 0)),  # center on an edge
    ("sphere", "cylinder", (0, 0, 0), (1, 0, 0, 0)),
    ("sphere", "cylinder", (0.3, 0, 0.4), (1, 0, 0, 0)),  # center on the rim
    ("capsule", "capsule", (0.3, 0, 0), (1, 0, 0, 0)),  # parallel
    ("capsule", "capsule", (0, 0, 0), (1, 0, 0, 0)),  # the same capsule
    ("capsule", "capsule", (0, 0, 0.2), (1, 0, 0, 0)),  # on one line
    ("capsule", "capsule", (0, 0, 0), (HALF, HALF, 0, 0)),  # crossing axes
    ("capsule", "box", (0.45, 0, 0), (1, 0, 0, 0)),  # parallel to a face
    ("capsule", "box", (0.4, 0.5, 0), (1, 0, 0, 0)),  # parallel to an edge
    ("capsule", "box", (0, 0, 0), (1, 0, 0, 0)),
    ("capsule", "box", (0.3, 0.4, 0.0), (1, 0, 0, 0)),  # axis on an edge
    ("box", "box", (0, 0, 1.0), (1, 0, 0, 0)),  # face on face, touching
    ("box", "box", (0, 0, 0), (1, 0, 0, 0)),
    ("box", "box", (0.6, 0.8, 1.0), (1, 0, 0, 0)),  # corner on corner
    ("box", "box", (0.65, 0.65, 0), (HALF, 0, 0, HALF)),  # axes aligned crosswise
    ("plane", "cylinder", (0, 0, 0.4), (1, 0, 0, 0)),  # standing upright
    ("plane", "cylinder", (0, 0, 0.3), (HALF, HALF, 0, 0)),  # lying
    ("plane", "capsule", (0, 0, 0.6), (1, 0, 0, 0)),  # upright: the frame's hint is along the normal
    ("plane", "cone", (0, 0, 0.4), (1, 0, 0, 0)),
    ("plane", "box", (0, 0, 0.5), (1, 0, 0, 0)),
]


@pytest.mark.parametrize(("first", "second", "offset", "turn"), DEGENERATE)
def test_degenerate_poses_are_finite(first, second, offset, turn, rng):
    position, rotation = resting(first, second)
    position[0, 1], rotation[0, 1] = offset, turn
    bench = ContactBench(two_shape_scene(first, second), position, rotation, margin=1e-3)
    found = bench.run()
    assert found.count[0] > 0
    used = slice(0, found.count[0])
    frames = found.frame[0, used]
    np.testing.assert_allclose(frames @ frames.transpose(0, 2, 1), np.tile(np.eye(3), (len(frames), 1, 1)), atol=1e-9)
    assert np.isfinite(found.distance[0, used]).all() and np.isfinite(found.point[0, used]).all()
    seeds = (rng.normal(size=(1, 8)), rng.normal(size=(1, 8, 3)), rng.normal(size=(1, 8, 3, 3)))
    assert all(np.isfinite(g).all() for g in bench.gradients(seeds))


def test_upright_capsule_has_mujocos_frame():
    position, rotation = resting("plane", "capsule")
    position[0, 1, 2] = 0.59
    scene = two_shape_scene("plane", "capsule")
    found = ContactBench(scene, position, rotation).run()
    np.testing.assert_allclose(found.frame[0, 0], mujoco_contacts(scene, position, rotation)[0][0][2], atol=1e-12)


def test_glancing_spheres_turn_their_normal(rng):
    """Two balls of radius r that touch at offset y: the normal's angle obeys sin θ = y/2r, so dθ/dy = 1/√(4r² − y²)."""
    radius = 0.1
    offsets = np.array([0.0, 0.02, 0.1, 0.15])
    position = np.zeros((4, 2, 3))
    position[:, 1, 1] = offsets
    position[:, 1, 0] = np.sqrt(4 * radius**2 - offsets**2)
    scene = two_shape_scene("sphere", "sphere", ((radius, 0, 0), (radius, 0, 0)))
    rotation = np.tile([1.0, 0, 0, 0], (4, 2, 1))
    bench = ContactBench(scene, position, rotation, margin=1e-6, max_contacts=1)
    found = bench.run()
    theta = np.arcsin(offsets / (2 * radius))
    frame_seed = np.zeros((4, 1, 3, 3))
    frame_seed[:, 0, 0, 0], frame_seed[:, 0, 0, 1] = -np.sin(theta), np.cos(theta)  # dθ of the normal (cos θ, sin θ, 0)
    by_position = bench.gradients((np.zeros((4, 1)), np.zeros((4, 1, 3)), frame_seed))[0]
    np.testing.assert_allclose(found.frame[:, 0, 0, 1], np.sin(theta), atol=1e-12)
    # Move along the circle of touching positions: dx/dy = −y/x.
    tangent = by_position[:, 1, 1] - by_position[:, 1, 0] * offsets / position[:, 1, 0]
    np.testing.assert_allclose(tangent, 1.0 / np.sqrt(4 * radius**2 - offsets**2), rtol=1e-12)


def test_box_rests_on_box_with_four_contacts(rng):
    position, rotation = resting("box", "box")
    position[0, 1] = (0.1, 0.05, 0.99)
    found = ContactBench(two_shape_scene("box", "box"), position, rotation).run()
    assert found.count[0] == 4
    np.testing.assert_allclose(found.distance[0, :4], -0.01, atol=1e-12)


def test_capsule_lying_on_a_box_has_mujocos_two_contacts(rng):
    position = np.zeros((20, 2, 3))
    rotation = np.tile([1.0, 0, 0, 0], (20, 2, 1))
    rotation[:, 0] = [HALF, 0, HALF, 0]  # along world x
    position[:, 0, 2] = 0.69
    position[:, 0, 0] = np.linspace(-0.5, 0.5, 20)  # overhanging to either side
    scene = two_shape_scene("capsule", "box", (SIZES["capsule"], (0.5, 0.4, 0.5)))
    found = ContactBench(scene, position, rotation).run()
    oracle = mujoco_contacts(scene, position, rotation)
    for world in range(20):
        assert found.count[world] == len(oracle[world]) == 2
        points = np.sort(found.point[world, :2, 0]), np.sort([c[1][0] for c in oracle[world]])
        np.testing.assert_allclose(*points, atol=1e-6)


def test_turning_both_shapes_turns_the_contact(rng):
    """Distances do not depend on the world's axes."""
    scene = two_shape_scene("box", "box")
    position, rotation = random_poses("box", rng, 50, 0.7)
    turn = np.tile(random_quats(rng, 1), (100, 1))
    old, product = rotation.reshape(-1, 4), np.empty((100, 4))
    product[:, 0] = turn[:, 0] * old[:, 0] - (turn[:, 1:] * old[:, 1:]).sum(1)
    product[:, 1:] = turn[:, :1] * old[:, 1:] + old[:, :1] * turn[:, 1:] + np.cross(turn[:, 1:], old[:, 1:])
    turned = rotate(turn, position.reshape(-1, 3)).reshape(-1, 2, 3)
    before = ContactBench(scene, position, rotation).run()
    after = ContactBench(scene, turned, product.reshape(-1, 2, 4)).run()
    np.testing.assert_array_equal(before.count, after.count)
    for world, count in enumerate(before.count):
        np.testing.assert_allclose(before.distance[world, :count], after.distance[world, :count], atol=1e-9)
        expected = rotate(turn[:count], before.point[world, :count])
        np.testing.assert_allclose(expected, after.point[world, :count], atol=1e-9)
