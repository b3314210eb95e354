"""Convex hulls of many features and hulls that a file cuts, against MuJoCo and closed forms."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
import warp as wp
from pxr import Sdf

from collision_meshes import cube
from collision_support import random_quats
from warpsim.collision.contacts import ShapePoses
from warpsim.collision.query import ShapeDistance
from warpsim.core.errors import SceneError
from warpsim.core.precision import quat, vec3
from warpsim.geometry.hulls import convex_hull
from warpsim.io.mjcf import read_mjcf
from warpsim.io.usd import author
from warpsim.io.usd.export import export_scene
from warpsim.io.usd.reader import read_usd
from warpsim.scene import Mesh, Scene, Shape
from warpsim.sim.simulator import Simulator

ZOO = Path(__file__).resolve().parents[3] / "shared" / "zoo"


def fibonacci(count: int, radii=(0.5, 0.4, 0.3)) -> np.ndarray:
    """Points of an ellipsoid, all of them corners of their hull, the first at the bottom."""
    z = -1 + (2 * np.arange(count) + 1) / count
    turn = np.pi * (3 - np.sqrt(5)) * np.arange(count)
    around = np.sqrt(1 - z * z)
    return np.stack([around * np.cos(turn), around * np.sin(turn), z], axis=1) * radii


def text(points: np.ndarray) -> str:
    return " ".join(f"{x:.9g}" for x in np.asarray(points).ravel())


@pytest.mark.parametrize("count", [1900, pytest.param(6000, marks=pytest.mark.long)])
def test_hulls_of_many_features_are_as_far_apart_as_mujocos(count, rng):
    """Hulls with over 5,460 edges, turned so that features of high and low numbers meet."""
    points, worlds = fibonacci(count).astype(np.float32).astype(float), 6
    scene = Scene(meshes={"m": Mesh("m", points, np.zeros((0, 3), int))})
    scene.shapes = [Shape(name=n, kind="hull", mesh="m", size=np.ones(3)) for n in "ab"]
    assert len(convex_hull(scene.meshes["m"]).edges) > 5460
    position = np.zeros((worlds, 2, 3))
    way = rng.normal(size=(worlds, 3))
    position[:, 1] = way / np.linalg.norm(way, axis=1)[:, None] * rng.uniform(1.05, 2.0, (worlds, 1))
    rotation = random_quats(rng, 2 * worlds).reshape(worlds, 2, 4)
    query = ShapeDistance(scene, [("a", "b")], worlds, "cpu")
    poses = ShapePoses(
        wp.array(position, dtype=vec3, device="cpu"),
        wp.array(rotation, dtype=quat, device="cpu"),
        wp.array(np.ones((worlds, 2, 3)), dtype=vec3, device="cpu"),
    )
    found = query(poses)
    found.distance.fill_(np.nan)
    distance = query(poses).distance.numpy()[:, 0]
    assert (query.result.feature.numpy() > 2**32).any(), "no second feature was met"
    truth = np.array(_mujoco_distances(points, position, rotation))
    assert (truth > 0).all()
    np.testing.assert_allclose(distance, truth, atol=1e-6)


def _mujoco_distances(points: np.ndarray, position: np.ndarray, rotation: np.ndarray) -> list[float]:
    """Distance of the hulls in each world (W, 2, …), by MuJoCo."""
    geom = '<body mocap="true"><geom type="mesh" mesh="m"/></body>'
    option = '<option ccd_tolerance="1e-12" ccd_iterations="500"/>'
    asset = f'<asset><mesh name="m" vertex="{text(points)}"/></asset>'
    model = mujoco.MjModel.from_xml_string(f"<mujoco>{option}{asset}<worldbody>{geom * 2}</worldbody></mujoco>")
    data, found = mujoco.MjData(model), []
    for place, turn in zip(position, rotation, strict=True):
        data.mocap_pos[:], data.mocap_quat[:] = place, turn
        mujoco.mj_kinematics(model, data)
        found.append(mujoco.mj_geomDistance(model, data, 0, 1, 100.0, np.zeros(6)))
    return found


def test_a_hull_of_many_vertices_meets_a_mesh_by_all_sides():
    """512 points of it meet a distance field; they are spread all over, so that whichever way it is turned it rests."""
    points, size = fibonacci(1200, (0.3, 0.3, 0.3)), 0.3
    scene = Scene(meshes={"ball": Mesh("ball", points, np.zeros((0, 3), int)), "block": cube((0.5, 0.5, 0.2))})
    scene.shapes = [
        Shape(name="ball", kind="hull", mesh="ball", size=np.ones(3)),
        Shape(name="block", kind="mesh", mesh="block", size=np.ones(3), sdf_resolution=16),
    ]
    turns = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0], [np.sqrt(0.5), np.sqrt(0.5), 0, 0]])
    worlds = len(turns)
    position = np.tile([[0.0, 0, 0.2 + size - 0.01], [0, 0, 0]], (worlds, 1, 1))
    rotation = np.stack([turns, np.tile([1.0, 0, 0, 0], (worlds, 1))], axis=1)
    query = ShapeDistance(scene, [("ball", "block")], worlds, "cpu")
    poses = ShapePoses(
        wp.array(position, dtype=vec3, device="cpu"),
        wp.array(rotation, dtype=quat, device="cpu"),
        wp.array(np.ones((worlds, 2, 3)), dtype=vec3, device="cpu"),
    )
    # 512 of 1,200 points are 0.05 m apart: the lowest is at most 0.025²/2/0.3 above the bottom.
    np.testing.assert_allclose(query(poses).distance.numpy()[:, 0], -0.01, atol=2e-3)


CUT = """<mujoco><option timestep="0.002"/>
<asset><mesh name="m" maxhullvert="{limit}" vertex="{vertices}"/></asset>
<worldbody><geom type="plane" size="5 5 .1"/>
<body pos="0 0 {height}" euler="20 10 0"><freejoint/>
<geom type="mesh" mesh="m" density="500"/></body></worldbody></mujoco>"""


def cut_xml(limit: int, count: int = 400, height: float = 0.27) -> str:
    return CUT.format(limit=limit, vertices=text(fibonacci(count, (0.3, 0.25, 0.2))), height=height)


@pytest.mark.parametrize("limit", [6, 12, 32])
def test_a_cut_hull_is_mujocos(limit):
    model = mujoco.MjModel.from_xml_string(cut_xml(limit))
    graph = model.mesh_graph[model.mesh_graphadr[0] :]
    kept = np.sort(graph[2 + graph[0] :][: graph[0]])
    assert len(kept) == limit
    scene = read_mjcf(cut_xml(limit))
    (mesh,) = scene.meshes.values()
    np.testing.assert_array_equal(mesh.hull_vertices, kept)
    np.testing.assert_array_equal(convex_hull(mesh).vertices, model.mesh_vert[kept].astype(float))
    (entry,) = [e for e in scene.ledger if e.attribute == "maxhullvert"]
    assert (entry.path, entry.status) == ("mesh 'm'", "used") and f"{limit} of its 400 vertices" in entry.reason


@pytest.mark.parametrize("limit", ["-1", "1000"])
def test_a_hull_that_holds_all_vertices_is_not_cut(limit):
    scene = read_mjcf(cut_xml(limit))
    (mesh,) = scene.meshes.values()
    np.testing.assert_array_equal(mesh.hull_vertices, np.arange(400))
    assert not [e for e in scene.ledger if e.attribute == "maxhullvert"]


def test_a_hull_has_the_vertices_that_mujoco_kept():
    """Of points in the middle of a face to rounding MuJoCo leaves some out, and so must ours."""
    rng = np.random.default_rng(2)
    face = np.column_stack([rng.uniform(-0.1, 0.1, (60, 2)), np.full(60, 0.1) + 1e-9 * rng.normal(size=60)])
    cube = np.array([[x, y, z] for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1)])
    xml = CUT.format(limit=-1, vertices=text(np.concatenate([cube, face])), height=0.3)
    model = mujoco.MjModel.from_xml_string(xml)
    graph = model.mesh_graph[model.mesh_graphadr[0] :]
    (mesh,) = read_mjcf(xml).meshes.values()
    np.testing.assert_array_equal(mesh.hull_vertices, np.sort(graph[2 + graph[0] :][: graph[0]]))
    hull = convex_hull(mesh)
    assert set(np.unique(hull.faces)) <= set(np.concatenate(hull.outlines).tolist())


def test_a_body_with_a_cut_hull_moves_as_mujocos():
    """It falls on a corner and tips; with all vertices it would roll about 2 cm higher."""
    xml = cut_xml(8)
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    trajectory = Simulator(read_mjcf(xml)).rollout(200)
    for _ in range(200):
        mujoco.mj_step(model, data)
    np.testing.assert_allclose(trajectory.q[-1, 0], data.qpos, atol=1e-6)
    whole = Simulator(read_mjcf(cut_xml(-1))).rollout(200)
    assert abs(float(whole.q[-1, 0, 2]) - data.qpos[2]) > 0.01


def test_a_cut_hull_survives_usd(tmp_path):
    scene = read_mjcf(cut_xml(12))
    path = tmp_path / "cut.usda"
    stage, lost = export_scene(scene)
    stage.Export(str(path))
    assert not lost
    (mesh,), (back,) = scene.meshes.values(), read_usd(path).meshes.values()
    np.testing.assert_array_equal(back.hull_vertices, mesh.hull_vertices)


@pytest.mark.parametrize("attribute", ["newton:maxHullVertices", "mjc:maxhullvert"])
def test_usd_bounds_the_vertices_of_a_hull(attribute):
    """The kept points are corners of the whole hull, and the furthest ones: the axes' ends of a long ellipsoid."""
    stage = author.new_stage()
    author.physics_scene(stage)
    body = author.body(author.world(stage), "Body")
    points = np.concatenate([fibonacci(200), [[0.6, 0, 0], [-0.6, 0, 0]]])
    prim = author.mesh(body, "Hull", points, np.array([[0, 1, 2]]))
    prim.CreateAttribute(attribute, Sdf.ValueTypeNames.Int).Set(20)
    scene = read_usd(stage)
    (mesh,) = scene.meshes.values()
    assert len(mesh.hull_vertices) == 20 and {200, 201} <= set(mesh.hull_vertices.tolist())
    assert len(convex_hull(mesh).vertices) == 20
    (entry,) = [e for e in scene.ledger if e.attribute == attribute]
    assert entry.status == "used" and "20 points" in entry.reason
    prim.GetAttribute(attribute).Set(3)
    with pytest.raises(SceneError, match="needs 4 or more"):
        read_usd(stage)


@pytest.mark.skipif(not ZOO.is_dir(), reason="the shared robots are not beside the project")
def test_a_robot_with_cut_hulls_opens():
    scene = read_mjcf(ZOO / "robotstudio_so101" / "so101.xml")
    cut = [entry for entry in scene.ledger if entry.attribute == "maxhullvert"]
    assert cut and all("hull of 64 of its" in entry.reason for entry in cut)
    assert np.isfinite(np.asarray(Simulator(scene).rollout(2).q)).all()
