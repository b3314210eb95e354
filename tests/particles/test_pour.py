"""Pouring by gradients: a small cup quickly, the scene of the arm and the mug in the long tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pxr import Usd

import warpsim as ws
from liquid_scenes import arm_with_cup
from page_support import unpacked
from warpsim.check.records import read_record, replay
from warpsim.core.errors import TaskError
from warpsim.io.usd import author

POUR = Path(__file__).parents[2] / "scenes" / "pour.usda"


def small_pour(path: Path, **task_options) -> Path:
    """An arm that tilts its cup by one radian, too little to pour, above an open box."""
    arm_with_cup(path, steps_per_second=250, bulk_modulus=2e4, substeps=4)
    stage = Usd.Stage.Open(str(path))
    world = stage.GetPrimAtPath("/World")
    basin = author.box(world, "Basin", (0.08, 0.08, 0.05), position=(0.25, 0, 0.36), collides=False)
    options = {"duration": 0.45, "method": "adam", "learningRate": 0.3, "iterations": 5, "stopAtSuccess": True}
    task = author.task(world, memoryBudget="64MB", **(options | task_options))
    tilt = np.array([[0.0, 0.0], [0.0, 0.5], [0.0, 1.0]])
    author.task_part(task, "Knots", "Motion", channel="driveTarget", count=3, values=tilt.ravel())
    author.task_part(task, "Fill", "Pour", subject="/World/Coffee", target=basin, tolerance=0.3)
    stage.GetRootLayer().Save()
    return path


def test_a_small_pour_is_solved_stops_there_and_is_recorded_in_little_room(tmp_path):
    done = ws.optimize(small_pour(tmp_path / "pour.usda"))
    assert done.before.verdicts[0].value >= 0.95  # share outside
    assert done.solved and done.after.verdicts[0].value <= 0.3
    assert done.result.stopped == "target" and done.result.iterations < 5
    written = done.save(tmp_path / "made", film=False)
    record = tmp_path / "made" / "record.json"
    assert record in written and record.stat().st_size < 1_000_000
    read = read_record(record)
    assert set(read.trajectory["matters"]) >= {"coffee.x", "coffee.v"} and "coffee.x" not in read.initial_state
    again = replay(read)
    assert again.identical, again.text
    assert "/World/Coffee" in str(unpacked((tmp_path / "made" / "result.html").read_text()))
    read.trajectory["sha256"] = ""
    read.trajectory["matters"]["coffee.v"]["crc32"][7] += 1
    assert f"coffee.v differs first at {read.trajectory['times'][7]:.6g} s" in replay(read).text


def test_stopping_at_success_needs_a_condition_and_one_start(tmp_path):
    path = small_pour(tmp_path / "pour.usda")
    with pytest.raises(TaskError, match="one start"):
        ws.optimize(path, starts=2)
    stage = Usd.Stage.Open(str(path))
    stage.GetPrimAtPath("/World/Task/Pour").GetAttribute("tolerance").Clear()
    stage.GetRootLayer().Save()
    with pytest.raises(TaskError, match="needs a condition of success"):
        ws.optimize(path)


def test_particles_in_a_wall_of_the_scene_are_refused(tmp_path):
    path = arm_with_cup(tmp_path / "arm.usda")
    scene = ws.read_usd(path)
    scene.matters[0].initial["x"][5] = [0.25, 0.0, 0.4975]  # the middle of the floor, 5 mm thick
    with pytest.raises(ws.WarpsimError, match=r"/World/Coffee: 1 particles are inside walls.*/World/Hand/Floor, a box"):
        ws.Simulator(scene)


@pytest.mark.long
def test_the_arm_pours_into_the_mug():
    done = ws.optimize(POUR)
    share = [1.0 - outcome.verdicts[0].value for outcome in (done.before, done.after)]
    print(f"share in the mug {share[0]:.3f} → {share[1]:.3f} in {done.result.iterations} iterations")
    assert share[0] <= 0.05 and share[1] >= 0.95 and done.solved
