"""From a file with a task to the file solved: known answers, files that load again, the loss to the last digit."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from pxr import Sdf, Usd, UsdValidation

from task_scenes import loaded_loss, reach, saved, swing
from warpsim.check.records import RunRecord, read_record
from warpsim.core.errors import InputError, SceneError, TaskError
from warpsim.io.usd import author
from warpsim.objective import Function, Reach, Within, running
from warpsim.optimizers.result import HistoryEntry
from warpsim.optimizers.search import Progress
from warpsim.sim.simulator import Simulator
from warpsim.task import Knots, Task, VariableSpec, optimize
from warpsim.task.course import Course, is_shown

SCENES = Path(__file__).resolve().parents[2] / "scenes"


def check_folder(done, folder: Path) -> RunRecord:
    """A saved run is complete, valid, and reproduces its loss."""
    result = folder / "result.usda"
    assert loaded_loss(result) == done.loss
    registry = UsdValidation.ValidationRegistry()
    stage = Usd.Stage.Open(str(result))
    errors = UsdValidation.ValidationContext(registry.GetOrLoadAllValidators()).Validate(stage)
    assert [e.GetErrorAsString() for e in errors] == []
    assert stage.GetRootLayer().customLayerData["warpsim"]["loss after"] == done.loss
    record = read_record(folder / "record.json")
    assert record.outcome["loss"] == record.more["after"]["loss"] == done.loss
    assert record.more["before"]["loss"] == done.before.loss and record.outcome["success"] is done.solved
    assert record.more["result"]["history"][0]["iteration"] == 0 and record.versions["torch"]
    assert record.horizon["seconds"] == pytest.approx(done.after.duration, rel=1e-12)
    motion = done.after.motion
    assert np.array_equal(record.trajectory["q"][-1, 0], motion.q[-1])
    assert np.array_equal(record.trajectory["qd"][-1, 0], motion.qd[-1])
    return record


def test_projectile(tmp_path):
    """Two USD attributes: the gradient is (4.5, 0), the answer vx = 2, and vz stays."""
    done = optimize(SCENES / "projectile.usda")
    across, up = "/World/Plane.state:transX:physics:velocity", "/World/Plane.state:transZ:physics:velocity"
    assert done.before.loss == pytest.approx(0.5 * 1.5**2, rel=1e-12)
    assert float(done.before.gradients[across]) == pytest.approx(4.5, rel=1e-12)
    assert float(done.before.gradients[up]) == 0.0
    assert done.changes[across]["after"] == 2.0 and done.changes[up]["after"] == 1.0
    assert done.solved is True
    names = {path.name for path in done.save(tmp_path / "out", film=False)}
    assert names >= {"result.usda", "before.usda", "record.json", "loss.png", "result.html"}
    check_folder(done, tmp_path / "out")
    again = optimize(tmp_path / "out" / "result.usda")  # a result is a scene like any other
    assert again.before.loss == done.loss


@pytest.mark.long
def test_throw(tmp_path):
    """A parabola through a point: v = (target − start)/T + g·T/2, up to the integrator's half step."""
    done = optimize(SCENES / "throw.usda")
    velocity = done.changes["/World/Ball.physics:velocity"]["after"]
    assert np.allclose(velocity, [2.5, 0.0, 0.1 / 0.4 + 9.81 * 0.401 / 2], atol=1e-6)
    assert done.solved and "yes" in done.after.verdicts[0].text
    done.save(tmp_path, film=False)
    assert not (tmp_path / "before_after.gif").exists()
    check_folder(done, tmp_path)


def test_controls_and_duration_are_kept_in_the_result(tmp_path):
    stage, task = swing()
    reach(task, tolerance=0.02, weight=100.0)
    author.set_attributes(task, {"durationRange": (0.15, 0.6), "iterations": 25})
    author.task_part(task, "Knots", "Motors", count=4, interpolation="cubic")
    author.task_part(task, "Duration", "Quick", weight=0.01)
    author.task_part(task, "KeepControlLimits", "Motors_kept")
    path = saved(stage, tmp_path)
    done = optimize(path)
    assert done.loss < 0.1 * done.before.loss
    done.save(tmp_path / "out", film=False)
    record = check_folder(done, tmp_path / "out")
    result = Usd.Stage.Open(str(tmp_path / "out" / "result.usda"))
    prim = result.GetPrimAtPath("/World/Task")
    assert prim.GetAttribute("duration").Get() == done.after.duration != done.before.duration
    assert prim.GetAttribute("steps").Get() == 20
    values = np.array(result.GetPrimAtPath("/World/Task/Motors").GetAttribute("values").Get())
    assert np.array_equal(values.reshape(4, 2), record.more["controls"]["/World/Task/Motors"]["values"])
    assert (values >= -2).all() and (values <= 4).all()
    assert result.GetEndTimeCode() / result.GetTimeCodesPerSecond() == pytest.approx(done.after.duration)


