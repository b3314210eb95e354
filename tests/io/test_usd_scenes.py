"""The project's own scenes: made by their scripts, documented, valid, fully understood, and able to stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest
from pxr import Usd, UsdValidation

from mujoco_oracle import initial_state, to_mujoco
from shape_mass import solid
from warpsim.io.usd.reader import read_usd

PROJECT = Path(__file__).resolve().parents[2]
SCENES = sorted((PROJECT / "scenes").glob("*.usda"))
NAMES = {
    "arm",
    "bounce",
    "bounce_shot",
    "bowl",
    "cartpole",
    "cloth_lay",
    "drag",
    "gates",
    "hopper",
    "humanoid",
    "incline",
    "pendulum",
    "projectile",
    "push",
    "quadrotor",
    "quadruped",
    "rise",
    "stack",
    "swing",
    "throw",
    "trot",
    "tumble_shot",
    "workbench",
}


def test_all_scenes_are_there():
    assert {path.stem for path in SCENES} >= NAMES


@pytest.mark.parametrize("path", SCENES, ids=lambda path: path.stem)
def test_scene_is_documented_valid_and_understood(path):
    stage = Usd.Stage.Open(str(path))
    assert len(stage.GetRootLayer().documentation) > 80
    context = UsdValidation.ValidationContext(UsdValidation.ValidationRegistry().GetOrLoadAllValidators())
    assert [error.GetMessage() for error in context.Validate(stage)] == []
    scene = read_usd(path, strict=True)
    assert scene.bodies
    assert scene.options.cone == "elliptic"


def test_scripts_reproduce_the_files(tmp_path):
    """Each script's stage, saved anew, is the file in the repository, byte for byte."""
    code = (
        "import sys; from pathlib import Path; import common; common.FOLDER = Path(sys.argv[1])\n"
        "import make_all\n"
        "for module in make_all.SCENES: common.write(module.build(), module.__name__)"
    )
    environment = {"PYTHONPATH": f"{PROJECT}:{PROJECT / 'tools' / 'scenes'}", "PATH": "/usr/bin:/bin"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, env=environment, cwd=PROJECT)
    for name in sorted(NAMES):
        assert (tmp_path / f"{name}.usda").read_text() == (PROJECT / "scenes" / f"{name}.usda").read_text(), name


def simulate(name: str, seconds: float):
    """MuJoCo's rollout of a scene: (scene, model, data, deepest penetration in m)."""
    scene = read_usd(PROJECT / "scenes" / f"{name}.usda", strict=True)
    model = to_mujoco(scene, approximate=True)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = initial_state(scene, model)
    deepest = 0.0
    for _ in range(round(seconds / model.opt.timestep)):
        mujoco.mj_step(model, data)
        if data.ncon:
            deepest = min(deepest, float(data.contact.dist[: data.ncon].min()))
    return scene, model, data, deepest


@pytest.mark.parametrize(("name", "root"), [("humanoid", "/World/Pelvis"), ("quadruped", "/World/Trunk")])
def test_robots_stand_for_two_seconds(name, root):
    scene, _, data, deepest = simulate(name, 2.0)
    start = next(body for body in scene.bodies if body.name == root).position
    assert np.linalg.norm(data.body(root).xpos - start) < 0.02
    assert abs(data.body(root).xquat[0]) > 0.999
    assert np.abs(data.qvel).max() < 0.05
    assert deepest > -0.002


@pytest.mark.parametrize("name", sorted(NAMES - {"bowl", "humanoid", "quadruped"}))
def test_scenes_run_with_little_penetration(name):
    """In MuJoCo, which lacks restitution and concave meshes."""
    _, _, data, deepest = simulate(name, 2.0)
    assert np.isfinite(data.qpos).all()
    assert deepest > -0.002


def test_pendulum_starts_at_sixty_degrees():
    scene = read_usd(PROJECT / "scenes" / "pendulum.usda", strict=True)
    assert scene.joints[0].initial_q[0] == pytest.approx(np.radians(60), abs=1e-7)


def test_quadrotor_hovers():
    """At the documented thrust the forces cancel: 4 · 2.4525 N = 9.81 N."""
    scene = read_usd(PROJECT / "scenes" / "quadrotor.usda", strict=True)
    model = to_mujoco(scene, approximate=True)
    data = mujoco.MjData(model)
    data.qpos[2] = 1.0
    data.ctrl[:] = 2.4525
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.qacc, 0, atol=1e-6)


def test_bowl_is_concave_and_watertight():
    scene = read_usd(PROJECT / "scenes" / "bowl.usda", strict=True)
    for shape in scene.shapes:
        if shape.kind != "mesh":
            continue
        faces = scene.meshes[shape.mesh].faces
        edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
        forward, backward = {tuple(e) for e in edges}, {tuple(e[::-1]) for e in edges}
        assert len(forward) == len(edges)
        assert forward == backward
        assert solid("mesh", (1, 1, 1), scene.meshes[shape.mesh].vertices, faces)[0] > 0
    assert [shape.kind for shape in scene.shapes] == ["plane", "mesh", "mesh"]
