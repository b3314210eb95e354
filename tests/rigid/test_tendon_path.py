"""Spatial tendons against MuJoCo (lengths, moment arms, weights, rows, motions), geometry, and central differences."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from contact_support import converging
from random_models import random_state
from rigid_support import evaluation, scene_of
from row_support import assert_gradients, assert_small, compare_rows, gradient_case, path_ratio
from tendon_models import arm, moment_arms
from warpsim.core.errors import SceneError
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.dynamics.tendon_wrap import CLOCKWISE, COUNTERCLOCKWISE, INSIDE, STRAIGHT
from warpsim.rigid.query.motion import evaluate, make_state
from warpsim.rigid.step.program import RigidProgram
from warpsim.scene import Body, Joint, Options, Scene, Shape, Site, Tendon, TendonPoint
from warpsim.scene.validate import validate
from warpsim.tape.checkpointed import CheckpointedTape

WAYS = {int(CLOCKWISE), int(COUNTERCLOCKWISE), int(STRAIGHT)}


def configurations(model: mujoco.MjModel, count: int, spread: float = 0.8) -> np.ndarray:
    rng = np.random.default_rng(3)
    found = np.tile(model.qpos0, (count, 1))
    for q in found:
        mujoco.mj_integratePos(model, q, spread * rng.normal(size=model.nv), 1.0)
    return found


def dense(m, moment: np.ndarray) -> np.ndarray:
    start, dof = m.tendon_topology.start.numpy(), m.tendon_topology.dof.numpy()
    found = np.zeros((len(moment), m.tendon_topology.count, m.nv))
    for i in range(m.tendon_topology.count):
        for k in range(start[i], start[i + 1]):
            found[:, i, dof[k]] += moment[:, k]
    return found


def test_lengths_and_moment_arms_match_mujoco():
    mj = arm(inside=True)
    q = configurations(mj, 200)
    data, lengths, arms = mujoco.MjData(mj), [], []
    for x in q:
        data.qpos[:] = x
        mujoco.mj_forward(mj, data)
        lengths.append(data.ten_length.copy())
        arms.append(moment_arms(mj, data))
    m = compile_model(scene_of(mj), worlds=len(q))
    Derivation(m).run()
    work = evaluate(m, make_state(m, {"q": q}))
    branch = work.tendon.branch.numpy()
    wrapped = m.tendon_topology.span_shape.numpy() >= 0
    sided = [mj.tendon(name).id for name in ("sphere_in", "cylinder_in")]
    start = m.tendon_topology.span_start.numpy()
    inside = np.isin(np.arange(len(wrapped)), start[sided])
    assert set(branch[:, wrapped & ~inside].ravel()) == WAYS  # each way is taken, and so it is by every such span:
    assert all((branch[:, n] > 0).sum() > 4 and (branch[:, n] == 0).sum() > 4 for n in np.flatnonzero(wrapped))
    assert (branch[:, inside] == INSIDE).any(axis=0).all()
    fixed = mj.tendon("fixed").id
    error = np.abs(work.tendon.length.numpy() - np.array(lengths)).max(0)
    assert np.delete(error, fixed).max() < 1e-12
    error = np.abs(dense(m, work.tendon.moment.numpy()) - np.array(arms)).max((0, 2))
    assert np.delete(error, sided).max() < 1e-12
    assert error[sided].max() < 1e-6
    assert np.abs(m.weight.tendon.numpy()[0] / mj.tendon_invweight0 - 1).max() < 1e-6
    assert np.abs(np.delete(m.weight.tendon_length.numpy()[0] - mj.tendon_length0, fixed)).max() < 1e-12


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4"])
def test_rows_and_accelerations_match_mujoco(integrator):
    mj = converging(arm(integrator))
    for seed in range(6):
        assert_small(compare_rows(mj, random_state(mj, seed)), f"seed {seed}")


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4"])
def test_motion_matches_mujoco(integrator):
    mj = converging(arm(integrator))
    state = random_state(mj, 2, speed=0.5)
    assert path_ratio(mj, configurations(mj, 1, 0.3)[0], state.qvel, 60) < 1e4


def test_sensors_match_mujoco():
    mj = arm()
    q, data = configurations(mj, 1, 0.4)[0], mujoco.MjData(mj)
    data.qpos[:], data.ctrl[:], data.qvel[:] = q, 0.3, 0.5
    mujoco.mj_forward(mj, data)
    model = compile_model(scene_of(mj))
    Derivation(model).run()
    tape = CheckpointedTape(RigidProgram(model, controls=("actuator",), outputs=("sensors",)), steps=1)
    start = {"q": q[None], "qd": np.full((1, mj.nv), 0.5), "warm_start": np.zeros((1, mj.nv))}
    run = tape.forward(start, {"actuator": np.full((1, 1, mj.nu), 0.3)}, keep_outputs=["sensors"])
    assert run.outputs["sensors"].numpy()[0, 0] == pytest.approx(data.sensordata, rel=1e-10)
    assert (data.sensordata != 0.0).all()


def inside_scene(side: float) -> Scene:
    """A tendon from the world over a sphere to a pendulum; its side site stands so far from the sphere's center."""
    names = dict(a=[-0.3, 0.0, 0.25], b=[0.3, 0.0, 0.1], side=[0.0, 0.0, side])
    sites = [Site(name, "arm" if name == "b" else None, np.array(x)) for name, x in names.items()]
    ball = Shape("ball", "sphere", None, size=np.array([0.1, 0, 0]), collides=False, mass=0.0)
    path = [TendonPoint("site", "a"), TendonPoint("shape", "ball", "side"), TendonPoint("site", "b")]
    return Scene(
        bodies=[Body("arm", mass=1.0, com=np.zeros(3), inertia=np.eye(3))],
        joints=[Joint("hinge", "hinge", "arm", axis=np.array([0.0, 1.0, 0.0]))],
        shapes=[ball],
        sites=sites,
        tendons=[Tendon("cord", path=path, stiffness=10.0)],
        options=Options(contacts=False),
    )


