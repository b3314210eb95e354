"""Which frames of a stage a page shows, and what its items are made of."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Gf, Usd, UsdGeom, UsdPhysics

from warpsim.core.numpy_quaternions import quat_to_matrix
from warpsim.scene import Body, Joint, Mesh, Scene, Shape
from warpsim.view.items.scene_items import SceneReader
from warpsim.view.page.scene_content import MAXIMUM_FRAMES
from warpsim.view.page.stage_content import sample_codes, stage_page


def moving_stage(samples: int) -> Usd.Stage:
    stage = Usd.Stage.CreateInMemory()
    stage.SetStartTimeCode(5.0)
    stage.SetEndTimeCode(5.0 + samples)
    move = UsdGeom.Xform.Define(stage, "/Ball").AddTranslateOp()
    for k in range(samples + 10):  # some of them beyond the end
        move.Set(Gf.Vec3d(k, 0, 0), 5.0 + k)
    return stage


def test_all_samples_within_the_range_are_frames():
    assert sample_codes(moving_stage(20)) == [5.0 + k for k in range(21)]


def test_more_samples_than_a_page_holds_are_thinned_from_the_first_to_the_last():
    codes = sample_codes(moving_stage(MAXIMUM_FRAMES + 500))
    assert len(codes) == MAXIMUM_FRAMES
    assert (codes[0], codes[-1]) == (5.0, 5.0 + MAXIMUM_FRAMES + 500)
    assert np.ptp(np.diff(codes)) < 1e-9


@pytest.mark.parametrize("scale", [(1.0, 1.0, 1.0), (2.0, 1.0, 0.5), (-1.0, 1.0, 1.0), (2.0, -0.5, 1.5)])
def test_what_is_drawn_stands_where_usd_has_it(scale):
    """Pose of the body times the shape in the body's frame is USD's own matrix, mirrored or not."""
    stage = moving_stage(3)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    body = stage.GetPrimAtPath("/Ball")
    turn = UsdGeom.Xformable(body).AddRotateXYZOp()
    for k in range(4):
        turn.Set(Gf.Vec3f(20.0, 30.0 + 15.0 * k, -70.0), 5.0 + k)
    UsdGeom.Xformable(body).AddScaleOp().Set(Gf.Vec3f(*scale))
    UsdPhysics.RigidBodyAPI.Apply(body)
    cube = UsdGeom.Cube.Define(stage, "/Ball/Cube")
    cube.AddTranslateOp().Set(Gf.Vec3d(0.3, 0.2, 0.1))
    page = stage_page(stage, "mirrored")
    (drawn,) = page.drawables
    take = page.takes[0]
    for frame in range(4):
        rotation = quat_to_matrix(take.rotations[frame, 0])
        assert np.linalg.det(rotation) == pytest.approx(1.0)
        found = rotation @ drawn.item.to_world[:3]
        found[:, 3] += take.positions[frame, 0]
        there = UsdGeom.XformCache(5.0 + frame).GetLocalToWorldTransform(cube.GetPrim())
        assert found == pytest.approx(np.array(there).T[:3], abs=1e-6)


def test_only_meshes_are_drawn_by_their_mesh():
    corner = Mesh("m", vertices=np.eye(4, 3), faces=np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]))
    kinds = {"s": "sphere", "h": "hull"}
    shapes = [Shape(name, kind=kind, body="a", mesh="m", size=np.ones(3)) for name, kind in kinds.items()]
    scene = Scene(
        bodies=[Body("a", mass=1.0, inertia=np.eye(3))],
        joints=[Joint("j", kind="free", body="a")],
        shapes=shapes,
        meshes={"m": corner},
    )
    sphere, hull = SceneReader(scene).items({"a": np.eye(4)})
    assert sphere.mesh is None and hull.mesh is not None
