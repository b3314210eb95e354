"""Trainings from USD: values in SI, rewards by their formulas, errors at the prim that is wrong, and whole runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from pxr import Usd

from warpsim.cli.main import main
from warpsim.core.errors import InputError, TaskError
from warpsim.io.usd import author
from warpsim.learn import load_policy, read_log
from warpsim.objective import OnBody, Velocity, running
from warpsim.sim.simulator import Simulator
from warpsim.sim.trajectory import Observed
from warpsim.task.bound_training import bind_training
from warpsim.task.rewards import ActionCost, Alive, Fall, JointStops, Progress, TermCost, Upright
from warpsim.task.train import train
from warpsim.task.training import Randomized, StartSpread, Training, read_training

SCENE = Path(__file__).resolve().parents[2] / "scenes" / "ant_run.usda"
TORSO = OnBody("/World/Torso")
SMALL = Training(
    rewards=(Progress(TORSO), Alive()),
    falls=(Fall(TORSO, 0.2, 1.0),),
    starts=StartSpread(0.1, 0.1, 0.5),
    senses=("height", "joint_position", "joint_velocity"),
    hidden=(8,),
    worlds=4,
    window=0.08,
    episode=0.4,
    seconds=None,
    updates=4,
    evaluate_every=2,
)


@pytest.fixture(scope="module")
def sim() -> Simulator:
    return Simulator(SCENE, worlds=3, outputs=("body_velocity", "body_position", "body_rotation"))


@pytest.fixture(scope="module")
def motion(sim) -> tuple[Observed, torch.Tensor]:
    """States reached by four controls, and those, one row a control."""
    generator = torch.Generator().manual_seed(0)
    controls = 2 * torch.rand(4, 3, 8, dtype=torch.float64, generator=generator) - 1
    start = {"qd": 0.5 * torch.randn(3, 14, dtype=torch.float64, generator=generator)}
    moved = sim.rollout(controls=controls, start=start)
    return Observed(sim.model, {name: value[1:] for name, value in moved.items()}), controls


def test_the_scene_asks_for_what_it_says():
    found = read_training(SCENE, Simulator(SCENE).scene)
    assert found.name == "/World/Training"
    assert found.rewards == (Progress(TORSO), Alive(), ActionCost(0.05), JointStops(0.15, 0.1))
    assert found.falls == (Fall(TORSO, 0.2, 1.0, 0.25, 6.0, 0.1),)
    assert found.starts == StartSpread(0.1, 0.1, 0.5)
    assert (found.rate_decay, found.retry, found.warm_up) == (None, 0.5, 0)
    assert (found.worlds, found.period, found.window, found.episode, found.hidden) == (64, 0.02, 0.32, 10.0, (64, 64))
    assert found.senses == (
        *("height", "rotation", "base_velocity", "angular_velocity", "joint_position", "joint_velocity"),
    )


def test_numbers_are_taken_from_the_stages_units(tmp_path):
    text = SCENE.read_text().replace("metersPerUnit = 1", "metersPerUnit = 0.01")
    (tmp_path / "ant.usda").write_text(text)
    stage = Usd.Stage.Open(str(tmp_path / "ant.usda"))
    scene = Simulator(SCENE).scene
    (fall,) = read_training(stage, scene).falls
    assert (fall.minimum, fall.maximum, fall.margin) == pytest.approx((0.002, 0.01, 0.0025))


def test_rewards_are_their_formulas(sim, motion):
    states, controls = motion
    q, qd = states.q.numpy(), states.qd.numpy()
    bounds = np.radians([[-30, 30], [30, 70]] * 4)  # hip and knee alternate
    share = (2 * q[..., 7:] - bounds.sum(1)) / (bounds[:, 1] - bounds[:, 0])
    w, x, y, z = np.moveaxis(q[..., 3:7], -1, 0)
    cosine = w * w - x * x - y * y + z * z  # of the body's z axis and the world's
    height = q[..., 2]
    wanted = {
        Progress(TORSO, (3.0, 4.0, 0.0), weight=2.0): 2.0 * (0.6 * qd[..., 0] + 0.8 * qd[..., 1]),
        Progress(TORSO, at_most=0.01): np.minimum(qd[..., 0], 0.01),
        Alive(0.7): np.full(height.shape, 0.7),
        Upright(TORSO, 1.5): 1.5 * (cosine - 1),
        ActionCost(0.05): -0.05 * (controls.numpy() ** 2).sum(-1),
        JointStops(0.5, 0.1): -0.1 * (np.maximum(np.abs(share) - 0.5, 0) ** 2 / 0.25).sum(-1),
        TermCost(Velocity(subject=TORSO, velocity=(1.0, 0.0, 0.0), axes="x", weight=3.0, when=running())): (
            -1.5 * (qd[..., 0] - 1) ** 2
        ),
    }
    for reward, expected in wanted.items():
        found = reward.bind(sim, 0.01)(states, controls)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-9, err_msg=str(reward))
    fall = Fall(TORSO, 0.5, float(np.median(height)), margin=0.1, weight=2.0)
    assert np.array_equal(fall.bind(sim, 0.01)(states).numpy(), (height < 0.5) | (height > np.median(height)))
    gone = np.maximum(0.6 - height, 0) + np.maximum(height - np.median(height) + 0.1, 0)
    np.testing.assert_allclose(fall.bind_margin(sim, 0.01)(states, controls), -2 * (gone / 0.1) ** 2, rtol=1e-9)
    later = height + 0.2 * qd[..., 2]
    gone = np.maximum(0.6 - later, 0) + np.maximum(later - np.median(height) + 0.1, 0)
    found = replace(fall, ahead=0.2).bind_margin(sim, 0.01)(states, controls)
    np.testing.assert_allclose(found, -2 * (gone / 0.1) ** 2, rtol=1e-9)


def test_places_off_a_bodys_origin_move_as_the_body_does(sim, motion):
    states, controls = motion
    off = OnBody("/World/Torso", (0.0, 0.3, 0.0))
    found = Progress(off).bind(sim, 0.01)(states, controls)
    spin, velocity = states.body_velocity("/World/Torso").split(3, -1)
    w, x, y, z = states.q[..., 3:7].unbind(-1)
    arm = 0.3 * torch.stack([2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)], -1)
    torch.testing.assert_close(found, velocity[..., 0] + torch.linalg.cross(spin, arm)[..., 0])
    height = states.q[..., 2] + arm[..., 2]
    bound = float(height.median())
    assert torch.equal(Fall(off, bound).bind(sim, 0.01)(states), height < bound)
    later = height + 0.2 * (velocity[..., 2] + torch.linalg.cross(spin, arm)[..., 2])
    near = Fall(off, bound, margin=0.1, weight=2.0, ahead=0.2)
    assert near.outputs(sim) == ("body_velocity", *Fall(off, bound).outputs(sim))
    cost = near.bind_margin(sim, 0.01)(states, controls)
    torch.testing.assert_close(cost, -2.0 * (torch.relu(bound + 0.1 - later) / 0.1) ** 2)
    assert cost.min() < 0


def broken(change) -> Usd.Stage:
    stage = Usd.Stage.Open(str(SCENE))
    copy = Usd.Stage.CreateInMemory()
    copy.GetRootLayer().TransferContent(stage.GetRootLayer())
    change(copy, copy.GetPrimAtPath("/World/Training"))
    return copy


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, t: author.task_part(t, "Knots", "K"), "/World/Training/K: a WarpsimKnots cannot be part"),
        (lambda s, t: author.task_part(t, "Starts", "More"), "several WarpsimStarts"),
        (lambda s, t: author.task_part(t, "Progress", "P"), "/World/Training/P: subject must target one prim"),
        (lambda s, t: author.task_part(t, "Fall", "F", subject="/World/Torso"), "/World/Training/F: needs a minimum"),
        (lambda s, t: author.task_part(t, "Randomized", "R"), "/World/Training/R: attribute must target one attribute"),
        (lambda s, t: t.GetAttribute("seconds").Set(0.0), "/World/Training: the training has no end"),
        (lambda s, t: t.GetAttribute("retry").Set(1.5), "/World/Training: retry is 1.5"),
        (lambda s, t: s.RemovePrim("/World/Training"), "there are none"),
    ],
)
def test_what_is_wrong_is_named(change, message):
    with pytest.raises(TaskError, match=message):
        read_training(broken(change), Simulator(SCENE).scene)


def test_worlds_differ_in_what_is_randomized():
    mass = "/World/Torso/Shape.physics:mass"
    bound = bind_training(SCENE, replace(SMALL, randomized=(Randomized(mass, relative=0.2),)))
    masses = bound.sim.parameter("shape.mass")
    spread = masses.max(0).values / masses.min(0).values
    assert (spread > 1.05).sum() == 1 and 1.05 < spread[1] < 1.5  # the first shape is the ground, without mass


def test_a_training_that_was_interrupted_goes_on_to_the_same_bits(tmp_path):
    for name in ("whole", "halves"):
        (tmp_path / name).mkdir()
    whole = train(SCENE, SMALL, folder=tmp_path / "whole")
    train(SCENE, SMALL, folder=tmp_path / "halves", stop=lambda made: made.number == 1)
    halves = train(SCENE, SMALL, folder=tmp_path / "halves", resume=True)
    for ours, theirs in zip(whole.last.state_dict().values(), halves.last.state_dict().values(), strict=True):
        assert torch.equal(ours, theirs)
    assert (whole.score, whole.last_score) == (halves.score, halves.last_score)
    logs = [read_log(tmp_path / name) for name in ("whole", "halves")]
    assert [replace(a, seconds=0.0) for a in logs[0]] == [replace(b, seconds=0.0) for b in logs[1]]
    with pytest.raises(InputError, match="nothing to go on with"):
        train(SCENE, SMALL, resume=True)


def test_the_commands_train_and_play(tmp_path, capsys):
    folder = tmp_path / "ant"
    short = ["--updates", "2", "--worlds", "2", "--quiet"]
    assert main(["train", str(SCENE), "-o", str(folder), *short]) == 0
    assert "2 updates" in capsys.readouterr().out
    record = json.loads((folder / "record.json").read_text())
    assert (record["updates"], record["seed"], record["unseen_starts"]["worlds"]) == (2, 0, 2)
    assert {path.name for path in folder.iterdir()} >= {"policy.pt", "last.pt", "curve.png", "motion.html", "log.csv"}
    assert load_policy(folder / "policy.pt").period == 0.02
    target = tmp_path / "motion.html"
    assert main(["play", str(folder / "policy.pt"), str(SCENE), "--seconds", "0.2", "-o", str(target)]) == 0
    assert target.stat().st_size > 10_000 and "/World/Torso moved by" in capsys.readouterr().out
    assert main(["train", str(SCENE.with_name("cartpole.usda")), "-o", str(tmp_path / "no"), *short]) == 1
    assert "WarpsimTraining" in capsys.readouterr().err
