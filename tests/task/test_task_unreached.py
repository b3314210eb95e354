"""Tasks whose variables do not reach the objective: the result says so, why, and what to try."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from task_scenes import reach, saved, swing
from warpsim.check.records import read_record
from warpsim.cli.main import main
from warpsim.io.usd import author
from warpsim.optimizers import FunctionProblem, minimize, multi_start
from warpsim.task import optimize

BALL = "/World/Ball.physics:velocity"


def gap(folder: Path, *, distance: float = 0.5) -> Path:
    """A ball that flies toward a box at rest, without gravity: the box should move, and nothing touches it in time."""
    stage = author.new_stage()
    author.physics_scene(stage, gravity=0.0, steps_per_second=100)
    world = author.world(stage)
    ball = author.body(
        world, "Ball", position=(0.7 - distance, 0, 1.0), velocity=(0.25, 0, 0), attributes={"physics:mass": None}
    )
    author.sphere(ball, "Shape", 0.1, density=500)
    box = author.body(world, "Box", position=(1.0, 0, 1.0), attributes={"physics:mass": None})
    author.box(box, "Shape", (0.2, 0.2, 0.2), density=100)
    task = author.task(world, duration=0.1)
    author.task_part(task, "Reach", "Moved", subject="/World/Box", position=(1.5, 0, 1.0), tolerance=0.01)
    author.task_part(task, "Variable", "Speed", attributes=ball.GetAttribute("physics:velocity"), components=[0])
    return saved(stage, folder)


def test_bodies_that_never_touch_are_named(tmp_path, capsys):
    path = gap(tmp_path)
    done = optimize(path)
    assert done.result.stopped == "no slope" and not done.result.converged and done.result.iterations == 0
    said = " ".join(done.diagnosis)
    assert "do not reach the objective" in done.diagnosis[0]
    assert "/World/Box did not move at all." in done.diagnosis
    assert "/World/Ball and /World/Box touched nothing during the whole rollout." in done.diagnosis
    assert "starts = 16" in said and "warpsim:contactSoftening" in said
    assert main(["optimize", str(path), "-o", str(tmp_path / "out"), "--no-gif", "--quiet"]) == 3
    shown = capsys.readouterr().out
    assert all(sentence in shown for sentence in done.diagnosis) and "no slope: the loss does not change" in shown
    record = read_record(tmp_path / "out" / "record.json")
    assert record.more["diagnosis"] == list(done.diagnosis) and record.more["result"]["stopped"] == "no slope"


def test_controls_at_their_limits_are_named(tmp_path):
    """A motor driven beyond its force range all the time: no change of its control changes the motion."""
    stage, task = swing()
    reach(task)
    for k in range(2):
        limits = {"mjc:forceRange:min": -0.1, "mjc:forceRange:max": 0.1}
        author.set_attributes(stage.GetPrimAtPath(f"/World/Motor{k}"), limits)
    author.task_part(task, "Knots", "Motors", count=3, values=[2.0, 2.0, 3.0, 2.0, 2.5, 2.0])
    done = optimize(saved(stage, tmp_path))
    assert done.result.stopped == "no slope"
    assert any("Motor0 is at its limit in every step (it is given 2 to 3)" in line for line in done.diagnosis)
    assert any("Motor1 is at its limit in every step (it is given 2 to 2)" in line for line in done.diagnosis)
    assert "wider range" in done.diagnosis[-1]


def test_several_starts_show_what_each_reached(tmp_path, capsys):
    """The ball arrives within 0.1 s from 0.3 m/s on: some of the starts do, and the best of them is finished."""
    path = gap(tmp_path, distance=0.03)
    code = main(["optimize", str(path), "-o", str(tmp_path / "out"), "--no-gif", "--quiet", "--starts", "8"])
    assert code in (0, 3)
    shown = capsys.readouterr().out
    record = read_record(tmp_path / "out" / "record.json")
    starts = record.more["starts"]
    assert len(starts) == 8
    for k, start in enumerate(starts):
        assert f"  start {k}: {start['before']:.6g}" in shown
        assert start["after"] <= start["before"]
    assert sum(start["finished"] is not None for start in starts) == 1
    assert min(start["after"] for start in starts) < starts[0]["before"]


@pytest.mark.parametrize("method", ["lbfgs", "adam", "levenberg_marquardt"])
def test_no_slope_is_not_convergence(method):
    def residuals(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x - 1.0) - 1.0

    result = minimize(FunctionProblem([0.0, -3.0], residuals=residuals), method)
    assert result.stopped == "no slope" and not result.converged
    assert "does not change with any variable" in result.message
    held = FunctionProblem([1.0], residuals=lambda x: x + 1.0, lower=1.0)  # a bound holds it, with a slope
    assert minimize(held, method).stopped == "converged"
    solved = FunctionProblem([1.0], residuals=lambda x: x - 1.0)
    assert minimize(solved, method).converged


def test_a_report_of_starts_has_a_line_for_each():
    def loss(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x[0] > 4.0, torch.inf, torch.relu(1.0 - x[0]).square())

    result = multi_start(FunctionProblem([-1.0], loss=loss, lower=-5.0, upper=5.0), seed=2, candidates=12, explore=3)
    lines = str(result.report).splitlines()
    assert len(lines) == 12 and lines[0].startswith("start 0: 4 → ")
    assert any(line.endswith("not simulated") for line in lines)
    assert sum("finished at" in line for line in lines) == 1
