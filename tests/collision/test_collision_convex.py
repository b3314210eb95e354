"""General convex contacts (cylinder, cone, ellipsoid, hull) against MuJoCo and closed forms; their gradients."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from collision_meshes import cube
from collision_support import (
    SIZES,
    ContactBench,
    directional_errors,
    mujoco_contacts,
    random_poses,
    rotate,
    two_shape_scene,
)
from warpsim.scene.description import Mesh, Scene

ITERATIVE = [
    ("sphere", "ellipsoid"),
    ("capsule", "ellipsoid"),
    ("capsule", "cylinder"),
    ("ellipsoid", "ellipsoid"),
    ("ellipsoid", "cylinder"),
    ("ellipsoid", "box"),
    ("cylinder", "cylinder"),
    ("cylinder", "box"),
]
CONES = [(kind, "cone") for kind in ("sphere", "capsule", "ellipsoid", "cylinder", "box", "cone")]
SHALLOW = 0.05
FULL = pytest.param(4000, marks=pytest.mark.long)


def shallow_error(found, oracle, depth: float = SHALLOW) -> list[tuple[float, float]]:
    """Errors of the deepest distance and of its normal where MuJoCo's depth is small."""
    errors = []
    for world, contacts in enumerate(oracle):
        if not contacts or min(c[0] for c in contacts) < -depth:
            continue
        distance, _point, frame = min(contacts, key=lambda c: c[0])
        assert found.count[world] > 0, f"world {world}: MuJoCo finds a depth of {-distance}"
        ours = found.distance[world, : found.count[world]].argmin()
        turn = np.linalg.norm(found.frame[world, ours, 0] - frame[0])
        errors.append((abs(found.distance[world, ours] - distance), turn))
    return errors


@pytest.mark.parametrize("count", [300, FULL])
@pytest.mark.parametrize(("first", "second"), ITERATIVE)
def test_shallow_contacts_are_mujocos(first, second, count, rng):
    scene = two_shape_scene(first, second)
    position, rotation = random_poses(first, rng, count, 0.8)
    found = ContactBench(scene, position, rotation).run()
    errors = np.array(shallow_error(found, mujoco_contacts(scene, position, rotation)))
    assert len(errors) > count / 100
    assert errors[:, 0].max() < 1e-6
    assert errors[:, 1].max() < 1e-3  # MuJoCo's own normals are known to about this


@pytest.mark.parametrize("count", [200, FULL])
@pytest.mark.parametrize(("first", "second"), [*ITERATIVE, *CONES])
def test_gradients_in_both_poses_and_sizes(first, second, count, rng):
    scene = two_shape_scene(first, second)
    position, rotation = random_poses(first, rng, count, 0.9)
    error, touching = directional_errors(scene, position, rotation, rng)
    assert touching.sum() > count / 4
    assert len(error) > 0.98 * touching.sum()  # the rest straddle a change of a discrete choice
    assert error.max() < 1e-6


def test_the_side_of_a_cylinder_that_touches_near_its_end(rng):
    """Deep in an ellipsoid, 2.5 mm from the rim: the search's points lie all on the rim, yet the side is the way out.

    The largest gap over all directions, which is the signed distance, was found by sampling them.
    """
    position = np.array([[[-0.15719131, 0.03495413, -0.01740086], [-0.08052431, -0.10527549, -0.27599589]]])
    rotation = np.array(
        [[[0.16242318, 0.52398388, 0.59459346, -0.58780798], [0.91526273, -0.38130401, 0.12617958, 0.03130666]]]
    )
    rotation /= np.linalg.norm(rotation, axis=-1, keepdims=True)
    scene = two_shape_scene("ellipsoid", "cylinder")
    found = ContactBench(scene, position, rotation).run()
    assert found.distance[0, 0] == pytest.approx(-0.55076451, abs=1e-7)
    axis = rotate(rotation[:, 1], np.array([[0.0, 0.0, 1.0]]))[0]
    assert found.frame[0, 0, 0] @ axis == pytest.approx(0.0, abs=1e-12)
    error, _touching = directional_errors(scene, position, rotation, rng)
    assert error.max() < 1e-6


def support(kind: str, way: np.ndarray) -> np.ndarray:
    """Support function of a test shape along directions (n, 3) of its frame, m."""
    a, b = SIZES[kind][:2]
    across = a * np.hypot(way[:, 0], way[:, 1])
    if kind == "capsule":
        return a + b * np.abs(way[:, 2])
    if kind == "cylinder":
        return across + b * np.abs(way[:, 2])
    return np.maximum(b * way[:, 2], across - b * way[:, 2])  # a cone


DEEP = [("capsule", "cylinder", 4937), ("capsule", "cone", 186), ("cylinder", "cone", 3475), ("cone", "cone", 5811)]


