"""Tasks as problems: signals of controls, bounds, gradients, many candidates at once."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.interpolate import CubicSpline

from finite_differences import directional_difference
from task_scenes import STEPS, reach, saved, swing
from warpsim.core.errors import TaskError
from warpsim.io.usd import author
from warpsim.optimizers import Adam, Stopping, minimize
from warpsim.sim.simulator import Simulator
from warpsim.task.controls import Knots, Periodic
from warpsim.task.problem import TaskProblem
from warpsim.task.read import read_task

TIMES = 0.01 * np.arange(STEPS)


def test_signals_of_knots_and_harmonics():
    knots, at = np.random.default_rng(1).normal(size=(5, 3)), np.linspace(0, 0.2, 5)
    cubic = Knots(count=5, interpolation="cubic").basis(TIMES, 0.2) @ knots
    assert np.allclose(cubic, CubicSpline(at, knots, bc_type="natural")(TIMES), atol=1e-12)
    linear = Knots(count=5).basis(TIMES, 0.2) @ knots
    assert np.allclose(linear, np.stack([np.interp(TIMES, at, k) for k in knots.T], 1), atol=1e-12)
    held = Knots(count=5, interpolation="hold").basis(TIMES, 0.2) @ knots
    assert np.allclose(held, np.repeat(knots, 4, axis=0))
    waves = Periodic(period=0.1, harmonics=1).basis(TIMES, 0.2) @ np.array([[1.0], [2.0], [3.0]])
    expected = 1 + 2 * np.cos(2 * np.pi * TIMES / 0.1) + 3 * np.sin(2 * np.pi * TIMES / 0.1)
    assert np.allclose(waves[:, 0], expected)


def test_a_value_of_its_own_bounds_can_be_held(tmp_path):
    """The first knot of both motors stands; the others are free within the motors' range."""
    stage, task = swing()
    reach(task)
    wide = [0.3, -0.2] + [-1.0] * 4, [0.3, -0.2] + [1.0] * 4
    values = [0.3, -0.2] + [0.1] * 4
    author.task_part(task, "Knots", "Motors", count=3, values=values, lower=wide[0], upper=wide[1])
    problem = problem_of(stage, tmp_path)
    (control,) = problem.controls
    assert np.array_equal(control.lower[1:], np.full((2, 2), -1.0)) and (control.scale[1:] == 1.0).all()
    found = minimize(problem, Adam(rate=0.05), stopping=Stopping(iterations=2))
    moved = (found.x - problem.start).reshape(3, 2).abs()
    assert not moved[0].any() and (moved[1] > 0.0).all()


def problem_of(stage, tmp_path, *, controls=None, **options) -> TaskProblem:
    path = saved(stage, tmp_path)
    sim = Simulator(path, controls=controls)
    return TaskProblem(sim, read_task(path, sim.scene), **options)


def add_variables(task) -> None:
    author.task_part(task, "Variable", "Density", attributes="/World/Lower/Shape.physics:density", positive=True)
    author.task_part(task, "Variable", "Gravity", attributes="/World/Physics.physics:gravityMagnitude", scale=5)


