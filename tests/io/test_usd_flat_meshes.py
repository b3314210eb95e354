"""Flat static meshes as ground: bodies come to rest on them where the sheet is, and fall where it is not."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Gf, UsdGeom

from warpsim.core.errors import SceneError
from warpsim.io.usd import author
from warpsim.io.usd.reader import read_usd
from warpsim.sim.simulator import Simulator

pytestmark = pytest.mark.usefixtures("own_cache")

QUAD = np.array([[-2.0, -2, 0], [2, -2, 0], [2, 2, 0], [-2, 2, 0]]), np.array([[0, 1, 2], [0, 2, 3]])
ELL = np.array([[-2.0, -2, 0], [2, -2, 0], [2, 0, 0], [0, 0, 0], [0, 2, 0], [-2, 2, 0]])
ELL_FACES = np.array([[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 5]])
"""All but the quarter x > 0, y > 0."""


def grid(cells: int) -> tuple[np.ndarray, np.ndarray]:
    """The quad cut into many, with a corner of its own for every triangle, as exporters write it."""
    line = np.linspace(-2, 2, cells + 1)
    triangles = []
    for x0, x1 in zip(line[:-1], line[1:], strict=True):
        for y0, y1 in zip(line[:-1], line[1:], strict=True):
            a, b, c, d = [x0, y0, 0], [x1, y0, 0], [x1, y1, 0], [x0, y1, 0]
            triangles += [[a, b, c], [a, c, d]]
    points = np.array(triangles).reshape(-1, 3)
    return points, np.arange(len(points)).reshape(-1, 3)


def stage_of(points, faces, approximation="none", boxes=((-1.0, -1.0),), **options):
    stage = author.new_stage()
    author.physics_scene(stage, gravity=9.81, steps_per_second=500)
    world = author.world(stage)
    author.mesh(world, "Ground", points, faces, approximation=approximation, **options)
    for i, (x, y) in enumerate(boxes):
        body = author.body(world, f"Body{i}", position=(x, y, 0.12))
        author.box(body, "Box", (0.1, 0.1, 0.1), density=500)
    return stage


def rest_heights(stage, bodies: int = 1, steps: int = 300) -> np.ndarray:
    q = np.asarray(Simulator(read_usd(stage)).rollout(steps).q[-1, 0])
    return q.reshape(bodies, 7)[:, 2]


@pytest.mark.parametrize("approximation", ["none", "convexHull", "sdf", "meshSimplification", "convexDecomposition"])
def test_a_box_rests_on_a_flat_sheet(approximation):
    assert rest_heights(stage_of(*QUAD, approximation)) == pytest.approx(0.1, abs=1e-3)


def test_a_sheet_of_many_triangles_is_one_slab():
    stage = stage_of(*grid(8))
    scene = read_usd(stage)
    (ground,) = [s for s in scene.shapes if s.body is None]
    assert ground.kind == "hull"
    assert rest_heights(stage) == pytest.approx(0.1, abs=1e-3)


@pytest.mark.parametrize("faces", [QUAD[1][:, ::-1], np.concatenate([QUAD[1], QUAD[1][:, ::-1]])], ids=["down", "both"])
def test_ground_is_solid_below_whatever_way_it_faces(faces):
    assert rest_heights(stage_of(QUAD[0], faces)) == pytest.approx(0.1, abs=1e-3)


def test_a_sheet_with_an_inner_corner_holds_only_where_it_is():
    on, off = rest_heights(stage_of(ELL, ELL_FACES, boxes=((-1, -1), (1, 1))), 2)
    assert on == pytest.approx(0.1, abs=2e-3)
    assert off == pytest.approx(0.12 - 0.5 * 9.81 * 0.6**2, rel=0.01)


def test_the_ledger_says_so():
    scene = read_usd(stage_of(*QUAD))
    (entry,) = [e for e in scene.ledger if (e.path, e.attribute) == ("/World/Ground", "points")]
    assert entry.status == "used" and "slab 0.4 m thick, solid below" in entry.reason


def test_a_wall_is_solid_behind_its_faces():
    """A quad turned to face +x: a box that slides along −x stops in front of it."""
    points = QUAD[0][:, [2, 0, 1]]
    stage = stage_of(points, QUAD[1], boxes=())
    world = stage.GetPrimAtPath("/World")
    body = author.body(world, "Slider", position=(0.3, 0, 0), velocity=(-1.0, 0, 0))
    author.box(body, "Box", (0.1, 0.1, 0.1), density=500)
    q = np.asarray(Simulator(read_usd(stage)).rollout(200).q)[:, 0]
    assert 0.095 < q[:, 0].min() < 0.11


def test_a_turned_and_scaled_stage_gives_the_same_ground():
    stage = stage_of(*QUAD)
    UsdGeom.Xformable(stage.GetPrimAtPath("/World/Ground")).AddRotateXYZOp(opSuffix="more").Set(Gf.Vec3f(180, 0, 0))
    assert rest_heights(stage) == pytest.approx(0.1, abs=1e-3)


def test_a_flat_mesh_on_a_body_is_still_refused():
    stage = stage_of(*QUAD, boxes=())
    body = author.body(stage.GetPrimAtPath("/World"), "Tray", position=(0, 0, 1))
    author.mesh(body, "Sheet", *QUAD, approximation="convexHull", density=None, mass=1.0)
    with pytest.raises(SceneError, match="Sheet"):
        Simulator(read_usd(stage)).rollout(1)
