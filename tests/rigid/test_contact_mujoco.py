"""Accelerations and contact forces against MuJoCo in float64, its solver set to converge.

Contacts are MuJoCo's where shapes of a pair are found by different methods (meshes, curved convex pairs), so that only
the rows and the solver are compared; robots of capsules, spheres and boxes on a plane use their own.
"""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

from contact_support import Sample, ask_mujoco, ask_ours, converging, given_contacts, touching_states
from finite_differences import relative_error
from mujoco_oracle import to_mujoco
from rigid_support import ROBOTS, scene_of
from warpsim.io.usd.reader import read_usd
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.step.program import RigidProgram
from warpsim.tape.checkpointed import CheckpointedTape
from warpsim.tape.memory import Memory

TOLERANCE = 1e-10
QUICK, FULL = 4, 500
NUDGE = 1e-12
CONES = ("elliptic", "pyramidal")
BATCH = 50
SCENES = [
    Path(__file__).resolve().parents[2] / "scenes" / f"{name}.usda"
    for name in (
        *("arm", "bounce", "bowl", "cartpole", "drag", "humanoid", "incline", "push", "quadrotor", "quadruped"),
        *("stack", "throw", "tumble_shot", "workbench"),
    )
]
"""Ours in which something touches or has limits, without those that differ from one of these in their task alone."""
SHIFTS = {"bounce": (2, -0.21), "cartpole": (0, 1.97), "tumble_shot": (2, -0.2)}
"""What would seldom touch starts nearer to the floor, or to the end of its rail."""
ROLLING = [path for path in SCENES if path.stem in ("cartpole", "drag", "humanoid", "quadrotor", "quadruped", "throw")]
"""Whose contacts have a closed form that is MuJoCo's too, so that whole motions can be compared."""
WALKERS = [path for path in ROBOTS if path.stem in ("ant", "hopper", "walker2d", "humanoid")]

OBJECTS = """
<mujoco>
  <option timestep="0.002" impratio="{impratio}"/>
  <default><geom condim="{condim}" friction="0.6 0.02 0.01" solref="0.015 0.8" solimp="0.8 0.97 0.004 0.4 3"/></default>
  <worldbody>
    <geom type="plane" size="5 5 1" friction="0.4 0.01 0.003"/>
    <body pos="0 0 0.09"><freejoint/><geom type="sphere" size="0.1"/></body>
    <body pos="0.05 0.02 0.27"><freejoint/><geom type="capsule" size="0.07 0.1" euler="0 80 0" margin="0.01"/></body>
    <body pos="0.6 0 0.14"><freejoint/><geom type="box" size="0.1 0.2 0.15" solref="-900 -40"/></body>
    <body pos="0.62 0 0.34"><freejoint/><geom type="box" size="0.08 0.1 0.06" euler="5 3 20"/></body>
    <body pos="-0.6 0 0.11"><freejoint/><geom type="cylinder" size="0.1 0.12" priority="1"/></body>
    <body pos="0 0.7 0.1"><freejoint/><geom type="ellipsoid" size="0.1 0.15 0.12" solmix="3"/></body>
  </worldbody>
</mujoco>
"""

JOINTS = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <body pos="0 0 1">
      <joint type="hinge" axis="0 1 0" range="-20 25" limited="true" frictionloss="0.4" margin="0.05"/>
      <geom type="capsule" size="0.05 0.2" contype="0" conaffinity="0"/>
      <body pos="0 0 0.4">
        <joint type="ball" range="0 15" limited="true" frictionloss="0.1" solreflimit="0.03 0.7"/>
        <geom type="capsule" size="0.04 0.15" contype="0" conaffinity="0"/>
        <body pos="0.1 0 0.2">
          <joint type="slide" axis="1 0.3 0" range="-0.02 0.01" limited="true" solimplimit="0.7 0.98 0.01 0.3 2"/>
          <joint type="hinge" axis="1 0 0" frictionloss="0.02" solreffriction="0.05 1"/>
          <geom type="box" size="0.05 0.1 0.02" contype="0" conaffinity="0"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def assert_same(model: mujoco.MjModel, sample: Sample, where: str, *, own_contacts: bool) -> None:
    scene = scene_of(model)
    scene.options.solver_tolerance = 1e-14
    scene.options.max_contacts = max([len(c) for c in sample.contacts] + [1]) + 8
    if own_contacts:
        ours = ask_ours(scene, sample)
        assert (ours.count == [len(c) for c in sample.contacts]).all(), where
    else:
        with given_contacts(sample):
            ours = ask_ours(scene, sample)
    for k in range(len(sample.q)):
        assert relative_error(ours.qacc[k], sample.qacc[k]) < TOLERANCE, (where, k, ours.status[k])
        if np.abs(sample.shape_force[k]).max() > 0.0:
            bar = TOLERANCE + 4.0 * sample.rounding[k]
            assert relative_error(ours.shape_force[k], sample.shape_force[k]) < bar, (where, k, ours.status[k])


