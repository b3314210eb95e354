"""Writing motion back: results over an untouched source, reloadable, valid, in the stage's own units and axes."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from pxr import Gf, Usd, UsdGeom, UsdPhysics, UsdValidation

from mujoco_oracle import initial_state, to_mujoco
from scene_compare import differences
from warpsim.core.errors import InputError, OutputError
from warpsim.io.usd import author
from warpsim.io.usd.motion import ContactFrame, Motion
from warpsim.io.usd.reader import read_usd
from warpsim.io.usd.writer import OptimizedValue, write_result


def validation_errors(stage) -> list[str]:
    context = UsdValidation.ValidationContext(UsdValidation.ValidationRegistry().GetOrLoadAllValidators())
    return [f"{error.GetName()}: {error.GetMessage()}" for error in context.Validate(stage)]


def rollout(scene, frames: int, seed: int = 3) -> Motion:
    """A rollout by MuJoCo from a kicked start."""
    model = to_mujoco(scene, approximate=True)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = initial_state(scene, model)
    data.qvel[:] += np.random.default_rng(seed).normal(size=model.nv)
    rows: list[list[np.ndarray]] = [[] for _ in range(7)]
    for frame in range(frames):
        mujoco.mj_forward(model, data)
        twists = np.zeros((model.nbody, 6))
        for body in range(1, model.nbody):
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body, twists[body], 0)
        values = (
            frame * model.opt.timestep,
            data.qpos,
            data.qvel,
            data.xpos[1:],
            data.xquat[1:],
            twists[1:, 3:],
            twists[1:, :3],
        )
        for row, value in zip(rows, values, strict=True):
            row.append(np.array(value))
        mujoco.mj_step(model, data)
    return Motion(*map(np.array, rows))


def robot(*, length=1.0, up="Z"):
    """Nested and flat bodies, a free base, a compound, a ball, a scaled parent."""
    u = 1.0 / length
    stage = author.new_stage(meters_per_unit=length, up_axis=up)
    turn = (1, 0, 0, 0) if up == "Z" else (np.sqrt(0.5), -np.sqrt(0.5), 0, 0)
    root = author.frame(author.world(stage), "Root", rotation=turn)
    author.physics_scene(stage, gravity=9.81 * u, steps_per_second=500)
    base = author.body(root, "Base", position=(0, 0, 2 * u), articulation_root=True)
    author.box(base, "Box", (0.2 * u, 0.1 * u, 0.1 * u), mass=2)
    upper = author.body(base, "Upper", position=(0.2 * u, 0, 0))
    author.capsule(upper, "Rod", 0.03 * u, 0.3 * u, axis="X", position=(0.2 * u, 0, 0), mass=1)
    for axis in "ZY":
        author.revolute(upper, f"Turn{axis}", base, upper, axis)
    lower = author.body(root, "Lower", position=(0.6 * u, 0, 2 * u))
    author.sphere(lower, "Ball", 0.1 * u, position=(0.1 * u, 0, 0), mass=1)
    author.spherical(root, "Wrist", upper, lower)
    author.move(upper, rotation=(np.cos(0.2), 0, 0, np.sin(0.2)))
    author.move(lower, position=np.array([0.2 + 0.4 * np.cos(0.4), 0.4 * np.sin(0.4), 2]) * u)
    return stage


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "robot.usda"
    author.save(robot(), path)
    return path


@pytest.mark.parametrize(("length", "up"), [(1.0, "Z"), (0.01, "Y"), (0.001, "Z")])
def test_poses_come_back_in_stage_units(tmp_path, length, up):
    """World poses of the written stage, converted by hand, are the rollout's, at every frame."""
    path = tmp_path / "robot.usda"
    author.save(robot(length=length, up=up), path)
    scene = read_usd(path)
    motion = rollout(scene, 20)
    write_result(tmp_path / "out.usda", path, scene, motion)
    stage = Usd.Stage.Open(str(tmp_path / "out.usda"))
    assert UsdGeom.GetStageMetersPerUnit(stage) == length
    assert UsdGeom.GetStageUpAxis(stage) == up
    to_z_up = np.eye(3) if up == "Z" else np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]])
    for frame in (0, 7, 19):
        cache = UsdGeom.XformCache(Usd.TimeCode(frame))
        for index, body in enumerate(scene.bodies):
            matrix = np.array(cache.GetLocalToWorldTransform(stage.GetPrimAtPath(body.name))).T
            np.testing.assert_allclose(length * to_z_up @ matrix[:3, 3], motion.positions[frame, index], atol=1e-9)
            quaternion = Gf.Matrix3d((to_z_up @ matrix[:3, :3]).T.tolist()).ExtractRotation().GetQuat()
            found = np.array([quaternion.GetReal(), *quaternion.GetImaginary()])
            assert abs(found @ motion.rotations[frame, index]) == pytest.approx(1, abs=1e-9)