PARTS = {
    "variables": [],
    "steps": [("Steps", {})],
    "knots": [("Knots", {"count": 4, "interpolation": "cubic", "values": [0.5, 1.0]})],
    "periodic": [("Periodic", {"period": 0.15, "values": [0.2]})],
    "two of one channel": [("Knots", {"count": 3}), ("Steps", {"targets": "/World/Motor1", "channel": "actuator"})],
    "feedback": [("Feedback", {"values": [1.5, 2.0, 0.2, 0.1], "joints": ["/World/Joint0", "/World/Joint1"]})],
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.long) if n == "feedback" else n for n in PARTS])
def test_gradients(name, tmp_path, rng):
    """Through attributes, controls, duration and objective together."""
    stage, task = swing()
    reach(task)
    add_variables(task)
    for place, (kind, settings) in enumerate(PARTS[name]):
        author.task_part(task, kind, f"Control{place}", **settings)
    author.task_part(task, "Effort", "Cheap", weight=0.01, when="running")
    author.task_part(task, "Smoothness", "Smooth", weight=1e-5, when="running")
    author.task_part(task, "Duration", "Quick", weight=0.1)
    author.set_attributes(task, {"durationRange": (0.1, 0.5)})
    problem = problem_of(stage, tmp_path)
    x0 = problem.start + 0.05 * torch.as_tensor(rng.standard_normal(len(problem.start)))
    x0 = torch.minimum(torch.maximum(x0, problem.lower), problem.upper)
    direction = rng.standard_normal(len(x0))
    x = x0.clone().requires_grad_()
    problem.loss(x).backward()
    expected = directional_difference(
        lambda v: problem.loss(torch.as_tensor(v)).item(), x0.numpy(), direction, (1e-4, 1e-5, 1e-6)
    )
    assert float(x.grad @ torch.as_tensor(direction)) == pytest.approx(float(expected), rel=1e-6)
    assert (x.grad != 0).sum() > 0.9 * len(x0)
    with torch.no_grad():
        assert problem.residuals(x0).square().sum() / 2 == pytest.approx(problem.loss(x0).item(), rel=1e-12)


def test_many_candidates_at_once(tmp_path, rng):
    stage, task = swing()
    reach(task)
    add_variables(task)
    author.task_part(task, "Knots", "Motors", count=3)
    problem = problem_of(stage, tmp_path)
    x = problem.start + 0.1 * torch.as_tensor(rng.standard_normal((3, len(problem.start))))
    leaf = x.clone().requires_grad_()
    problem.losses(leaf).sum().backward()
    for row, gradient in zip(x, leaf.grad, strict=True):
        one = row.clone().requires_grad_()
        loss = problem.loss(one)
        loss.backward()
        assert problem.losses(x)[0].item() == pytest.approx(problem.loss(x[0]).item(), rel=1e-12)
        assert torch.allclose(one.grad, gradient, rtol=1e-10, atol=1e-12)
    assert torch.allclose(problem.batched_residuals(x)[1], problem.residuals(x[1]), rtol=1e-12)


def test_bounds_and_first_guesses_come_from_the_scene(tmp_path):
    stage, task = swing()
    reach(task)
    author.task_part(task, "Steps", "Motors")
    problem = problem_of(stage, tmp_path)
    (bound,) = problem.controls
    assert bound.channel == "actuator" and bound.targets == ("/World/Motor0", "/World/Motor1")
    assert (bound.lower == -2).all() and (bound.upper == 4).all() and (bound.start == 0).all()
    assert problem.lower[0] == -2 / 3 and problem.upper[0] == 4 / 3  # scaled by half the range
    assert problem.names[3] == "/World/Task/Motors[1] of /World/Motor1"


def test_a_mean_has_the_range_and_amplitudes_half_of_it_either_way(tmp_path):
    stage, task = swing()
    reach(task)
    author.task_part(task, "Periodic", "Gait", period=0.1, harmonics=2, values=[1.5, 0.5])
    (bound,) = problem_of(stage, tmp_path).controls
    expected = np.repeat([[-2.0, 4.0], [-3.0, 3.0]], [1, 4], axis=0)  # rows: mean, cos 1, sin 1, cos 2, sin 2
    for target in range(2):
        assert np.array_equal(np.stack([bound.lower[:, target], bound.upper[:, target]], 1), expected)
    assert np.array_equal(bound.start, [[1.5, 0.5], *[[0.0, 0.0]] * 4])
    wide = bound.signal(torch.as_tensor(bound.upper)[None])
    assert wide.max() == 4.0  # mean and amplitudes at their bounds pass the range: the signal is cut there
    author.set_attributes(task.GetChild("Gait"), {"lower": [-1.0], "upper": [2.0, 3.0]})
    (bound,) = problem_of(stage, tmp_path).controls
    assert np.array_equal(bound.lower, [[-1.0, -1.0], *[[-1.5, -2.0]] * 4])
    assert np.array_equal(bound.upper, [[2.0, 3.0], *[[1.5, 2.0]] * 4])


