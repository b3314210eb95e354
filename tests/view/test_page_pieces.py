"""Numbers, meshes and joints of a page at their borders."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Gf, Usd, UsdGeom

from warpsim.core.errors import SceneError
from warpsim.io.usd.motion import Motion
from warpsim.scene import Body, Joint, Scene
from warpsim.view.items.item import BOX, Item
from warpsim.view.items.stage_items import StageReader
from warpsim.view.items.triangles import Triangles
from warpsim.view.page.meshes import octahedral, pack_mesh
from warpsim.view.page.scene_content import MAXIMUM_FRAMES, merged, motion_take, scene_bodies, scene_joints
from warpsim.view.page.series import LEVELS, quantized, restored, squeezed
from warpsim.view.page.stage_points import moving_points


@pytest.mark.parametrize("frames", [1, 2, 3, 50])
def test_series_come_back_exactly(frames, rng):
    levels = rng.integers(0, 65536, (frames, 4)).astype(np.uint16)
    data = squeezed(levels.copy())
    assert len(data) == 2 * levels.size and np.array_equal(restored(data, frames, 4), levels)


def test_even_motions_have_no_second_differences():
    levels = np.arange(0, 500, 5, dtype=np.uint16)[:, None]
    data = np.frombuffer(squeezed(levels), np.uint8)
    assert data[1] == 10 and not data[2:].any()  # 5 as a zigzag number, and then nothing


def test_the_range_is_mapped_to_all_levels():
    low, high = np.array([1.0, 5.0]), np.array([3.0, 5.0])
    assert quantized(np.array([[1.0, 5.0], [3.0, 5.0], [2.0, 5.0]]), low, high).tolist() == [
        [0, 0],
        [LEVELS, 0],
        [32768, 0],
    ]


def unfolded(codes: np.ndarray) -> np.ndarray:
    """Unit vectors of octahedral codes, as the page makes them."""
    xy = codes / 255.0 * 2.0 - 1.0
    z = 1.0 - np.abs(xy).sum(1)
    t = np.maximum(-z, 0.0)
    v = np.column_stack([xy - np.where(xy >= 0, t[:, None], -t[:, None]), z])
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def test_normals_come_back_to_a_degree(rng):
    normals = rng.normal(size=(500, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    found = unfolded(octahedral(normals).astype(float))
    assert np.degrees(np.arccos(np.clip((found * normals).sum(1), -1, 1))).max() < 1.0


def test_a_mesh_comes_back_with_shared_corners(rng):
    corners = rng.normal(size=(1, 3, 3)).repeat(2, 0)
    corners[1, 2] += 2.0
    normals = np.tile([0.0, 0.0, 1.0], (2, 3, 1))
    packed = pack_mesh(Triangles(corners, normals))
    assert len(packed.vertices) == 4 and packed.faces.tolist() == [[0, 1, 2], [0, 1, 3]] and packed.uvs is None
    span = packed.high - packed.low
    assert packed.low + packed.vertices[packed.faces] / LEVELS * span == pytest.approx(corners, abs=span.max() / LEVELS)
    uvs = np.zeros((2, 3, 2))
    uvs[1, 0] = (0.5, 1.0)  # one place with two coordinates is two vertices
    textured = pack_mesh(Triangles(corners, normals, uvs))
    assert len(textured.vertices) == 5 and textured.uv_range is not None
    low, high = textured.uv_range
    assert low + textured.uvs[textured.faces] / LEVELS * (high - low) == pytest.approx(uvs, abs=1e-4)
    assert len(textured.to_bytes()) == len(packed.to_bytes()) + (6 + 2) + 5 * 4


def arm() -> Scene:
    scene = Scene(bodies=[Body("a", mass=1.0), Body("b", "a", mass=2.0, com=np.ones(3))])
    scene.joints = [
        Joint("root", "free", "a"),
        Joint("turn", "ball", "b", limit=(0.0, 1.0)),
        Joint("knee", "hinge", "b", limit=(-1.0, 2.0)),
        Joint("rail", "slide", "b"),
    ]
    return scene


def test_joints_know_their_columns():
    found = {j.path: (j.kind, j.column, j.limit) for j in scene_joints(arm())}
    assert found == {
        "root": ("free", None, None),
        "turn": ("ball", None, None),
        "knee": ("hinge", 11, (-1.0, 2.0)),
        "rail": ("slide", 12, None),
    }


def test_bodies_have_what_is_known_best():
    plain, known = scene_bodies(arm()), scene_bodies(arm(), {"a": 5.0}, {"b": np.zeros(3)})
    assert [b.mass for b in plain] == [1.0, 2.0] and [b.mass for b in known] == [5.0, 2.0]
    assert plain[1].com.tolist() == [1.0] * 3 and known[1].com.tolist() == [0.0] * 3


def test_what_is_shown_and_collides_is_drawn_once():
    items = [Item(name, BOX, np.ones(3), np.eye(4), np.zeros(3), None) for name in "abc"]
    found = [(d.item.name, d.visual, d.collider) for d in merged(items[:2], items[1:])]
    assert found == [("a", True, False), ("b", True, True), ("c", False, True)]


@pytest.mark.parametrize(
    ("frames", "every"), [(MAXIMUM_FRAMES, 1), (MAXIMUM_FRAMES + 1, 2), (2 * MAXIMUM_FRAMES + 1, 3)]
)
def test_long_motions_are_thinned(frames, every):
    rows = np.arange(float(frames))
    motion = Motion(rows, rows[:, None], rows[:, None], np.zeros((frames, 0, 3)), np.zeros((frames, 0, 4)))
    motion.points = {"/w": rows[:, None, None]}
    take = motion_take(motion, "m", iteration=3, loss=0.5)
    assert take.times.tolist() == rows[::every].tolist() and take.values[:, 0].tolist() == rows[::every].tolist()
    assert take.points["/w"][:, 0, 0].tolist() == rows[::every].tolist() and (take.iteration, take.loss) == (3, 0.5)


def soft_stage() -> Usd.Stage:
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 0.5)
    return stage


def test_moving_points_are_in_the_world_in_meters():
    stage = soft_stage()
    frame = UsdGeom.Xform.Define(stage, "/F")
    move = frame.AddTranslateOp()
    frame.AddRotateZOp().Set(90.0)
    for code in (0.0, 1.0):
        move.Set(Gf.Vec3d(2.0 * code, 0, 0), code)
    cloud = UsdGeom.Points.Define(stage, "/F/Cloud")
    for code in (0.0, 1.0):
        cloud.GetPointsAttr().Set([(1.0, code, 0.0), (0.0, 0.0, 4.0)], code)
    cloud.CreateWidthsAttr([0.2, 0.4])
    curve = UsdGeom.BasisCurves.Define(stage, "/Rope")
    curve.CreatePointsAttr([(0, 0, 0), (1, 0, 0), (2, 0, 0)])
    curve.CreateCurveVertexCountsAttr([3])
    still = UsdGeom.Mesh.Define(stage, "/Still")
    still.CreatePointsAttr([(0, 0, 0), (1, 0, 0), (0, 1, 0)])
    hidden = UsdGeom.Points.Define(stage, "/Hidden")
    hidden.CreatePointsAttr([(0, 0, 0)])
    hidden.MakeInvisible()
    guide = UsdGeom.Points.Define(stage, "/Guide")
    guide.CreatePointsAttr([(0, 0, 0)])
    guide.CreatePurposeAttr(UsdGeom.Tokens.guide)
    things, tracks = moving_points(stage, StageReader(stage), [0.0, 1.0])
    assert [thing.path for thing in things] == ["/F/Cloud", "/Rope"]
    assert tracks["/F/Cloud"][1] == pytest.approx(np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 2.0]]), abs=1e-6)
    assert tracks["/Rope"][0, 2].tolist() == [1.0, 0.0, 0.0]
    assert things[0].radius == pytest.approx(0.15) and things[1].width == 0.01 and things[1].counts.tolist() == [3]


def test_points_that_change_their_number_are_refused():
    stage = soft_stage()
    cloud = UsdGeom.Points.Define(stage, "/Cloud")
    cloud.GetPointsAttr().Set([(0, 0, 0)], 0.0)
    cloud.GetPointsAttr().Set([(0, 0, 0)] * 2, 1.0)
    with pytest.raises(SceneError, match="it has 1 points at first and 2 at time code 1"):
        moving_points(stage, StageReader(stage), [0.0, 1.0])