def test_reload_gives_the_first_state_exactly(tmp_path, source):
    scene = read_usd(source, strict=True)
    motion = rollout(scene, 5)
    write_result(tmp_path / "out.usda", source, scene, motion)
    for frame, time in ((0, None), (0, 0.0), (3, 3.0)):
        again = read_usd(tmp_path / "out.usda", strict=True, time=time)
        q = np.concatenate([joint.initial_q for joint in again.joints])
        qd = np.concatenate([joint.initial_qd for joint in again.joints])
        assert np.array_equal(q, motion.q[frame])
        assert np.array_equal(qd, motion.qd[frame])
    again = read_usd(tmp_path / "out.usda")
    for joint in (*again.joints, *scene.joints):
        joint.initial_q = joint.initial_qd = None
    assert differences(scene, again, tolerance=0) == []


def test_source_is_untouched_and_default_pose_survives(tmp_path, source):
    before = source.read_bytes()
    scene = read_usd(source)
    motion = rollout(scene, 5)
    files = write_result(tmp_path / "out.usda", source, scene, motion, provenance={"seed": 3, "loss": [2.0, 1.0]})
    assert source.read_bytes() == before
    assert [path.name for path in files] == ["out.usda", "out.animation.usdc"]
    original, result = Usd.Stage.Open(str(source)), Usd.Stage.Open(str(files[0]))
    for body in scene.bodies:
        for name in ("xformOp:translate", "xformOp:orient"):
            ours = result.GetPrimAtPath(body.name).GetAttribute(name)
            assert ours.Get() == original.GetPrimAtPath(body.name).GetAttribute(name).Get()
            assert ours.GetNumTimeSamples() == 5
    layer = result.GetRootLayer()
    assert list(layer.subLayerPaths) == ["./out.animation.usdc", "./robot.usda"]
    assert (layer.timeCodesPerSecond, layer.startTimeCode, layer.endTimeCode) == (500, 0, 4)
    assert layer.customLayerData["warpsim"]["seed"] == 3
    assert list(layer.customLayerData["warpsim"]["loss"]) == [2.0, 1.0]


def test_results_are_valid(tmp_path, source):
    scene = read_usd(source)
    motion = rollout(scene, 5)
    motion.contacts = [ContactFrame(np.ones((n, 3)), np.ones((n, 3))) for n in (0, 1, 2, 1, 0)]
    values = [OptimizedValue("/World/Root/Base/Box", "physics:mass", 3.0, initial=2.0, gradient=-0.5)]
    write_result(tmp_path / "out.usda", source, scene, motion, values=values)
    stage = Usd.Stage.Open(str(tmp_path / "out.usda"))
    assert validation_errors(stage) == []
    assert UsdGeom.Points(stage.GetPrimAtPath("/World/Contacts/Points")).GetPointsAttr().Get(2.0)[1] == Gf.Vec3f(
        1, 1, 1
    )