def floored(path: Path) -> mujoco.MjModel:
    """A robot of the assets, or a scene of our own; robots whose file has no floor get one."""
    if path.suffix == ".usda":
        return to_mujoco(read_usd(path), approximate=True)
    spec = mujoco.MjSpec.from_file(str(path))
    if not any(geom.type == mujoco.mjtGeom.mjGEOM_PLANE for geom in spec.geoms):
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 1])
    return spec.compile()


def check_robot(path: Path, cone: str, count: int) -> None:
    model = converging(floored(path), cone)
    sample = ask_mujoco(model, touching_states(model, count, 0, shift=SHIFTS.get(path.stem, (0, 0.0))))
    for first in range(0, count, BATCH):  # all at once would take gigabytes
        part = replace(sample, **{f.name: getattr(sample, f.name)[first : first + BATCH] for f in fields(sample)})
        assert_same(model, part, f"{path.stem} {cone} {first}", own_contacts=path in WALKERS)


@pytest.mark.parametrize("path", ROBOTS, ids=lambda path: path.stem)
def test_robots_in_contact(path):
    check_robot(path, "elliptic", QUICK)


@pytest.mark.parametrize("path", SCENES, ids=lambda path: path.stem)
def test_scenes_in_contact(path):
    check_robot(path, "elliptic", QUICK)


@pytest.mark.parametrize("path", WALKERS, ids=lambda path: path.stem)
def test_robots_in_contact_with_pyramids(path):
    check_robot(path, "pyramidal", QUICK)


@pytest.mark.long
@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("path", [*ROBOTS, *SCENES], ids=lambda path: path.stem)
def test_robots_in_many_contact_states(path, cone):
    check_robot(path, cone, FULL)


def check_objects(cone: str, condim: int, count: int) -> None:
    model = mujoco.MjModel.from_xml_string(OBJECTS.format(condim=condim, impratio=1 + condim / 2))
    converging(model, cone)
    states = touching_states(model, count, condim, run=5, speed=0.05)
    assert_same(model, ask_mujoco(model, states), f"objects {cone} {condim}", own_contacts=False)


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("condim", [1, 3, 4, 6])
def test_sliding_rolling_and_resting_objects(cone, condim):
    check_objects(cone, condim, QUICK)


@pytest.mark.long
@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("condim", [1, 3, 4, 6])
def test_many_sliding_rolling_and_resting_objects(cone, condim):
    check_objects(cone, condim, FULL)


def joint_states(model: mujoco.MjModel, count: int) -> list[tuple[np.ndarray, ...]]:
    """Joints about their limits, on both sides, slow enough for dry friction to hold some of them."""
    rng = np.random.default_rng(8)
    states = []
    for k in range(count):
        ball = rng.normal(size=3)
        ball *= rng.uniform(0.1, 0.5) / np.linalg.norm(ball)
        quaternion = np.append(np.cos(np.linalg.norm(ball) / 2), np.sin(np.linalg.norm(ball) / 2) * ball)
        quaternion /= np.linalg.norm(quaternion)
        qpos = np.concatenate([rng.uniform(-0.5, 0.5, 1), quaternion, rng.uniform(-0.04, 0.03, 1), rng.normal(size=1)])
        speed = (0.0, 1e-4, 1.0)[k % 3]
        states.append((qpos, speed * rng.normal(size=model.nv), np.zeros(0), np.zeros(0)))
    return states


