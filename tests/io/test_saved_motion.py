"""Motions of MJCF and URDF files as USD in one call, and motions saved as arrays, drawn over their scene."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from PIL import Image
from pxr import Usd, UsdGeom, UsdValidation

from warpsim.cli.main import main
from warpsim.core.errors import InputError, UnsupportedPhysicsWarning
from warpsim.io.load import load_scene
from warpsim.io.saved_motion import read_motion
from warpsim.io.usd.reader import read_usd
from warpsim.sim.simulator import Simulator
from warpsim.sim.start import Start

MJCF = """<mujoco model="zoo"><option timestep="0.005"/>
<worldbody><geom name="floor" type="plane" size="3 3 .1"/>
<body name="b/a" pos="0 0 .6"><freejoint name="root"/><geom name="trunk" type="box" size=".2 .1 .1"/>
  <body name="leg" pos=".2 0 0"><joint name="roll" axis="1 0 0" ref="20"/>
    <joint name="pitch" axis="0 1 0" pos="0 0 .05"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".04"/>
    <body name="foot" pos="0 0 -.3"><joint name="ankle" type="ball"/><geom size=".06"/></body></body></body>
<body name="cart" pos="0 1 .3"><joint name="rail" type="slide" axis="0 1 0"/><geom size=".1"/></body>
</worldbody></mujoco>"""
URDF = """<robot name="r">
<link name="base"><inertial><mass value="1"/><inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><geometry><box size=".2 .2 .2"/></geometry></collision></link>
<link name="arm"><inertial><origin xyz="0 .3 0"/><mass value="1"/>
  <inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><origin xyz="0 .3 0"/><geometry><sphere radius=".1"/></geometry></collision></link>
<joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="1 0 0"/></joint></robot>"""
STEPS = 40


@pytest.fixture
def robot(tmp_path):
    path = tmp_path / "robot.xml"
    path.write_text(MJCF)
    return path


def mujoco_bodies(path, steps: int) -> dict[str, np.ndarray]:
    """World poses (4, 4) of all bodies after some steps, by MuJoCo."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    for _ in range(steps):
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    poses = {}
    for body in range(1, model.nbody):
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = data.xmat[body].reshape(3, 3), data.xpos[body]
        poses[model.body(body).name] = pose
    return poses


def shown(stage: Usd.Stage, code: float) -> dict[str, np.ndarray]:
    cache = UsdGeom.XformCache(code)
    return {p.GetName(): np.array(cache.GetLocalToWorldTransform(p)).T for p in stage.Traverse()}


def test_an_mjcf_motion_is_saved_as_usd_in_one_call(robot, tmp_path):
    trajectory = Simulator(robot).rollout(STEPS)
    files = trajectory.save(tmp_path / "out.usda")
    assert [f.name for f in files] == ["out.usda", "out.animation.usdc", "out.scene.usdc"]
    assert all(f.is_file() for f in files) and robot.read_text() == MJCF
    stage = Usd.Stage.Open(str(files[0]))
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode(), stage.GetTimeCodesPerSecond()) == (0, STEPS, 200)
    found = shown(stage, STEPS)
    for name, pose in mujoco_bodies(robot, STEPS).items():
        np.testing.assert_allclose(found[name.replace("b/a", "a")], pose, atol=1e-6, err_msg=name)
    context = UsdValidation.ValidationContext(UsdValidation.ValidationRegistry().GetOrLoadAllValidators())
    assert [e.GetMessage() for e in context.Validate(stage)] == []


def test_the_result_loads_again_where_the_motion_started(robot, tmp_path):
    sim = Simulator(robot)
    sim.reset(start=Start(position_noise=0.1, velocity_noise=0.1, seed=3))
    trajectory = sim.rollout(STEPS)
    trajectory.save(tmp_path / "out.usda")
    again = Simulator(tmp_path / "out.usda").rollout(STEPS)
    assert again.q.shape == trajectory.q.shape
    for name, short in (("rail", "rail"), ("pitch", "pitch"), ("ankle", "ankle")):
        (path,) = [n for n in (j.name for j in read_usd(tmp_path / "out.usda").joints) if n.endswith(f"/{short}")]
        np.testing.assert_allclose(again.joint_position(path), trajectory.joint_position(name), atol=1e-4)