def test_velocities(tmp_path, source):
    """In the body's frame, and degrees."""
    scene = read_usd(source)
    motion = rollout(scene, 3)
    write_result(tmp_path / "out.usda", source, scene, motion)
    stage = Usd.Stage.Open(str(tmp_path / "out.usda"))
    base = stage.GetPrimAtPath("/World/Root/Base")
    spin = np.array(UsdPhysics.RigidBodyAPI(base).GetAngularVelocityAttr().Get(2.0)) * np.pi / 180
    np.testing.assert_allclose(spin, motion.qd[2, 3:6], rtol=1e-5, atol=1e-6)


def test_optimized_values(tmp_path, source):
    scene = read_usd(source)
    values = [
        OptimizedValue("/World/Root/Base/Box", "physics:mass", np.float64(3.0), initial=2.0, gradient=-0.5),
        OptimizedValue("/World/Root/Base", "xformOp:translate", np.array([1.0, 2.0, 3.0])),
    ]
    files = write_result(tmp_path / "best.usda", source, scene, values=values)
    assert [path.name for path in files] == ["best.usda", "best.values.usda"]
    stage = Usd.Stage.Open(str(files[0]))
    attribute = stage.GetAttributeAtPath("/World/Root/Base/Box.physics:mass")
    assert attribute.Get() == 3.0
    assert attribute.GetCustomDataByKey("warpsim:gradient") == -0.5
    again = read_usd(files[0])
    np.testing.assert_allclose(again.bodies[0].position, [1, 2, 3])
    with pytest.raises(InputError, match="nothing:here"):
        write_result(tmp_path / "x.usda", source, scene, values=[OptimizedValue("/World", "nothing:here", 1.0)])


def test_other_op_stacks_become_matrices(tmp_path):
    """Euler angles cannot take the samples: one matrix op does, its default the authored pose."""
    stage = author.new_stage()
    body = author.body(author.world(stage), "Body", mass=1)
    xformable = UsdGeom.Xformable(body)
    xformable.ClearXformOpOrder()
    xformable.AddTranslateOp(opSuffix="a").Set(Gf.Vec3d(1, 2, 3))
    xformable.AddRotateXYZOp().Set(Gf.Vec3f(10, 20, 30))
    author.save(stage, tmp_path / "source.usda")
    scene = read_usd(tmp_path / "source.usda")
    motion = rollout(scene, 3)
    write_result(tmp_path / "out.usda", tmp_path / "source.usda", scene, motion)
    result = Usd.Stage.Open(str(tmp_path / "out.usda"))
    default = UsdGeom.XformCache().GetLocalToWorldTransform(result.GetPrimAtPath("/World/Body"))
    authored = UsdGeom.XformCache().GetLocalToWorldTransform(body)
    np.testing.assert_allclose(np.array(default), np.array(authored), atol=1e-12)
    moved = UsdGeom.XformCache(Usd.TimeCode(2)).GetLocalToWorldTransform(result.GetPrimAtPath("/World/Body"))
    np.testing.assert_allclose(np.array(moved.ExtractTranslation()), motion.positions[2, 0], atol=1e-9)
    assert validation_errors(result) == []


def test_instances_are_opened(tmp_path):
    part = author.new_stage()
    ball = author.body(author.world(part), "Ball", mass=1)
    author.sphere(ball, "Shape", 0.1)
    author.save(part, tmp_path / "part.usda")
    stage = author.new_stage()
    author.save(stage, tmp_path / "source.usda")
    stage = Usd.Stage.Open(str(tmp_path / "source.usda"))
    for name, x in (("One", 0), ("Two", 1)):
        author.reference(author.world(stage), name, "./part.usda", position=(x, 0, 0), instanceable=True)
    stage.GetRootLayer().Save()
    scene = read_usd(tmp_path / "source.usda", strict=True)
    assert [body.name for body in scene.bodies] == ["/World/One/Ball", "/World/Two/Ball"]
    motion = rollout(scene, 3)
    write_result(tmp_path / "out.usda", tmp_path / "source.usda", scene, motion)
    result = Usd.Stage.Open(str(tmp_path / "out.usda"))
    for index, body in enumerate(scene.bodies):
        pose = UsdGeom.XformCache(Usd.TimeCode(2)).GetLocalToWorldTransform(result.GetPrimAtPath(body.name))
        np.testing.assert_allclose(np.array(pose.ExtractTranslation()), motion.positions[2, index], atol=1e-9)