@pytest.mark.parametrize("count", [20, pytest.param(500, marks=pytest.mark.long)])
def test_joint_limits_and_dry_friction(count):
    model = converging(mujoco.MjModel.from_xml_string(JOINTS))
    sample = ask_mujoco(model, joint_states(model, count))
    assert_same(model, sample, "joints", own_contacts=True)


def pile(bodies: int) -> mujoco.MjModel:
    """Boxes, spheres and capsules that fall in layers of 25 onto a floor."""
    rng, spec = np.random.default_rng(0), mujoco.MjSpec()
    spec.option.timestep = 0.004
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 1])
    kinds = (
        (mujoco.mjtGeom.mjGEOM_BOX, 0.1),
        (mujoco.mjtGeom.mjGEOM_SPHERE, 0.1),
        (mujoco.mjtGeom.mjGEOM_CAPSULE, 0.04),
    )
    for k in range(bodies):
        layer, place = divmod(k, 25)
        x, y = 0.24 * np.array(divmod(place, 5)) + rng.uniform(-0.015, 0.015, 2)
        body = spec.worldbody.add_body(pos=[x, y, 0.11 + 0.23 * layer])
        body.add_freejoint()
        kind, length = kinds[k % 3]
        body.add_geom(type=kind, size=[0.1 if length == 0.1 else 0.06, length, length])
    return converging(spec.compile())


@pytest.mark.long
def test_two_hundred_free_bodies():
    """A pile as it lands and as it settles."""
    model = pile(200)
    data, states = mujoco.MjData(model), []
    model.opt.tolerance = 1e-8
    for step in range(251):
        if step % 50 == 0 and step:
            states.append((data.qpos.copy(), data.qvel.copy(), np.zeros(0), np.zeros(0)))
        mujoco.mj_step(model, data)
    model.opt.tolerance = 0.0
    sample = ask_mujoco(model, states)
    assert max(len(contacts) for contacts in sample.contacts) > 200
    assert_same(model, sample, "pile", own_contacts=False)


def mujoco_rollout(model: mujoco.MjModel, q: np.ndarray, qd: np.ndarray, ctrl: np.ndarray) -> np.ndarray:
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q, qd
    path = []
    for row in ctrl:
        data.ctrl[:] = row
        mujoco.mj_step(model, data)
        path.append(np.concatenate([data.qpos, data.qvel]))
    return np.array(path)


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize(
    "path",
    [*WALKERS, *(pytest.param(path, marks=pytest.mark.long, id=f"scene {path.stem}") for path in ROLLING)],
    ids=lambda path: path.stem,
)
def test_rollouts_part_no_faster_than_mujoco_from_itself(path, cone):
    """200 steps; MuJoCo started 1e-12 aside bounds how far any two exact solvers can be expected to agree."""
    steps = 200
    model = converging(floored(path), cone)
    q, qd, _, _ = touching_states(model, 1, 3, run=100, shift=SHIFTS.get(path.stem, (0, 0.0)))[0]
    rng = np.random.default_rng(4)
    ctrl = 0.5 * rng.normal(size=(steps, model.nu))
    theirs = mujoco_rollout(model, q, qd, ctrl)
    # the state is nudged in every coordinate that has no unit length to keep
    spread = np.zeros(steps)
    for seed in range(3):
        nudge = NUDGE * np.random.default_rng([seed, 5]).normal(size=model.nv)
        nudged = q.copy()
        mujoco.mj_integratePos(model, nudged, nudge, 1.0)
        spread = np.maximum(spread, np.abs(mujoco_rollout(model, nudged, qd, ctrl) - theirs).max(1))
    compiled = compile_model(scene_of(model))
    Derivation(compiled).run()
    inputs = {"actuator": ctrl[:, None]} if model.nu else {}
    tape = CheckpointedTape(RigidProgram(compiled, controls=tuple(inputs)), steps=steps, memory=Memory(segment=4))
    start = {"q": q[None], "qd": qd[None], "warm_start": np.zeros((1, model.nv))}
    with tape.forward(start, inputs, keep_states=True, differentiate=False) as run:
        ours = np.concatenate([run.states["q"].numpy()[1:, 0], run.states["qd"].numpy()[1:, 0]], axis=1)
    assert (np.abs(ours - theirs).max(1) <= 100.0 * np.maximum.accumulate(spread) + 1e-13).all()