def test_two_controls_of_one_channel_each_set_their_own(tmp_path):
    """What one of them drives does not rest, whichever comes first."""
    stage, task = swing(drives=True, actuators=False)
    reach(task)
    for place, value in enumerate((0.5, -0.2)):
        author.task_part(task, "Steps", f"Servo{place}", targets=f"/World/Joint{place}", values=[value])
    problem = problem_of(stage, tmp_path)
    used = problem.episode(problem.authored()).inputs["drive_target"][:, 0]
    assert np.allclose(used, [0.5, -0.2])


def test_what_nobody_drives_stays_at_rest(tmp_path):
    stage, task = swing(drives=True, actuators=False)
    reach(task)
    author.task_part(task, "Steps", "Servo", targets="/World/Joint0", values=[0.5])
    problem = problem_of(stage, tmp_path)
    episode = problem.episode(problem.authored())
    used = episode.inputs["drive_target"][:, 0]
    assert np.allclose(used[:, 0], 0.5) and np.allclose(used[:, 1], np.radians(30.0))
    (bound,) = problem.controls
    assert np.allclose([bound.lower[0], bound.upper[0]], [[-np.radians(150)], [np.radians(150)]])


def test_the_time_step_follows_the_duration(tmp_path):
    stage, task = swing()
    reach(task, when="time", time=0.1)
    author.set_attributes(task, {"durationRange": (0.1, 0.5)})
    problem = problem_of(stage, tmp_path)
    assert (problem.steps, problem.names) == (STEPS, ("/World/Task.duration",))
    assert (problem.lower.item(), problem.upper.item()) == (0.1 / 0.2, 0.5 / 0.2)
    x = torch.tensor([[1.0], [1.5]], dtype=torch.float64)
    episode = problem.episode(problem.choice(x))
    assert torch.allclose(episode.duration, torch.tensor([0.2, 0.3], dtype=torch.float64))
    alone = Simulator(tmp_path / "scene.usda").rollout(
        steps=STEPS, parameters={"world.timestep": torch.tensor(0.015, dtype=torch.float64)}
    )
    assert torch.allclose(episode.trajectory["q"][:, 1], alone["q"][:, 0], rtol=1e-12)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([("Variable", {"attributes": "/World/Bull.physics:mass"})], "/World/Task/Part0: "),
        ([("Variable", {"attributes": "/World/Lower/Shape.physics:mess"})], "/World/Task/Part0: "),
        (
            [("Variable", {"attributes": "/World/Lower/Shape.physics:density", "lower": [9000]})],
            "/World/Task/Part0: ",
        ),
        ([("Knots", {"targets": "/World/Joint0", "channel": "actuator"})], "/World/Task/Part0: no target of channel"),
        ([("Knots", {"values": [1, 2, 3]})], "/World/Task/Part0: values has 3 numbers; give 1, 2"),
        ([("Knots", {"values": [9]})], "/World/Task/Part0: values lie outside"),
        ([("Knots", {"lower": [3], "upper": [1]})], "/World/Task/Part0: lower"),
        ([("Knots", {"count": 2, "lower": [0, 0, 1, 0], "upper": [0.5]})], "/World/Task/Part0: a value's lower bound"),
        ([("Knots", {"count": 2, "lower": [0, 0, 0]})], "/World/Task/Part0: lower has 3 numbers; give 1, 2 or 4"),
        ([("Knots", {"channel": "driveTarget"})], "/World/Task/Part0: the simulator's controls are actuator"),
        ([("Feedback", {"reference": [1], "targets": "/World/Motor0"})], "/World/Task/Part0: "),
    ],
)
def test_wrong_parts_are_named(parts, message, tmp_path):
    stage, task = swing()
    reach(task)
    for place, (kind, settings) in enumerate(parts):
        author.task_part(task, kind, f"Part{place}", **settings)
    with pytest.raises(TaskError) as caught:
        problem_of(stage, tmp_path)
    assert str(caught.value).startswith(message)


def test_times_beyond_the_horizon_are_named(tmp_path):
    stage, task = swing()
    reach(task, when="time", time=3.0)
    author.task_part(task, "Steps", "Motors")
    with pytest.raises(TaskError, match="/World/Task/Hit: 3 s is outside of the rollout"):
        problem_of(stage, tmp_path)