@pytest.mark.parametrize(("first", "second", "which"), DEEP)
def test_deep_overlaps_whose_search_ends_in_a_sliver(first, second, which, rng):
    """No direction gives a shorter way out than the one found, among many."""
    position, rotation = random_poses(first, np.random.default_rng(5), 8000, 0.8)
    position, rotation = position[which : which + 1], rotation[which : which + 1]
    found = ContactBench(two_shape_scene(first, second), position, rotation).run()
    way = rng.normal(size=(20_000, 3))
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    inverse = rotation[0] * [1, -1, -1, -1]
    local = [rotate(np.tile(inverse[k], (len(way), 1)), sign * way) for k, sign in ((0, 1), (1, -1))]
    gap = way @ (position[0, 1] - position[0, 0]) - support(first, local[0]) - support(second, local[1])
    deepest = found.distance[0, : found.count[0]].min()
    assert gap.max() - 1e-9 <= deepest <= gap.max() + 0.01


def cone_points(count: int = 400) -> np.ndarray:
    """Points of the test cone's surface that span it: base rim and apex."""
    radius, half = SIZES["cone"][:2]
    angle = 2 * np.pi * np.arange(count) / count
    rim = np.stack([radius * np.cos(angle), radius * np.sin(angle), np.full(count, -half)], axis=1)
    return np.concatenate([rim, [[0.0, 0.0, half]]])


@pytest.mark.parametrize("first", ["sphere", "capsule", "box"])
def test_cones_are_the_limit_of_fine_hulls(first, rng):
    """MuJoCo has no cone; a mesh of its rim and apex comes within r(1 − cos(π/n)) of it."""
    scene = two_shape_scene(first, "cone")
    position, rotation = random_poses(first, rng, 200, 0.8)
    found = ContactBench(scene, position, rotation).run()
    model = mesh_pair_model(scene, {"b": cone_points()}, several=False)
    errors = shallow_error(found, mesh_contacts(model, position, rotation))
    sag = SIZES["cone"][0] * (1 - np.cos(np.pi / 400))
    assert len(errors) > 3
    assert max(e[0] for e in errors) < 2 * sag + 1e-6


def mesh_pair_model(scene: Scene, points: dict[str, np.ndarray], *, several: bool = True) -> mujoco.MjModel:
    """The scene's two shapes in MuJoCo, those named in `points` as meshes of these points.

    With `several` contacts, faces that lie on one another count as such; a fine mesh that stands for a round shape has
    none.
    """
    assets, bodies = [], []
    for shape in scene.shapes:
        if shape.name in points:
            numbers = " ".join(repr(float(x)) for x in points[shape.name].ravel())
            assets.append(f'<mesh name="{shape.name}" vertex="{numbers}"/>')
            geom = f'<geom type="mesh" mesh="{shape.name}" mass="1"/>'
        else:
            size = " ".join(repr(float(x)) for x in shape.size if x)
            geom = f'<geom type="{shape.kind}" size="{size}" mass="1"/>'
        bodies.append(f"<body><freejoint/>{geom}</body>")
    flag = f'<flag multiccd="{"enable" if several else "disable"}"/>'
    option = f'<option ccd_tolerance="1e-12" ccd_iterations="200">{flag}</option>'
    asset, world = f"<asset>{''.join(assets)}</asset>", f"<worldbody>{''.join(bodies)}</worldbody>"
    return mujoco.MjModel.from_xml_string(f"<mujoco>{option}{asset}{world}</mujoco>")


def mesh_contacts(model: mujoco.MjModel, position: np.ndarray, rotation: np.ndarray) -> list[list]:
    data = mujoco.MjData(model)
    out = []
    for p, r in zip(position, rotation, strict=True):
        data.qpos[:] = np.concatenate([p[0], r[0], p[1], r[1]])
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        c = data.contact
        out.append([(c.dist[k], c.pos[k].copy(), c.frame[k].reshape(3, 3).copy()) for k in range(data.ncon)])
    return out


def hull_scene(first: str, rng: np.random.Generator) -> Scene:
    """`first` ("hull" too) against a random hull."""
    scene = two_shape_scene(first, "hull", a={"mesh": "blob"} if first == "hull" else {}, b={"mesh": "blob"})
    for shape in scene.shapes:
        if shape.kind == "hull":
            shape.size = np.ones(3)
    vertices = 0.25 * rng.normal(size=(40, 3))
    scene.meshes["blob"] = Mesh("blob", vertices, np.zeros((0, 3), int))
    return scene


@pytest.mark.parametrize("count", [300, FULL])
@pytest.mark.parametrize("first", ["sphere", "capsule", "ellipsoid", "cylinder", "box", "hull"])
def test_hulls_are_mujocos_meshes(first, count, rng):
    scene = hull_scene(first, rng)
    position, rotation = random_poses(first, rng, count, 0.7)
    points = scene.meshes["blob"].vertices
    model = mesh_pair_model(scene, {s.name: points for s in scene.shapes if s.kind == "hull"})
    errors = np.array(
        shallow_error(ContactBench(scene, position, rotation).run(), mesh_contacts(model, position, rotation))
    )
    assert len(errors) > count / 100
    assert errors[:, 0].max() < 1e-6  # MuJoCo stores vertices in single precision
    error, touching = directional_errors(scene, position, rotation, rng)
    assert len(error) > 0.98 * touching.sum() > count / 2
    assert error.max() < 1e-6