def test_wrong_motions_are_refused(tmp_path, source):
    scene = read_usd(source)
    motion = rollout(scene, 3)
    for field, value in (
        ("q", motion.q[:, 1:]),
        ("positions", motion.positions * np.nan),
        ("times", motion.times[::-1]),
        ("contacts", []),
    ):
        bad = Motion(**{**motion.__dict__, field: value})
        with pytest.raises(InputError, match=field):
            write_result(tmp_path / "out.usda", source, scene, bad)
    with pytest.raises(OutputError, match="nothing is ever written over"):
        write_result(source, source, scene, motion)
    with pytest.raises(InputError, match="save it first"):
        write_result(tmp_path / "out.usda", robot(), scene, motion)


@pytest.mark.parametrize("suffix", ["usda", "usdc"])
def test_a_second_result_at_one_path_is_what_a_stage_held_open_shows(tmp_path, source, suffix):
    """USD hands out layers it already holds: an overwritten file has to be read anew."""
    scene = read_usd(source)
    path = tmp_path / f"result.{suffix}"
    write_result(path, source, scene, rollout(scene, 3, seed=1))
    held = Usd.Stage.Open(str(path))
    before = read_usd(path)
    second = rollout(scene, 5, seed=2)
    write_result(path, source, scene, second)
    after = read_usd(path)
    start = np.concatenate([joint.initial_qd for joint in after.joints])
    np.testing.assert_array_equal(start, second.qd[0])
    assert not np.array_equal(start, np.concatenate([joint.initial_qd for joint in before.joints]))
    assert held.GetEndTimeCode() == 4
    base = held.GetPrimAtPath("/World/Root/Base").GetAttribute("physics:velocity")
    assert len(base.GetTimeSamples()) == 5


def test_a_stage_saved_twice_is_read_as_saved_last(tmp_path):
    path = tmp_path / "robot.usda"
    author.save(robot(), path)
    held = Usd.Stage.Open(str(path))
    stage = robot()
    author.body(author.world(stage), "Another", mass=1.0)
    author.save(stage, path)
    assert held.GetPrimAtPath("/World/Another")
    assert len(read_usd(path).bodies) == 4


def test_motion_beside_what_the_source_animates(tmp_path):
    """At a start code, frames are at the source's own rate from there, and its own samples stay where they were."""
    stage = robot()
    stage.SetTimeCodesPerSecond(60)
    lamp = UsdGeom.Xform.Define(stage, "/World/Lamp").AddTranslateOp()
    for code in (8.0, 40.0):
        lamp.Set(Gf.Vec3d(code, 0, 0), code)
    path = tmp_path / "robot.usda"
    author.save(stage, path)
    scene = read_usd(path)
    motion = rollout(scene, 5)
    write_result(tmp_path / "out.usda", path, scene, motion, start_code=8.0)
    result = Usd.Stage.Open(str(tmp_path / "out.usda"))
    codes = 8.0 + 60.0 * motion.times  # 2 ms a frame: not whole numbers
    assert (result.GetTimeCodesPerSecond(), result.GetFramesPerSecond()) == (60, 60)
    assert (result.GetStartTimeCode(), result.GetEndTimeCode()) == (8.0, codes[-1])
    base = result.GetPrimAtPath(scene.bodies[0].name)
    samples = base.GetAttribute("xformOp:translate").GetTimeSamples()
    np.testing.assert_allclose(samples, codes, rtol=1e-12)
    for frame, code in enumerate(codes):
        matrix = UsdGeom.XformCache(Usd.TimeCode(code)).GetLocalToWorldTransform(base)
        np.testing.assert_allclose(matrix.ExtractTranslation(), motion.positions[frame, 0], atol=1e-9)
    moved = result.GetAttributeAtPath("/World/Lamp.xformOp:translate")
    assert moved.GetTimeSamples() == [8.0, 40.0] and moved.Get(24.0) == Gf.Vec3d(24.0, 0, 0)