def test_inside_wrap_is_the_shortest_way_over_the_circle():
    m = compile_model(inside_scene(0.02))
    Derivation(m).run()
    work = evaluate(m, make_state(m, {"q": np.array([0.05])}))
    assert work.tendon.branch.numpy()[0, 0] == INSIDE
    angle = np.linspace(0.0, np.pi, 200001)
    touch = 0.1 * np.stack([np.cos(angle), 0 * angle, np.sin(angle)], 1)
    c, s = np.cos(0.05), np.sin(0.05)
    ends = np.array([-0.3, 0, 0.25]), np.array([c * 0.3 + s * 0.1, 0, -s * 0.3 + c * 0.1])
    ways = sum(np.linalg.norm(touch - end, axis=1) for end in ends)
    assert work.tendon.length.numpy()[0, 0] == pytest.approx(ways.min(), abs=1e-10)


def test_a_spring_without_a_length_is_slack_at_the_reference():
    m = compile_model(inside_scene(0.4))
    Derivation(m).run()
    e = evaluation(inside_scene(0.4), {"q": 0.0, "qd": 0.0})
    e.forward()
    slack = m.authored["tendon.spring_range"].numpy()[0, 0]
    assert slack == pytest.approx([m.weight.tendon_length.numpy()[0, 0]] * 2)
    assert slack[0] > 0.6
    assert np.abs(e.work.qdd.numpy()).max() < 1e-12


@pytest.mark.parametrize("seed,integrator", [(0, "implicitfast"), (1, "Euler"), (2, "RK4")])
def test_gradients(seed, integrator):
    mj = converging(arm(integrator, inside=True))
    mj.tendon_solref_lim[:] = (0.05, 1.0)
    names = ("site.position", "shape.size", "shape.position", "shape.rotation", "joint.anchor", "body.mass")
    rollout, inputs = gradient_case(mj, seed, 3, ("tendon", "tendon_limit", "actuator"), names, spread=0.5)
    assert_gradients(rollout, inputs, seed, most=0.2)


def test_paths_that_make_no_sense_are_refused():
    for path, words in (
        ([TendonPoint("site", "a")], "begin and end with sites"),
        ([TendonPoint("site", "a"), TendonPoint("shape", "ball")], "begin and end with sites"),
        ([TendonPoint("site", "a"), TendonPoint("site", "c")], "c"),
        ([TendonPoint("site", "a"), TendonPoint("pulley", divisor=0.0), TendonPoint("site", "b")], "divisor"),
        ([TendonPoint("site", "a"), TendonPoint("joint", "hinge"), TendonPoint("site", "b")], "joint"),
    ):
        scene = inside_scene(0.4)
        scene.tendons[0].path = path
        with pytest.raises(SceneError, match=words):
            validate(scene)
