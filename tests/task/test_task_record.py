"""The record of an optimized task is a run record: replayed bit for bit in another process, compared by name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import warpsim as ws
from task_scenes import reach, saved, swing
from warpsim.check.records import compare, read_record, record_run, replay
from warpsim.check.records.plain import encode
from warpsim.cli.main import main
from warpsim.io.usd import author
from warpsim.sim.simulator import Simulator
from warpsim.task import Knots, Task, VariableSpec, optimize, read_task

PROJECT = Path(__file__).resolve().parents[2]


def arm(folder: Path, kind: str = "Knots", duration: tuple[float, float] | None = None, **more: object) -> Path:
    """An arm whose tip should reach a point, by motors."""
    stage, task = swing()
    reach(task, position=(0.75, 0, 0.8))
    author.set_attributes(task, {"iterations": 3, **({"durationRange": duration} if duration else {})})
    author.task_part(task, kind, "Motors", **more)
    return saved(stage, folder)


@pytest.mark.parametrize("varies", ["duration", pytest.param("gains", marks=pytest.mark.long)])
def test_a_replay_in_another_process_has_the_same_bits(varies, tmp_path):
    """Also of a closed loop, whose recorded actions are played back, and after the folder was moved."""
    closed = {"kind": "Feedback", "joints": ["/World/Joint0", "/World/Joint1"]}
    done = optimize(arm(tmp_path, **(closed if varies == "gains" else {"count": 3, "duration": (0.1, 0.4)})))
    assert (done.after.duration != done.before.duration) is (varies == "duration")
    done.save(tmp_path / "out", film=False)
    (tmp_path / "out").rename(tmp_path / "moved")
    found = subprocess.run(
        [sys.executable, "-m", "warpsim", "replay", str(tmp_path / "moved" / "record.json")],
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr + found.stdout
    assert "20 steps" in found.stdout and "identical bits" in found.stdout


def test_compare_names_what_differs_between_two_searches(tmp_path, capsys):
    scene = PROJECT / "scenes" / "projectile.usda"
    folders = [tmp_path / name for name in "abc"]
    for folder, method in zip(folders, ("lbfgs", "adam", "lbfgs"), strict=True):
        optimize(scene, method=method, iterations=2).save(folder, film=False)
    a, b, c = (read_record(folder / "record.json") for folder in folders)
    found = compare(a, b)
    assert found.inputs["task.search.method"][:2] == ("lbfgs", "adam")
    assert "task.source_sha256" not in found.inputs and not found.identical
    across = "/World/Plane.state:transX:physics:velocity"
    assert found.results[across][0] == "2" != found.results[across][1]
    assert found.results["success"] == ("True", "False") and "task not reached" in found.results["labels"][1]
    same = compare(a, c)
    assert same.identical and set(same.inputs) <= {"scene.path", "scene.file_sha256"}
    assert main(["compare", *(str(folder / "record.json") for folder in folders[:2])]) == 0
    assert "task.search.method: lbfgs → adam" in capsys.readouterr().out


def test_a_task_made_in_python_is_replayed_too(tmp_path):
    path = arm(tmp_path)
    task = read_task(path, Simulator(path).scene)
    made = Task(
        duration=0.2,
        terms=task.terms,
        variables=(VariableSpec(("/World/Lower/Shape.physics:density",), positive=True),),
        controls=(Knots(name="motors", count=3),),
    )
    done = optimize(path, made, iterations=2)
    done.save(tmp_path / "out", film=False)
    record = read_record(tmp_path / "out" / "record.json")
    assert "success" not in record.outcome and record.gradient["norms"]["/World/Lower/Shape.physics:density"] > 0
    assert record.actions["actuator"].any()
    again = replay(record)
    assert again.identical, again.text
    assert compare(record, again.record).inputs == {}


def test_the_record_of_a_result_is_that_of_a_rollout_made_again(tmp_path):
    """It is not simulated again for its record; every number is as if it were."""
    done = ws.optimize(Path(ws.__file__).parents[1] / "scenes" / "projectile.usda", iterations=1)
    done.save_result(tmp_path)
    kept = done.record(tmp_path / "result.usda")
    again = record_run(
        done.loaded.sim, done.loaded.steps, dict(done.after.inputs) or None, path=tmp_path / "result.usda"
    )
    for part in ("trajectory", "observations", "solver_status", "actuator_status", "horizon", "actions"):
        assert encode(getattr(kept, part)) == encode(getattr(again, part)), part
    for name, value in kept.parameters.items():
        assert np.array_equal(value, done.loaded.sim.parameter(name)[0], equal_nan=True), name
