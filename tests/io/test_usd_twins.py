"""Real robots, read from USD here and from their MJCF originals by MuJoCo, are the same robots."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import mujoco
import numpy as np
import pytest
from pxr import Usd

from mujoco_oracle import initial_state, to_mujoco
from shape_mass import solid
from warpsim.collision.pairs import collision_pairs
from warpsim.io.mjcf import read_mjcf
from warpsim.io.usd.reader import read_usd
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.scene import Scene
from warpsim.scene.ledger import unsupported
from warpsim.sim.simulator import Simulator

ROBOTS = (
    "brax_ant",
    "brax_cartpole",
    "brax_hopper",
    "brax_walker2d",
    "franka_emika_panda",
    "mujoco_humanoid",
    "skydio_x2",
    "so_arm100",
    "unitree_a1",
)
FLOAT32 = 1e-6
"""UsdPhysics' attributes are float32."""


def twins(assets: Path, robot: str):
    original = mujoco.MjModel.from_xml_path(str(next((assets / robot / "mjcf").glob("*.xml"))))
    scene = read_usd(next((assets / robot / "usd").glob("*.usda")))
    return original, scene, to_mujoco(scene, approximate=True)


def inertia(model: mujoco.MjModel, body: int) -> np.ndarray:
    """(3, 3) about the center of mass, in the body's axes."""
    axes = np.zeros(9)
    mujoco.mju_quat2Mat(axes, model.body_iquat[body])
    axes = axes.reshape(3, 3)
    return axes @ np.diag(model.body_inertia[body]) @ axes.T


def pole_orientation(assets: Path) -> np.ndarray:
    """The quaternion of the pole's capsule in the USD file, as it stands there."""
    stage = Usd.Stage.Open(str(next((assets / "brax_cartpole" / "usd").glob("*.usda"))))
    (pole,) = (prim for prim in stage.Traverse() if prim.GetName() == "cpole")
    q = pole.GetAttribute("xformOp:orient").Get()
    return np.array([q.GetReal(), *q.GetImaginary()])


def cartpole_as_written(assets: Path) -> mujoco.MjModel:
    """The original with the pole's capsule turned as the converter wrote it, see below."""
    spec = mujoco.MjSpec.from_file(str(next((assets / "brax_cartpole" / "mjcf").glob("*.xml"))))
    pole = next(geom for geom in spec.geoms if geom.name == "cpole")
    ends = np.array(pole.fromto).reshape(2, 3)
    pole.fromto = np.full(6, np.nan)
    pole.pos, pole.quat = ends.mean(axis=0), pole_orientation(assets)
    pole.size = [pole.size[0], 0.5 * np.linalg.norm(ends[1] - ends[0]), 0]
    return spec.compile()


def test_the_converter_rounded_the_cartpoles_tilt(assets_dir):
    """It rounded w = cos(θ/2) to float32 and made the rest of that: √(1 − w²) is 1.5 % off at so small an angle.

    So the file's pole leans 2.5e-5 rad further than the original's. What we make of the file's own numbers is exact.
    """
    w, x, y, z = pole_orientation(assets_dir)
    half = 0.5 * np.arctan2(0.001, 0.6)
    assert w == np.float32(np.cos(half))
    assert (x, z) == (0.0, 0.0)
    assert y == pytest.approx(np.sqrt(1.0 - w**2), rel=1e-5)
    assert 2.0 * (np.arctan2(y, w) - half) == pytest.approx(2.48e-5, rel=1e-2)
    model = compile_model(read_usd(next((assets_dir / "brax_cartpole" / "usd").glob("*.usda"))))
    Derivation(model).run()
    _, _, upright = solid("capsule", (0.049, 0.6000008333327546 / 2, 0.0))
    lean = 2.0 * np.arctan2(y, w)
    turn = np.array([[np.cos(lean), 0, np.sin(lean)], [0, 1, 0], [-np.sin(lean), 0, np.cos(lean)]])
    expected = 1000.0 * turn @ upright @ turn.T
    xx, yy, zz, xy, xz, yz = model.body.inertia.numpy()[0, 2]
    found = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    assert np.abs(found - expected).max() < 1e-9 * expected[0, 0]


