"""The authoring helper: ordinary prims, frames from current poses, and errors for what no schema knows."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Usd, UsdGeom, UsdPhysics, UsdValidation

from scene_compare import differences
from warpsim.core.errors import InputError, UnknownNameError
from warpsim.io.usd import author
from warpsim.io.usd.ledger_scan import applied_apis
from warpsim.io.usd.reader import read_usd


def test_returns_ordinary_prims():
    stage = author.new_stage()
    body = author.body(author.world(stage), "Ball", position=(0, 0, 1), mass=2)
    assert isinstance(body, Usd.Prim)
    assert body.HasAPI(UsdPhysics.RigidBodyAPI)
    assert UsdPhysics.MassAPI(body).GetMassAttr().Get() == 2
    sphere = author.sphere(body, "Shape", 0.5)
    assert UsdGeom.Sphere(sphere).GetRadiusAttr().Get() == 0.5


def test_unknown_attributes_raise():
    stage = author.new_stage()
    body = author.body(author.world(stage), "Ball", mass=2)
    with pytest.raises(UnknownNameError, match="physics:velocity"):
        author.set_attribute(body, "physics:velocty", (1, 0, 0))
    with pytest.raises(UnknownNameError, match="newton:armature"):
        author.revolute(body, "Joint", None, body, "Z", attributes={"newton:armatur": 1})
    with pytest.raises(InputError, match="stifness"):
        author.revolute(body, "Joint2", None, body, "Z", drive={"stifness": 1})
    with pytest.raises(TypeError):
        author.sphere(body, "Shape", 0.5, tint=(1, 0, 0))


@pytest.mark.parametrize("value", ["heavy", (1, 2), None])
def test_wrong_values_raise(value):
    stage = author.new_stage()
    body = author.body(author.world(stage), "Ball", mass=2)
    with pytest.raises(InputError):
        author.set_attribute(body, "physics:mass", value)


def test_bad_and_taken_names_raise():
    stage = author.new_stage()
    author.body(author.world(stage), "Ball")
    with pytest.raises(InputError, match="exists already"):
        author.body(author.world(stage), "Ball")
    with pytest.raises(InputError, match="letters"):
        author.body(author.world(stage), "my ball")


def test_joint_frames_coincide_where_the_bodies_stand(rng):
    """Frames computed under scaled and turned ancestors: both ends of a joint are the same frame in the world."""
    stage = author.new_stage()
    group = author.frame(author.world(stage), "Group", position=(1, 2, 3), rotation=(0.5, 0.5, 0.5, 0.5))
    a = author.body(author.world(stage), "A", position=rng.normal(size=3), mass=1)
    b = author.body(group, "B", position=rng.normal(size=3), rotation=(0.6, 0.8, 0, 0), mass=1)
    joint = author.revolute(group, "Joint", a, b, (1, 2, 3), anchor=(0.3, 0.2, 0.1))
    cache, points, axes = UsdGeom.XformCache(), [], []
    for index, body in enumerate((a, b)):
        pose = cache.GetLocalToWorldTransform(body)
        local = UsdPhysics.Joint(joint)
        position = (local.GetLocalPos0Attr if index == 0 else local.GetLocalPos1Attr)().Get()
        rotation = (local.GetLocalRot0Attr if index == 0 else local.GetLocalRot1Attr)().Get()
        points.append(pose.Transform(position))
        axes.append(pose.TransformDir(rotation.Transform((1, 0, 0))))
    np.testing.assert_allclose(points, [(0.3, 0.2, 0.1)] * 2, atol=1e-6)
    np.testing.assert_allclose(axes[0], axes[1], atol=1e-6)
    assert read_usd(stage, strict=True).joints[-1].initial_q is None


def test_save_and_read_give_the_same_scene(tmp_path):
    """author → write → read: every bit survives the file."""
    stage = author.new_stage(meters_per_unit=0.01)
    author.physics_scene(stage, gravity=981, steps_per_second=240)
    material = author.material(author.world(stage), "Rubber", friction=0.7, restitution=0.3, density=1.1e-3)
    author.ground(author.world(stage), material=material)
    body = author.body(author.world(stage), "Body", position=(1 / 3, 2 / 7, 31.4), rotation=(0.6, 0.8, 0, 0))
    author.capsule(body, "Rod", 3.3, 7.7, axis="Y", material=material, color=(0.1, 0.2, 0.3))
    joint = author.revolute(body, "Joint", None, body, (1, 1, 0), limits=(-33, 44), drive={"stiffness": 0.1})
    author.actuator(author.world(stage), "Motor", joint, gear=(3, 0, 0, 0, 0, 0), control_range=(-1, 1))
    for name in ("scene.usda", "scene.usdc"):
        author.save(stage, tmp_path / name)
        again = read_usd(tmp_path / name, strict=True)
        assert differences(read_usd(stage, strict=True), again, tolerance=0) == []


def test_authored_scenes_are_valid():
    stage = author.new_stage()
    author.physics_scene(stage, gravity=9.81)
    material = author.material(author.world(stage), "Rubber", friction=0.7)
    author.ground(author.world(stage), material=material)
    a = author.body(author.world(stage), "A", articulation_root=True, mass=1, inertia=(1, 1, 1))
    b = author.body(a, "B", position=(1, 0, 0))
    author.box(b, "Box", (0.1, 0.2, 0.3), material=material)
    author.revolute(b, "Joint", a, b, "Z", limits=(-1, 1), drive={"stiffness": 1}, attributes={"newton:armature": 1})
    author.collision_group(author.world(stage), "Group", [a])
    author.sensor(author.world(stage), "Gyro", "gyro", author.site(b, "Imu"))
    context = UsdValidation.ValidationContext(UsdValidation.ValidationRegistry().GetOrLoadAllValidators())
    assert [error.GetMessage() for error in context.Validate(stage)] == []
    scene = read_usd(stage, strict=True)
    assert [(sensor.kind, sensor.target, sensor.target_kind) for sensor in scene.sensors] == [
        ("gyro", "/World/A/B/Imu", "site")
    ]


def test_mesh_faces_are_checked():
    stage = author.new_stage()
    with pytest.raises(InputError, match="faces"):
        author.mesh(author.world(stage), "Mesh", np.zeros((3, 3)), np.array([0, 1, 2]))


def cone(prim) -> str | None:
    return prim.GetAttribute("mjc:option:cone").Get() if prim.HasAttribute("mjc:option:cone") else None


def test_mujocos_scene_schema_brings_no_other_cone():
    """Without a cone MjcSceneAPI means pyramids, so the attribute that brings the schema brings the cone of before."""
    stage = author.new_stage()
    prim = author.physics_scene(stage, gravity=9.81, steps_per_second=500)
    assert cone(prim) is None
    assert "MjcSceneAPI" not in applied_apis(prim)
    author.set_attribute(prim, "mjc:option:density", 1.2)
    assert "MjcSceneAPI" in applied_apis(prim)
    assert cone(prim) == "elliptic"
    assert prim.GetAttribute("mjc:flag:filterparent").Get() is False  # nor another filter
    author.set_attribute(prim, "mjc:option:cone", "pyramidal")
    author.set_attribute(prim, "mjc:option:viscosity", 1e-5)
    assert cone(prim) == "pyramidal"


@pytest.mark.parametrize("names", [("cone", "density"), ("density", "cone")])
def test_a_cone_that_is_asked_for_is_kept(names):
    stage, values = author.new_stage(), {"cone": "pyramidal", "density": 1.2}
    attributes = {f"mjc:option:{name}": values[name] for name in names}
    assert cone(author.physics_scene(stage, attributes=attributes)) == "pyramidal"


def test_a_scene_that_has_the_schema_keeps_its_default_cone():
    """As a converted robot's, which leaves MuJoCo's default out: it is not ours to change."""
    stage = author.new_stage()
    prim = author.physics_scene(stage)
    prim.AddAppliedSchema("MjcSceneAPI")
    author.set_attribute(prim, "mjc:option:density", 1.2)
    assert cone(prim) is None
