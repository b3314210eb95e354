"""The camera of a result: all that moves is in its picture all the time, in any units and axes."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Usd, UsdGeom, UsdShade

from warpsim.io.usd import author
from warpsim.io.usd.motion import Motion
from warpsim.io.usd.reader import read_usd
from warpsim.io.usd.view_camera import CAMERA
from warpsim.io.usd.writer import write_result


def flying(folder, *, length: float, up: str, camera: bool = False):
    """A ball of a color and one of a material that fly apart; the file, its scene and the motion."""
    stage = author.new_stage(meters_per_unit=length, up_axis=up)
    world = author.world(stage)
    author.sphere(author.body(world, "A"), "Shape", 0.1 / length, color=(0.8, 0.1, 0.1))
    ball = author.sphere(author.body(world, "B", position=(1.0 / length, 0, 0)), "Shape", 0.1 / length)
    material = UsdShade.Material.Define(stage, "/World/Paint")
    UsdShade.MaterialBindingAPI.Apply(ball).Bind(material)
    if camera:
        UsdGeom.Camera.Define(stage, "/World/Camera")
    path = folder / "source.usda"
    author.save(stage, path)
    scene = read_usd(path)
    times = np.linspace(0.0, 1.0, 21)
    positions = np.zeros((21, 2, 3))
    positions[:, 0, 0], positions[:, 1, 1] = -4.0 * times, 3.0 * times
    positions[:, 1, 2] = 2.0 * times * (1.0 - times)
    rotations = np.tile([1.0, 0.0, 0.0, 0.0], (21, 2, 1))
    q = np.concatenate([positions, rotations], axis=2).reshape(21, 14)
    return path, scene, Motion(times, q, np.zeros((21, 12)), positions, rotations)


@pytest.mark.parametrize(("length", "up"), [(1.0, "Z"), (0.01, "Y")])
def test_everything_stays_in_the_picture(tmp_path, length, up):
    path, scene, motion = flying(tmp_path, length=length, up=up)
    stage = Usd.Stage.Open(str(write_result(tmp_path / "result.usda", path, scene, motion)[0]))
    frustum = UsdGeom.Camera(stage.GetPrimAtPath(CAMERA)).GetCamera(0.0).frustum
    low, high = np.full(2, np.inf), np.full(2, -np.inf)
    for code in np.linspace(stage.GetStartTimeCode(), stage.GetEndTimeCode(), 11):
        for name in ("A", "B"):
            cache = UsdGeom.XformCache(float(code))
            place = cache.GetLocalToWorldTransform(stage.GetPrimAtPath(f"/World/{name}")).ExtractTranslation()
            assert frustum.Intersects(place)
            seen = (frustum.ComputeViewMatrix() * frustum.ComputeProjectionMatrix()).Transform(place)
            low, high = np.minimum(low, seen[:2]), np.maximum(high, seen[:2])
    assert max(high - low) > 0.7  # of 2: it is near enough, too
    # Up in the world is up in the picture.
    assert frustum.ComputeUpVector()[1 if up == "Y" else 2] > 0.8


def test_colors_and_materials_come_along(tmp_path):
    path, scene, motion = flying(tmp_path, length=1.0, up="Z")
    stage = Usd.Stage.Open(str(write_result(tmp_path / "result.usda", path, scene, motion)[0]))
    assert UsdGeom.Gprim(stage.GetPrimAtPath("/World/A/Shape")).GetDisplayColorAttr().Get()[0][0] == pytest.approx(0.8)
    material, _ = UsdShade.MaterialBindingAPI(stage.GetPrimAtPath("/World/B/Shape")).ComputeBoundMaterial()
    assert material.GetPath() == "/World/Paint"
    assert len(read_usd(stage).bodies) == 2


def test_a_source_keeps_to_its_own_cameras(tmp_path):
    path, scene, motion = flying(tmp_path, length=1.0, up="Z", camera=True)
    stage = Usd.Stage.Open(str(write_result(tmp_path / "result.usda", path, scene, motion)[0]))
    assert not stage.GetPrimAtPath(CAMERA)
