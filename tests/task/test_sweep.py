"""`warpsim sweep`: every point is what the file with these values gives, and what fails stays in the table."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from warpsim.cli.main import main
from warpsim.core.errors import InputError
from warpsim.sim.simulator import Simulator
from warpsim.task import Varied, sweep
from warpsim.task.sweep_plot import sweep_plot
from warpsim.task.varied import read_varied

SCENES = Path(__file__).resolve().parents[2] / "scenes"
BALL = SCENES / "projectile.usda"
ACROSS, UP = (f"/World/Plane.state:{axis}:physics:velocity" for axis in ("transX", "transZ"))
BOB, GRAVITY = "/World/Pendulum/Bob.physics:mass", "/World/Physics.physics:gravityMagnitude"


def rows(path: Path) -> list[dict[str, str]]:
    lines = path.read_text().splitlines()
    assert lines[0].startswith("# written by warpsim")
    return list(csv.DictReader(lines[1:]))


def test_losses_are_those_of_a_ballistic_throw(tmp_path):
    found = sweep(BALL, {ACROSS: [1.0, 1.5, 2.0, 2.25], UP: [0.0, 1.0]})
    assert [point.values for point in found.points[:3]] == [(1.0, 0.0), (1.0, 1.0), (1.5, 0.0)]
    for point in found.points:
        np.testing.assert_allclose(point.loss, (3.0 * point.values[0] - 6.0) ** 2 / 2, rtol=1e-12, atol=1e-24)
        assert not point.reason
    assert found.best.values[0] == 2.0 and "least loss" in str(found)
    table, picture = found.save(tmp_path / "out")
    written = rows(table)
    assert [float(row["loss"]) for row in written] == [point.loss for point in found.points]
    assert [float(row[f"{ACROSS} (m/s)"]) for row in written[::2]] == [1.0, 1.5, 2.0, 2.25]
    assert Image.open(picture).size == (640, 900)


def test_a_point_that_cannot_be_simulated_keeps_its_reason_and_spoils_no_other():
    found = sweep(SCENES / "pendulum.usda", {BOB: [0.5, -1.0, 2.0], GRAVITY: [9.0, 10.0]}, steps=4)
    assert [bool(point.reason) for point in found.points] == [False, False, True, True, False, False]
    assert all("must be above 0" in point.reason and math.isinf(point.loss) for point in found.failed)
    well = sweep(SCENES / "pendulum.usda", {BOB: [0.5, 2.0], GRAVITY: [9.0, 10.0]}, steps=4)
    assert [p.results for p in found.points if not p.reason] == [p.results for p in well.points]
    assert "2 could not be simulated" in str(found)


def test_without_a_task_points_are_rollouts_of_their_own():
    found = sweep(SCENES / "pendulum.usda", {GRAVITY: [8.0, 12.0]}, steps=30)
    sim = Simulator(SCENES / "pendulum.usda")
    joint = sim.joint_names[0]
    for point in found.points:
        with torch.no_grad():
            end = sim.rollout(30, parameters={GRAVITY: point.values[0]}, outputs=("kinetic_energy", "potential_energy"))
        assert point.results["kinetic_energy (J)"] == float(end.kinetic_energy[-1, 0])
        assert point.results["potential_energy (J)"] == float(end.potential_energy[-1, 0])
        assert point.results[f"q {joint}"] == float(end.q[-1, 0, 0])
        assert point.success is None and math.isnan(point.loss)


def test_values_are_those_that_the_file_would_store():
    found = sweep(SCENES / "pendulum.usda", {BOB: [0.1]}, steps=1)
    assert found.points[0].values == (float(np.float32(0.1)),)
    assert found.csv().splitlines()[2].startswith("0,0.1,")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/A.b:c=1:2:3", Varied("/A.b:c", (1.0, 1.5, 2.0))),
        ("/A.b:c=1:100:3:log", Varied("/A.b:c", (1.0, 10.0, 100.0))),
        ("/A.v[2]=0.5,-4", Varied("/A.v", (0.5, -4.0), 2)),
        ("/A.v=7:9:1", Varied("/A.v", (7.0,))),
    ],
)
def test_what_a_command_line_says(text, expected):
    made = read_varied(text)
    assert (made.path, made.component) == (expected.path, expected.component)
    np.testing.assert_allclose(made.values, expected.values, rtol=1e-15)


@pytest.mark.parametrize(
    "text", ["", "/A.b", "/A.b=", "/A.b=1:2", "/A.b=1:2:x", "/A.b=0:1:3:log", "/A.b=1:2:0", "/A[x]=1"]
)
def test_what_a_command_line_must_not_say(text):
    with pytest.raises(InputError, match="LOW:HIGH:COUNT"):
        read_varied(text)


def test_what_cannot_be_varied_is_refused():
    for vary, said in (
        ({}, "something to vary"),
        ({"/World/Nobody.physics:mass": [1.0]}, "Nobody"),
        ({"/World/Ball.physics:diagonalInertia": [1.0]}, "choose one of them"),
        ([Varied("/World/Ball.physics:mass", (1.0,), 0)], "no components"),
        ([Varied("/World/Ball.physics:diagonalInertia", (1.0,), 3)], "components 0 … 2"),
        ([Varied("/World/Ball.physics:mass", (1.0,))] * 2, "varied twice"),
        ({"/World/Ball.physics:mass": [math.nan]}, "finite values"),
    ):
        with pytest.raises(InputError, match=said):
            sweep(BALL, vary)
    with pytest.raises(InputError, match="the task says how long"):
        sweep(BALL, {ACROSS: [1.0]}, steps=3)


def test_the_command_writes_a_table_and_a_picture(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = ["sweep", str(BALL), "--vary", f"{ACROSS}=1:3:3", "--vary", "/World/Ball.physics:mass=1,-1", "--quiet"]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "6 points" in shown and "3 could not be simulated" in shown and "wrote out/projectile/sweep.csv" in shown
    assert [bool(row["reason"]) for row in rows(Path("out/projectile/sweep.csv"))] == [False, True] * 3
    assert main(command) == 0  # replaces what it wrote
    Path("out/projectile/sweep.csv").write_text("mine")
    assert main(command) == 1 and Path("out/projectile/sweep.csv").read_text() == "mine"
    assert "--force" in capsys.readouterr().err
    assert main(["sweep", str(BALL), "--vary", "/World/Ball.physics:mass=-1,-2", "--quiet", "-o", "none"]) == 1


def test_a_picture_shows_failures_and_a_map():
    points = [((x, y), math.nan if x == y == 1.0 else x + y, None) for x in (0.0, 1.0) for y in (0.0, 1.0)]
    picture = sweep_plot("title", ["a", "b"], points, "loss")
    assert picture.shape == (900, 640, 3)
    colors = {tuple(color) for color in picture.reshape(-1, 3).tolist()}
    assert {(150, 150, 150), (200, 40, 40), (33, 64, 128)} <= colors