@pytest.mark.parametrize(
    "kind", ["Steps", *(pytest.param(k, marks=pytest.mark.long) for k in ("Periodic", "Feedback"))]
)
def test_other_controls_solve_too(kind, tmp_path):
    stage, task = swing()
    reach(task, position=(0.75, 0, 0.8), tolerance=0.03)
    more = {"joints": ["/World/Joint0", "/World/Joint1"]} if kind == "Feedback" else {}
    author.task_part(task, kind, "Motors", **more)
    author.set_attributes(task, {"iterations": 15})
    done = optimize(saved(stage, tmp_path))
    assert done.loss < 0.5 * done.before.loss
    done.save(tmp_path / "out", film=False)
    assert loaded_loss(tmp_path / "out" / "result.usda") == done.loss


def test_time_samples_survive_the_result(tmp_path):
    """Targets keyframed in frames of the source's rate mean the same in the result, which has another."""
    stage, task = swing()
    stage.SetTimeCodesPerSecond(30)
    ghost = author.frame(author.world(stage), "Ghost")
    for code, x in ((10, 0.9), (14, 0.6)):
        ghost.GetAttribute("xformOp:translate").Set((x, 0, 0.8), code)
    author.set_attributes(task, {"startTime": 8, "iterations": 5})
    author.task_part(task, "Reach", "Follow", subject="/World/Lower/Tip", target=ghost, when="running")
    author.task_part(task, "Knots", "Motors", count=3)
    done = optimize(saved(stage, tmp_path))
    done.save(tmp_path / "out", film=False)
    assert loaded_loss(tmp_path / "out" / "result.usda") == done.loss < done.before.loss


def test_identification_reports_deviations(tmp_path):
    """A reference motion of q identifies the motor's unknown: with exact data, exactly."""
    stage, task = swing(actuators=False)
    path = saved(stage, tmp_path, "truth")
    q = Simulator(path).rollout(steps=20)["q"][:, 0].numpy()
    term = author.task_part(task, "Posture", "Data", when="running")
    attribute = term.CreateAttribute("position", Sdf.ValueTypeNames.DoubleArray, False)
    stage.SetTimeCodesPerSecond(100)
    for code, row in enumerate(np.degrees(q)):
        attribute.Set(row.tolist(), code)
    gravity = stage.GetPrimAtPath("/World/Physics").GetAttribute("physics:gravityMagnitude")
    gravity.Set(4.0)
    author.task_part(task, "Variable", "G", attributes=gravity, positive=True)
    done = optimize(saved(stage, tmp_path), method="levenberg_marquardt")
    assert done.changes["/World/Physics.physics:gravityMagnitude"]["after"] == pytest.approx(9.81, rel=1e-6)
    done.save(tmp_path / "out", film=False)
    report = read_record(tmp_path / "out" / "record.json").more["identification"]
    assert report["deviations"]["/World/Physics.physics:gravityMagnitude"] < 1e-4
    assert "determine" in report["sentences"][0]


@pytest.mark.long
def test_several_starts(tmp_path):
    stage = Usd.Stage.Open(str(SCENES / "throw.usda"))
    stage.GetRootLayer().Export(str(tmp_path / "many.usda"))
    many = Usd.Stage.Open(str(tmp_path / "many.usda"))
    author.set_attributes(many.GetPrimAtPath("/World/Task"), {"starts": 3})
    many.Save()
    best = optimize(tmp_path / "many.usda", iterations=10, seed=3)
    assert best.solved and best.loss < 1e-9