@pytest.mark.parametrize("robot", ROBOTS)
def test_structure_and_parameters(assets_dir, robot):
    original, scene, ours = twins(assets_dir, robot)
    assert unsupported(scene.ledger) == []
    sizes = ("nq", "nv", "nu", "nbody", "njnt", "ntendon", "neq")
    assert [getattr(ours, n) for n in sizes] == [getattr(original, n) for n in sizes]
    weighed = cartpole_as_written(assets_dir) if robot == "brax_cartpole" else original
    moving = original.body_weldid > 0  # the converter left visual meshes out, which weigh on fixed bases
    np.testing.assert_allclose(ours.body_mass[moving], original.body_mass[moving], rtol=FLOAT32)
    for body in np.flatnonzero(moving):
        expected, found = inertia(weighed, body), inertia(ours, body)
        assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max(), original.body(body).name
    np.testing.assert_allclose(ours.body_ipos[moving], original.body_ipos[moving], atol=FLOAT32)
    np.testing.assert_allclose(ours.body_pos, original.body_pos, atol=FLOAT32)
    assert np.abs(np.einsum("bi,bi->b", ours.body_quat, original.body_quat)).min() > 1 - FLOAT32**2 * 10
    for field in ("dof_armature", "dof_frictionloss", "qpos_spring", "tendon_range", "actuator_gear"):
        np.testing.assert_allclose(
            getattr(ours, field), getattr(original, field), rtol=FLOAT32, atol=1e-9, err_msg=field
        )
    for field in ("actuator_gainprm", "actuator_biasprm", "actuator_ctrlrange", "actuator_forcerange"):
        np.testing.assert_allclose(
            getattr(ours, field), getattr(original, field), rtol=FLOAT32, atol=1e-7, err_msg=field
        )
    assert np.array_equal(ours.jnt_limited, original.jnt_limited)
    limited = original.jnt_limited.astype(bool)
    np.testing.assert_allclose(ours.jnt_range[limited], original.jnt_range[limited], rtol=FLOAT32, atol=1e-7)
    np.testing.assert_allclose(ours.jnt_stiffness, original.jnt_stiffness, rtol=FLOAT32)
    np.testing.assert_allclose(ours.dof_damping, original.dof_damping, rtol=FLOAT32)
    np.testing.assert_allclose(initial_state(scene, ours)[0], original.qpos0, atol=FLOAT32)
    assert scene.options.cone == mujoco.mjtCone(original.opt.cone).name.removeprefix("mjCONE_").lower()
    assert ours.opt.timestep == pytest.approx(original.opt.timestep)
    np.testing.assert_allclose(ours.opt.gravity, original.opt.gravity, rtol=FLOAT32)


@pytest.mark.parametrize("robot", ROBOTS)
def test_dynamics_at_random_states(assets_dir, robot, rng):
    original, _, ours = twins(assets_dir, robot)
    for _ in range(10):
        qpos, qvel = original.qpos0.copy(), rng.normal(size=original.nv)
        mujoco.mj_integratePos(original, qpos, rng.normal(size=original.nv), 1.0)
        control = rng.uniform(-1, 1, original.nu)
        results = []
        for model in (original, ours):
            data = mujoco.MjData(model)
            data.qpos[:], data.qvel[:], data.ctrl[:] = qpos, qvel, control
            mujoco.mj_forward(model, data)
            dense = np.full((model.nv, model.nv), np.nan)
            mujoco.mj_fullM(model, data, dense)
            results.append((dense, data.qfrc_bias, data.qfrc_passive, data.qfrc_actuator))
        for expected, found in zip(*results, strict=True):
            assert np.abs(found - expected).max() <= 1e-5 * max(np.abs(expected).max(), 1e-3)


