"""Tasks by iLQR: the same loss row by row, the gradient's optimum in fewer iterations, and what it cannot do."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from task_scenes import reach, saved, swing
from warpsim.core.errors import TaskError
from warpsim.io.usd import author
from warpsim.objective import Function, running
from warpsim.sim.simulator import Simulator
from warpsim.task import TaskProblem, optimize, read_task
from warpsim.task.trajectory import TrajectoryTask


def arm(folder, method: str = "ilqr", **steps):
    """A reach, a posture on the way, effort within a window: every way a term can count."""
    stage, task = swing()
    reach(task, weight=100.0, position=(0.75, 0, 0.9))
    author.task_part(task, "Steps", "Motors", **steps)
    author.task_part(task, "Effort", "Effort", when="running", weight=1e-3)
    author.task_part(task, "Velocity", "Calm", subject="/World/Lower", when="running", weight=0.01, window=(0.05, 0.2))
    author.task_part(
        task, "Posture", "Way", joints=["/World/Joint0"], position=[20.0], when="time", time=0.1, weight=0.1
    )
    author.set_attributes(task, {"method": method, "iterations": 60})
    return saved(stage, folder, method)


def problem_of(path) -> TaskProblem:
    sim = Simulator(path)
    return TaskProblem(sim, read_task(path, sim.scene))


def test_row_by_row_it_is_the_same_loss(tmp_path):
    task = problem_of(arm(tmp_path))
    made = TrajectoryTask(task)
    x = torch.as_tensor(np.random.default_rng(0).uniform(-1, 1, len(made.problem.start))).requires_grad_()
    split, whole = made.problem.loss(x), task.loss(made.task_x(x))
    assert split.item() == pytest.approx(whole.item(), rel=1e-12)
    by_rows, at_once = (torch.autograd.grad(loss, x)[0] for loss in (split, whole))
    assert torch.allclose(by_rows, at_once, rtol=1e-9, atol=1e-12)


def test_it_finds_the_optimum_and_resumes(tmp_path):
    quick = optimize(arm(tmp_path))
    slow = optimize(arm(tmp_path, "lbfgs"), iterations=400)
    assert quick.solved and quick.loss == pytest.approx(slow.loss, rel=1e-4)
    assert len(quick.result.history) < len(slow.result.history) / 3
    path, folder = arm(tmp_path), tmp_path / "out"
    optimize(path, folder=folder, iterations=2).save(folder, film=False)
    resumed = optimize(path, folder=folder, resume=True)
    assert torch.equal(resumed.result.x, quick.result.x) and resumed.loss == quick.loss


def test_limits_hold_and_what_is_not_driven_rests(tmp_path):
    path = arm(tmp_path, targets=["/World/Motor1"], lower=[-0.5], upper=[0.5], values=[0.1])
    done = optimize(path)
    controls = done.problem.choice(done.result.x[None]).controls[0]
    assert controls.abs().max() <= 0.5 and (controls.abs() == 0.5).any()
    slow = optimize(path, method="lbfgs", iterations=400)
    assert done.loss == pytest.approx(slow.loss, rel=1e-4)


def test_what_it_cannot_do_is_said(tmp_path):
    with pytest.raises(TaskError, match="/World/Task: ilqr goes from one start"):
        stage, task = swing()
        reach(task)
        author.task_part(task, "Steps", "Motors")
        author.set_attributes(task, {"method": "ilqr", "starts": 3})
        optimize(saved(stage, tmp_path, "starts"))
    with pytest.raises(TaskError, match="needs one WarpsimSteps"):
        stage, task = swing()
        reach(task)
        author.task_part(task, "Knots", "Motors", count=4)
        optimize(saved(stage, tmp_path, "knots"), method="ilqr")
    with pytest.raises(TaskError, match="Smooth: ilqr needs costs of single frames"):
        stage, task = swing()
        reach(task)
        author.task_part(task, "Steps", "Motors")
        author.task_part(task, "Smoothness", "Smooth", when="running")
        optimize(saved(stage, tmp_path, "smooth"), method="ilqr")
    lurch = Function(function=lambda e: e.trajectory["qd"].diff(dim=0, append=e.trajectory["qd"][:1]), when=running())
    with pytest.raises(TaskError, match="frame by frame the loss is"):
        optimize(arm(tmp_path, values=[1.0]), terms=[lurch])