def test_tasks_and_terms_made_in_python(tmp_path):
    stage, task = swing()
    stage.RemovePrim(task.GetPath())
    path = saved(stage, tmp_path)
    hit = Reach(subject="/World/Lower", target=(0.3, 0.0, 0.8), name="hit")
    made = Task(
        duration=0.2,
        terms=(hit,),
        variables=(VariableSpec(("/World/Lower/Shape.physics:density",), positive=True),),
        controls=(Knots(name="motors", count=3),),
        conditions=(Within(hit, 0.05),),
    )
    quiet = Function(function=lambda e: 0.1 * e.trajectory["qd"], when=running(), name="quiet")
    done = optimize(path, made, terms=[quiet], iterations=10)
    assert done.loss < done.before.loss and set(done.after.terms) == {"hit", "quiet"}
    x = done.result.x[None]
    rounded = dataclasses.replace(
        done.problem.choice(x),
        attributes={h: torch.as_tensor(h.rounded(v)) for h, v in done.problem.choice(x).attributes.items()},
    )
    with torch.no_grad():
        again = done.problem.total(done.problem.episode(rounded))[0].item()
    assert again == pytest.approx(done.loss, rel=1e-12)
    assert done.save(tmp_path / "out", film=False)


def test_a_loss_that_is_not_finite_at_the_start_is_named(tmp_path):
    stage, task = swing()
    reach(task)
    author.task_part(task, "Steps", "Motors")
    path = saved(stage, tmp_path)
    bad = Function(function=lambda e: e.trajectory["q"] * float("inf"), name="/World/Task/Mine")
    with pytest.raises(TaskError, match="/World/Task/Mine: its loss is (inf|nan) with the authored values"):
        optimize(path, terms=[bad])
    explosive = {"mjc:biasPrm": (0, 1e30, 0), "mjc:biasType": "affine"}
    author.set_attributes(stage.GetPrimAtPath("/World/Motor0"), explosive)
    with pytest.raises(TaskError, match="/World/Task: it cannot be simulated as authored"):
        optimize(saved(stage, tmp_path, "wild"))


def test_wrong_calls_are_refused(tmp_path):
    with pytest.raises(InputError, match="convert it"):
        optimize(tmp_path / "robot.xml")
    with pytest.raises(InputError, match="resume=True needs folder"):
        optimize(SCENES / "throw.usda", resume=True)
    with pytest.raises(InputError, match="nothing to resume"):
        optimize(SCENES / "throw.usda", folder=tmp_path / "empty", resume=True)


@pytest.mark.long
def test_bounce_shot(tmp_path):
    """Through an impact: the height after one bounce is a closed form, with which the answer agrees."""
    done = optimize(SCENES / "bounce_shot.usda")
    assert done.solved and done.loss < 1e-10
    vz = done.changes["/World/Ball.physics:velocity"]["after"][2]
    g, fall, duration = 9.81, 0.54, 0.6
    landing = (vz + np.sqrt(vz**2 + 2 * g * fall)) / g
    rebound, left = 0.8 * np.sqrt(vz**2 + 2 * g * fall), duration - landing
    assert 0.06 + rebound * left - 0.5 * g * left**2 == pytest.approx(0.5, abs=2e-3)  # steps of 0.5 ms
    done.save(tmp_path, film=False)
    check_folder(done, tmp_path)


def test_the_course_keeps_iterations_of_all_sizes():
    shown = [n for n in range(2000) if is_shown(n)]
    assert shown == [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
    course = Course()
    for n in range(8):
        course.see(
            Progress(HistoryEntry(n, 1.0 / (n + 1), 0.0, 0.0, 0), torch.full((2,), float(n)), torch.zeros(2), 0.0, dict)
        )
    assert [stop.iteration for stop in course.stops()] == [0, 1, 2, 5, 7]
    assert [float(stop.x[0]) for stop in course.stops()] == [0, 1, 2, 5, 7]


def test_a_scene_of_another_folder_is_solved(tmp_path, monkeypatch):
    """Its result lies over it, and what lies elsewhere is not opened for others."""
    for name in ("scene", "here"):
        (tmp_path / name).mkdir()
    scene = tmp_path / "scene" / "projectile.usda"
    scene.write_bytes((SCENES / "projectile.usda").read_bytes())
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.delenv("WARPSIM_ALLOW", raising=False)
    done = optimize(scene)
    done.save("out", film=False)
    with pytest.raises(SceneError, match="WARPSIM_ALLOW"):
        Simulator("out/result.usda")