def mujoco_path(
    model: mujoco.MjModel, qpos: np.ndarray, qvel: np.ndarray, control: np.ndarray, *, contacts: bool = False
) -> np.ndarray:
    """(steps, nq), without contact unless asked for."""
    if not contacts:
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    model.opt.iterations, model.opt.tolerance = 200, 1e-14
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = qpos, qvel
    path = []
    for step in control:
        data.ctrl[:] = step
        mujoco.mj_step(model, data)
        path.append(data.qpos.copy())
    return np.array(path)


def our_path(
    scene: Scene, qpos: np.ndarray, qvel: np.ndarray, control: np.ndarray, *, contacts: bool = False
) -> np.ndarray:
    """The same by ours."""
    scene.options.contacts = contacts
    sim = Simulator(scene, controls=("actuator",))
    return sim.rollout(controls=control, q=qpos, qd=qvel, outputs=()).numpy("q")[1:, 0]


@pytest.mark.parametrize("robot", ROBOTS)
def test_free_motion(assets_dir, robot, rng):
    """500 steps without contact: the original in MuJoCo, its twin in MuJoCo (only the reading differs) and in ours."""
    original, scene, rebuilt = twins(assets_dir, robot)
    assert len(scene.actuators) == original.nu
    start, speed = original.qpos0, 0.1 * rng.normal(size=original.nv)
    control = 0.1 * rng.uniform(-1, 1, (500, original.nu))
    truth = mujoco_path(original, start, speed, control)
    bound = 1e-4 * max(1.0, np.abs(truth).max())
    np.testing.assert_allclose(mujoco_path(rebuilt, start, speed, control), truth, atol=bound)
    np.testing.assert_allclose(our_path(scene, start, speed, control), truth, atol=bound)


@pytest.mark.parametrize("robot", ["brax_ant", "brax_hopper"])
def test_sliding_motion(assets_dir, robot):
    """100 steps of a robot that lands sliding: the file names no cone, and another than MuJoCo's default would show."""
    original, scene, _ = twins(assets_dir, robot)
    start, speed, control = original.qpos0, np.zeros(original.nv), np.zeros((100, original.nu))
    speed[0] = 1.0
    truth = mujoco_path(original, start, speed, control, contacts=True)
    assert np.abs(our_path(scene, start, speed, control, contacts=True) - truth).max() < 1e-6
    scene.options.cone = "elliptic"
    assert np.abs(our_path(scene, start, speed, control, contacts=True) - truth).max() > 1e-3


@pytest.mark.parametrize("robot", ["mujoco_humanoid", "unitree_a1", "so_arm100", "franka_emika_panda", "brax_hopper"])
def test_who_may_collide(assets_dir, robot):
    """As many pairs as in the original, where heads and hands are fixed to what arms hang on.

    `test_collision_pairs.py` has our reading of the originals against MuJoCo. Robots with masks are left out: those
    are not converted.
    """
    original = read_mjcf(next((assets_dir / robot / "mjcf").glob("*.xml")))
    scene = read_usd(next((assets_dir / robot / "usd").glob("*.usda")))
    assert len(collision_pairs(scene)) == len(collision_pairs(original)) > 0


@pytest.mark.parametrize(
    ("name", "bodies", "joints", "equalities"),
    [
        ("ant", 9, {"free": 1, "hinge": 8}, 0),
        ("boxes_fourbar", 4, {"free": 1, "hinge": 3}, 1),
        ("cartpole", 4, {"slide": 1, "hinge": 2}, 0),
        ("humanoid", 16, {"free": 1, "hinge": 21}, 0),
    ],
)
def test_plain_usd_files_load(assets_dir, name, bodies, joints, equalities):
    scene = read_usd(assets_dir / "newton" / f"{name}.usda")
    assert len(scene.bodies) == bodies
    assert Counter(joint.kind for joint in scene.joints) == joints
    assert len(scene.equalities) == equalities
    trajectory = Simulator(scene).rollout(steps=20, outputs=("constraint_error",))
    assert np.isfinite(trajectory.numpy("q")).all()
    if equalities:
        assert 0.0 < trajectory.numpy("constraint_error").max() < 1e-3
        np.testing.assert_allclose(scene.equalities[0].limits[4], np.radians([-45.0, 45.0]))
