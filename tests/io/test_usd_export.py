"""Scene → USD → Scene: the same robot, whether the scene came from MJCF or was built in Python."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
from pxr import UsdValidation

from export_scenes import everything
from mujoco_oracle import initial_state, to_mujoco
from scene_compare import differences
from warpsim.collision.pairs import collision_pairs
from warpsim.io.mjcf.reader import read_mjcf
from warpsim.io.usd import author
from warpsim.io.usd.export import export_scene
from warpsim.io.usd.reader import read_usd
from warpsim.scene import (
    Body,
    ContactOverride,
    Equality,
    Joint,
    Scene,
)

SCENES = Path(__file__).resolve().parents[2] / "scenes"


def short(name: str) -> str:
    return name.rsplit("/", 1)[-1].removesuffix(":free")


def pairs(scene) -> set[frozenset[str]]:
    return {frozenset((short(scene.shapes[i].name), short(scene.shapes[j].name))) for i, j in collision_pairs(scene)}


def test_everything_survives():
    scene = everything()
    stage, notes = export_scene(scene)
    assert notes == []
    again = read_usd(stage, strict=True)
    context = UsdValidation.ValidationContext(UsdValidation.ValidationRegistry().GetOrLoadAllValidators())
    assert [error.GetMessage() for error in context.Validate(stage)] == []
    assert [short(body.name) for body in again.bodies] == [body.name for body in scene.bodies]
    assert [short(joint.name) for joint in again.joints] == [joint.name for joint in scene.joints]
    assert pairs(again) == pairs(scene)
    again.shapes.sort(key=lambda shape: [s.name for s in scene.shapes].index(short(shape.name)))
    again.sites.sort(key=lambda site: [s.name for s in scene.sites].index(short(site.name)))
    again.equalities.sort(
        key=lambda e: ["mimic", "rope", "hook", "guide"].index(short(e.name).replace("slide:mimic", "mimic"))
    )
    found = differences(scene, again, tolerance=1e-6, names=False)
    # Poses at q = 0 replace poses at a reference, so compounds look different; that they move alike is tested below.
    known = ("reference", "initial_q", "bodies arm.", "joints roll.a", "joints pitch.a", "wrist.axis", "slide.rest")
    assert [item for item in found if not any(part in item for part in known)] == []


def test_motion_survives(rng):
    """The same coordinates give the same poses and mass matrix, references and compounds included."""
    scene = everything()
    scene.equalities = [item for item in scene.equalities if item.kind not in ("distance", "axes")]
    scene.bodies = [body for body in scene.bodies if not body.kinematic]
    scene.joints = [joint for joint in scene.joints if joint.name != "mover"]
    stage, _ = export_scene(scene)
    again = read_usd(stage)
    models = [to_mujoco(item, approximate=True) for item in (scene, again)]
    starts = [initial_state(item, model)[0] for item, model in zip((scene, again), models, strict=True)]
    np.testing.assert_allclose(starts[1], starts[0], atol=1e-6)
    for _ in range(5):
        qpos = models[0].qpos0.copy()
        mujoco.mj_integratePos(models[0], qpos, rng.normal(size=models[0].nv), 1.0)
        results = []
        for model in models:
            data = mujoco.MjData(model)
            data.qpos[:] = qpos
            mujoco.mj_forward(model, data)
            dense = np.full((model.nv, model.nv), np.nan)
            mujoco.mj_fullM(model, data, dense)
            results.append((data.xpos.copy(), dense))
        np.testing.assert_allclose(results[1][0], results[0][0], atol=1e-5)
        np.testing.assert_allclose(results[1][1], results[0][1], atol=1e-5)


def test_losses_are_told():
    scene = everything()
    scene.contact_overrides = [ContactOverride("ball", "ground")]
    scene.options.contacts = False
    scene.equalities[2].active = False
    scene.equalities.append(Equality("tendon", "tendon", "tendon"))
    free = next(joint for joint in scene.joints if joint.kind == "free")
    free.damping = 0.5
    notes = {(note.path, note.attribute) for note in export_scene(scene)[1]}
    assert notes == {
        (f"joint {free.name!r}", "damping"),
        ("pair 'ball and ground'", "contact_overrides"),
        ("options 'options'", "contacts"),
        ("equality 'hook'", "active"),
        ("equality 'tendon'", "tendon"),
    }


@pytest.mark.parametrize("path", sorted(SCENES.glob("*.usda")), ids=lambda path: path.stem)
def test_own_scenes_survive(path):
    scene = read_usd(path, strict=True)
    stage, notes = export_scene(scene)
    assert notes == []
    again = read_usd(stage, strict=True)
    assert len(again.shapes) == len(scene.shapes)
    assert again.options.cone == scene.options.cone
    first, second = to_mujoco(scene, approximate=True), to_mujoco(again, approximate=True)
    np.testing.assert_allclose(second.body_mass, first.body_mass, rtol=1e-6)
    np.testing.assert_allclose(second.body_inertia, first.body_inertia, rtol=1e-5)
    np.testing.assert_allclose(initial_state(again, second)[0], initial_state(scene, first)[0], atol=1e-6)
    assert len(pairs(again)) == len(pairs(scene))


@pytest.mark.parametrize(
    "robot", ["brax_ant", "franka_emika_panda", "mujoco_humanoid", "skydio_x2", "so_arm100", "unitree_a1"]
)
def test_robots_from_mjcf(assets_dir, tmp_path, robot, rng):
    """MJCF → USD file → Scene, in MuJoCo again: counts, dynamics, actuation, collision pairs."""
    scene = read_mjcf(next((assets_dir / robot / "mjcf").glob("*.xml")), strict=False)
    stage, _ = export_scene(scene)
    author.save(stage, tmp_path / "robot.usda")
    again = read_usd(tmp_path / "robot.usda", strict=True)
    assert again.options.cone == scene.options.cone
    first, second = to_mujoco(scene, approximate=True), to_mujoco(again, approximate=True)
    for size in ("nq", "nv", "nu", "nbody", "njnt", "ntendon", "neq", "nsite"):
        assert getattr(second, size) == getattr(first, size), size
    np.testing.assert_allclose(initial_state(again, second)[0], initial_state(scene, first)[0], atol=1e-6)
    assert len(collision_pairs(again)) == len(collision_pairs(scene))
    qpos = first.qpos0.copy()
    mujoco.mj_integratePos(first, qpos, rng.normal(size=first.nv), 1.0)
    qvel, control = rng.normal(size=first.nv), rng.uniform(-1, 1, first.nu)
    results = []
    for model in (first, second):
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:], data.ctrl[:] = qpos, qvel, control
        mujoco.mj_forward(model, data)
        dense = np.full((model.nv, model.nv), np.nan)
        mujoco.mj_fullM(model, data, dense)
        results.append((dense, data.qfrc_bias, data.qfrc_passive, data.qfrc_actuator))
    for expected, found in zip(*results, strict=True):
        assert np.abs(found - expected).max() <= 1e-5 * max(np.abs(expected).max(), 1e-3)


def test_limits_of_balls_are_in_degrees():
    """On a joint of the tree and on one that closes a loop."""
    scene = Scene(
        bodies=[Body(name, mass=1.0, com=np.zeros(3), inertia=np.eye(3)) for name in ("a", "b", "c")],
        joints=[Joint("socket", "ball", "a", limit=(0.0, 0.7)), *(Joint(n, "free", n) for n in ("b", "c"))],
        equalities=[
            Equality(
                "cup",
                "axes",
                "b",
                "c",
                relative_pose=np.array([0, 0, 0, 1.0, 0, 0, 0]),
                locked=(True, True, True, False, False, False),
                turn_limit=0.4,
            )
        ],
    )
    stage, notes = export_scene(scene)
    assert notes == []
    angles = {
        prim.GetName(): [prim.GetAttribute(f"physics:coneAngle{i}Limit").Get() for i in (0, 1)]
        for prim in stage.Traverse()
        if prim.GetTypeName() == "PhysicsSphericalJoint"
    }
    assert angles == {"socket": pytest.approx([40.107045659] * 2), "cup": pytest.approx([22.918311805] * 2)}
    again = read_usd(stage)
    (ball,) = (joint for joint in again.joints if joint.kind == "ball")
    assert ball.limit == pytest.approx((0.0, 0.7), rel=1e-6)
    assert again.equalities[0].turn_limit == pytest.approx(0.4, rel=1e-6)