def test_a_scene_from_python_is_saved_too(robot, tmp_path):
    trajectory = Simulator(load_scene(robot)).rollout(3)
    assert len(trajectory.save(tmp_path / "out.usdc")) == 3


def test_what_usd_cannot_hold_is_said(tmp_path):
    path = tmp_path / "pair.xml"
    path.write_text(MJCF.replace("</worldbody>", '</worldbody><contact><pair geom1="floor" geom2="trunk"/></contact>'))
    with pytest.warns(UnsupportedPhysicsWarning, match="the whole motion, but of the scene it lacks pair"):
        Simulator(path).rollout(2).save(tmp_path / "out.usda")


@pytest.mark.parametrize(("name", "text"), [("robot.xml", MJCF), ("robot.urdf", URDF)])
def test_the_commands_simulate_and_render(tmp_path, capsys, name, text):
    (tmp_path / name).write_text(text)
    run = [
        "simulate",
        str(tmp_path / name),
        "--seconds",
        ".1",
        "--quiet",
        "--lenient",
        "-o",
        str(tmp_path / "out.usda"),
    ]
    assert main(run) == 0
    written = capsys.readouterr().out
    assert all(f"wrote {tmp_path / file}" in written for file in ("out.usda", "out.scene.usdc", "out.npz"))
    films = []
    for what in (["out.usda"], ["out.npz", "--scene", str(tmp_path / name)]):
        film = tmp_path / f"{what[0]}.gif"
        source = [str(tmp_path / what[0]), *what[1:]]
        assert main(["render", *source, "-o", str(film), "--size", "60x40", "--frames", "3", "--quiet"]) == 0
        with Image.open(film) as frames:
            assert frames.n_frames == 3
            films.append([np.array((frames.seek(k), frames.convert("RGB"))[1]) for k in range(3)])
    np.testing.assert_array_equal(*films)
    assert (films[0][0] != films[0][-1]).any(), "nothing moves"


def test_saved_arrays_over_a_usd_scene_show_each_world(robot, tmp_path):
    Simulator(robot).rollout(2).save(tmp_path / "scene.usda")
    sim = Simulator(tmp_path / "scene.usda", worlds=2)
    sim.reset(start=Start(position_noise=0.2, seed=1))
    trajectory = sim.rollout(4)
    trajectory.save(tmp_path / "run.npz")
    scene = read_usd(tmp_path / "scene.usda")
    for world in (0, 1):
        motion = read_motion(tmp_path / "run.npz", scene, world=world)
        truth = trajectory.motion(world)
        for field in ("times", "q", "qd", "positions", "rotations"):
            np.testing.assert_array_equal(getattr(motion, field), getattr(truth, field))
    with pytest.raises(InputError, match="world 2 of 2"):
        read_motion(tmp_path / "run.npz", scene, world=2)


def test_wrong_files_are_refused(robot, tmp_path, capsys):
    Simulator(robot).rollout(2).save(tmp_path / "run.npz")
    scene = load_scene(robot)
    (tmp_path / "cut.npz").write_bytes((tmp_path / "run.npz").read_bytes()[:200])
    (tmp_path / "empty.npz").write_bytes(b"")
    for name in ("cut.npz", "empty.npz"):
        with pytest.raises(InputError, match="damaged"):
            read_motion(tmp_path / name, scene)
    Simulator(robot, outputs=()).rollout(2).save(tmp_path / "bare.npz")
    with pytest.raises(InputError, match="lacks body_position, body_rotation"):
        read_motion(tmp_path / "bare.npz", scene)
    (tmp_path / "other.xml").write_text(MJCF.replace('"leg"', '"arm"'))
    with pytest.raises(InputError, match="not a motion of this scene: it has no body 'arm'"):
        read_motion(tmp_path / "run.npz", load_scene(tmp_path / "other.xml"))
    for arguments, message in (
        ([tmp_path / "run.npz"], "--scene"),
        ([robot, "--scene", robot], "go with a motion saved as .npz"),
        ([tmp_path / "none.npz", "--scene", robot], "no file"),
    ):
        assert main(["render", *map(str, arguments), "-o", str(tmp_path / "x.gif")]) == 1
        assert message in capsys.readouterr().err
