"""Distance queries against MuJoCo's and against closed forms, near and far, and their gradients."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import warp as wp

from collision_support import SIZES, random_quats, rotate
from warpsim.collision.contacts import ShapePoses
from warpsim.collision.query import PointDistance, ShapeDistance
from warpsim.core.errors import InputError, UnknownNameError
from warpsim.core.precision import quat, vec3
from warpsim.scene.description import Scene, Shape

KINDS = ("sphere", "capsule", "box", "cylinder", "ellipsoid")
PAIRS = [(a, b) for i, a in enumerate(KINDS) for b in KINDS[i + 1 :]] + [("box", "box2"), ("cylinder", "cylinder2")]
MUJOCO_SIZES = {"sphere": 1, "capsule": 2, "box": 3, "cylinder": 2, "ellipsoid": 3}


def gallery(names=(*KINDS, "box2", "cylinder2", "cone", "plane")) -> Scene:
    scene = Scene()
    for name in names:
        kind = name.rstrip("2")
        scene.shapes.append(Shape(name=name, kind=kind, size=np.array(SIZES[kind])))
    return scene


def poses_of(scene: Scene, position: np.ndarray, rotation: np.ndarray, size: np.ndarray | None = None) -> ShapePoses:
    if size is None:
        size = np.tile([s.size for s in scene.shapes], (len(position), 1, 1))
    return ShapePoses(
        wp.array(position, dtype=vec3, device="cpu", requires_grad=True),
        wp.array(rotation, dtype=quat, device="cpu", requires_grad=True),
        wp.array(size, dtype=vec3, device="cpu", requires_grad=True),
    )


def random_gallery(rng, worlds: int, spread: float = 1.2):
    scene = gallery()
    n = len(scene.shapes)
    return scene, spread * rng.normal(size=(worlds, n, 3)), random_quats(rng, worlds * n).reshape(worlds, n, 4)


@pytest.mark.parametrize("worlds", [40, pytest.param(2000, marks=pytest.mark.long)])
def test_distance_and_closest_points_are_mujocos(worlds, rng):
    scene, position, rotation = random_gallery(rng, worlds)
    query = ShapeDistance(scene, PAIRS, worlds, "cpu")
    result = query(poses_of(scene, position, rotation))
    distance, a, b = result.distance.numpy(), result.point_a.numpy(), result.point_b.numpy()
    names = [s.name for s in scene.shapes if s.kind in MUJOCO_SIZES]
    geoms = "".join(
        f'<body mocap="true"><geom type="{n.rstrip("2")}" '
        f'size="{" ".join(map(str, SIZES[n.rstrip("2")][: MUJOCO_SIZES[n.rstrip("2")]]))}"/></body>'
        for n in names
    )
    option = '<option ccd_tolerance="1e-12" ccd_iterations="300"/>'
    model = mujoco.MjModel.from_xml_string(f"<mujoco>{option}<worldbody>{geoms}</worldbody></mujoco>")
    data, ends, compared = mujoco.MjData(model), np.zeros(6), 0
    index = [next(i for i, s in enumerate(scene.shapes) if s.name == n) for n in names]
    for world in range(worlds):
        data.mocap_pos[:], data.mocap_quat[:] = position[world, index], rotation[world, index]
        mujoco.mj_kinematics(model, data)
        for k, (first, second) in enumerate(PAIRS):
            truth = mujoco.mj_geomDistance(model, data, names.index(first), names.index(second), 100.0, ends)
            if truth <= 0:
                assert distance[world, k] < 1e-6
                continue
            compared += 1
            assert distance[world, k] == pytest.approx(truth, abs=1e-6)
            assert np.linalg.norm(a[world, k] - b[world, k]) == pytest.approx(truth, abs=1e-6)
            np.testing.assert_allclose(np.concatenate([a[world, k], b[world, k]]), ends, atol=1e-3)
    assert compared > 5 * worlds


def test_order_of_the_pair_is_the_callers(rng):
    scene, position, rotation = random_gallery(rng, 5)
    query = ShapeDistance(scene, [("box", "sphere"), ("sphere", "box"), ("cone", "plane")], 5, "cpu")
    result = query(poses_of(scene, position, rotation))
    a, b, n = result.point_a.numpy(), result.point_b.numpy(), result.normal.numpy()
    np.testing.assert_array_equal(a[:, 0], b[:, 1])
    np.testing.assert_array_equal(n[:, 0], -n[:, 1])
    np.testing.assert_allclose(b[:, 0] - a[:, 0], n[:, 0] * result.distance.numpy()[:, :1], atol=1e-12)


def test_points_against_shapes(rng):
    scene, position, rotation = random_gallery(rng, 30)
    names = ["box", "cylinder", "sphere", "cone"]
    points = rng.normal(size=(30, 4, 3))
    query = PointDistance(scene, names, 30, "cpu")
    distance = query(wp.array(points, dtype=vec3, device="cpu"), poses_of(scene, position, rotation)).distance.numpy()
    for k, name in enumerate(names):
        i = next(i for i, s in enumerate(scene.shapes) if s.name == name)
        local = rotate(rotation[:, i] * [1, -1, -1, -1], points[:, k] - position[:, i])
        size = np.array(SIZES[name])
        flat = np.stack([np.hypot(local[:, 0], local[:, 1]), local[:, 2]], axis=1)
        if name == "box":
            q = np.abs(local) - size
        elif name == "cylinder":
            q = np.abs(flat) - size[:2]
        elif name == "sphere":
            np.testing.assert_allclose(distance[:, k], np.linalg.norm(local, axis=1) - size[0], atol=1e-9)
            continue
        else:
            continue
        truth = np.linalg.norm(np.maximum(q, 0), axis=1) + np.minimum(q.max(axis=1), 0)
        np.testing.assert_allclose(distance[:, k], truth, atol=1e-9)


@pytest.mark.parametrize("worlds", [30, pytest.param(4000, marks=pytest.mark.long)])
def test_gradients_pull_at_any_distance(worlds, rng):
    scene, position, rotation = random_gallery(rng, worlds)
    pairs = [*PAIRS, ("cone", "ellipsoid"), ("plane", "cone")]
    query = ShapeDistance(scene, pairs, worlds, "cpu")
    size = np.tile([s.size for s in scene.shapes], (worlds, 1, 1))
    weight = rng.normal(size=(worlds, len(pairs)))
    weights = rng.normal(size=(worlds, len(pairs), 3))

    def loss(step: float, way) -> tuple[np.ndarray, list[np.ndarray]]:
        turned = rotation + step * way[1]
        turned /= np.linalg.norm(turned, axis=-1, keepdims=True)
        result = query(poses_of(scene, position + step * way[0], turned, size + step * way[2]))
        value = result.distance.numpy() * weight + (result.point_a.numpy() * weights).sum(-1)
        return value, [result.feature.numpy().copy(), result.normal.numpy().copy()]

    way = [rng.normal(size=x.shape) for x in (position, rotation, size)]
    way[1] -= rotation * (way[1] * rotation).sum(-1, keepdims=True)
    way[2] = 0.1 * way[2] * (size > 0)
    best = np.full(weight.shape, np.inf)
    exact = np.zeros(weight.shape)
    for k in range(len(pairs)):
        poses, tape = poses_of(scene, position, rotation, size), wp.Tape()
        with tape:
            result = query(poses)
        mask = np.zeros(weight.shape)
        mask[:, k] = 1.0
        result.distance.grad.assign(weight * mask)
        result.point_a.grad.assign(weights * mask[..., None])
        tape.backward()
        arrays = (poses.position, poses.rotation, poses.size)
        exact[:, k] = sum((a.grad.numpy() * w).reshape(worlds, -1).sum(1) for a, w in zip(arrays, way, strict=True))
        tape.zero()
    distance = query(poses_of(scene, position, rotation, size)).distance.numpy().copy()
    _value, base = loss(0.0, way)
    # Shapes apart have a derivative unless the touching features change, or two are equally near: the normal jumps.
    smooth = apart = distance > 0.01
    for step in (1e-5, 1e-6, 1e-7):
        (plus, there), (minus, back) = loss(step, way), loss(-step, way)
        best = np.minimum(best, np.abs((plus - minus) / (2 * step) - exact))
        for feature, normal in (there, back):
            smooth = smooth & (feature == base[0]) & (np.linalg.norm(normal - base[1], axis=-1) < 1e-3)
    assert apart.mean() > 0.4
    assert smooth.sum() > 0.98 * apart.sum()
    assert best[smooth].max() < 1e-6
    assert np.isfinite(exact).all()


def test_bad_calls_are_named(rng):
    scene, position, rotation = random_gallery(rng, 2)
    with pytest.raises(UnknownNameError, match="no shape 'bax'; did you mean 'box'"):
        ShapeDistance(scene, [("bax", "sphere")], 2, "cpu")
    with pytest.raises(InputError, match="poses of 2 worlds, but the query was made for 3"):
        ShapeDistance(scene, [("box", "sphere")], 3, "cpu")(poses_of(scene, position, rotation))