def test_cube_as_hull_rests_on_a_plane_and_on_a_box():
    for first, height in (("plane", 0.49), ("box", 0.99)):
        scene = two_shape_scene(first, "hull", b={"mesh": "cube"})
        scene.shapes[1].size = np.ones(3)
        scene.meshes["cube"] = cube()
        position = np.zeros((1, 2, 3))
        position[0, 1] = (0.0, 0.0, height)
        found = ContactBench(scene, position, np.tile([1.0, 0, 0, 0], (1, 2, 1))).run()
        assert found.count[0] >= 4
        np.testing.assert_allclose(found.distance[0, :4], -0.01, atol=1e-12)
        assert np.ptp(found.point[0, :4, 0]) == pytest.approx(0.6)
        assert np.ptp(found.point[0, :4, 1]) == pytest.approx(0.8)


def test_cylinder_stands_on_a_box():
    position = np.zeros((1, 2, 3))
    position[0, 0, 2] = 0.89
    scene = two_shape_scene("cylinder", "box", (SIZES["cylinder"], (0.6, 0.6, 0.5)))
    found = ContactBench(scene, position, np.tile([1.0, 0, 0, 0], (1, 2, 1))).run()
    assert found.count[0] >= 3
    np.testing.assert_allclose(found.distance[0, : found.count[0]], -0.01, atol=1e-12)


@pytest.mark.parametrize("gap", [0.0, -0.01])
def test_cylinder_stands_on_a_cylinder(gap):
    position = np.zeros((1, 2, 3))
    position[0, 1, 2] = 0.8 + gap
    scene, upright = two_shape_scene("cylinder", "cylinder"), np.tile([1.0, 0, 0, 0], (1, 2, 1))
    found = ContactBench(scene, position, upright, margin=1e-3).run()
    assert found.count[0] >= 3
    np.testing.assert_allclose(found.distance[0, : found.count[0]], gap, atol=1e-12)


DEGENERATE = [("cylinder", "cylinder"), ("cylinder", "box"), ("ellipsoid", "ellipsoid"), ("cone", "cone")]


@pytest.mark.parametrize(("first", "second"), DEGENERATE)
@pytest.mark.parametrize("offset", [(0, 0, 0), (0.3, 0, 0), (0, 0, 0.4), (0.6, 0, 0), (0, 0, 0.8)])
def test_degenerate_poses_are_finite(first, second, offset, rng):
    order = ("cylinder", "box") if {first, second} == {"cylinder", "box"} else (first, second)
    position = np.zeros((1, 2, 3))
    position[0, 1] = offset
    bench = ContactBench(two_shape_scene(*order), position, np.tile([1.0, 0, 0, 0], (1, 2, 1)), margin=1e-3)
    found = bench.run()
    used = slice(0, found.count[0])
    for values in (found.distance, found.point, found.frame):
        assert np.isfinite(values[0, used]).all()
    seeds = (rng.normal(size=(1, 8)), rng.normal(size=(1, 8, 3)), rng.normal(size=(1, 8, 3, 3)))
    assert all(np.isfinite(g).all() for g in bench.gradients(seeds))


@pytest.mark.parametrize("first", ["sphere", "capsule", "ellipsoid", "cylinder", "box", "hull"])
def test_boxes_drop_only_pairs_that_are_apart(first, rng):
    """A thin hull beside its own origin, at scale two, with a margin: the same bits as without its box."""
    scene = hull_scene(first, rng)
    scene.meshes["blob"].vertices = scene.meshes["blob"].vertices * [0.7, 0.4, 0.05] + [0.1, -0.05, 0.2]
    scene.shapes[1].size = np.full(3, 2.0)
    position, rotation = random_poses(first, rng, 400, 0.9)
    found = {}
    for reach in (None, 1e3, -1e3):  # its own box, one that drops nothing, one that drops everything
        bench = ContactBench(scene, position, rotation, margin=0.05)
        if reach is not None:
            bench.table.geometry.boxes.half.fill_(reach)
        found[reach] = bench.run()
    touching = found[None].count > 0
    assert 40 < touching.sum() < 360
    for name in ("count", "distance", "point", "frame"):
        np.testing.assert_array_equal(getattr(found[None], name), getattr(found[1e3], name))
    assert not found[-1e3].count.any()


def test_poses_that_are_no_numbers_touch_nothing(rng):
    """A state that has blown up is reported at the end of its segment; until then nothing may be read out of bounds."""
    for first, second in (("cylinder", "box"), ("ellipsoid", "cylinder"), ("capsule", "cylinder")):
        position, rotation = random_poses(first, rng, 8, 0.3)
        position[::2, 1] = np.nan
        rotation[1::4] = np.nan
        found = ContactBench(two_shape_scene(first, second), position, rotation).run()
        broken = np.isnan(position).any((1, 2)) | np.isnan(rotation).any((1, 2))
        assert not found.count[broken].any()
