"""`warpsim demo` and `warpsim init`: a start for those who have no scene, or no task, yet."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import numpy as np
import pytest
from pxr import Usd, UsdGeom

import warpsim as ws
from warpsim.cli.main import main
from warpsim.task import read_task

SCENES = Path(__file__).resolve().parents[2] / "scenes"
ROBOT = """
<mujoco>
  <worldbody>
    <body name="arm" pos="0 0 1">
      <joint name="hinge" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.02"/>
    </body>
  </worldbody>
  <actuator><motor name="motor" joint="hinge"/></actuator>
</mujoco>
"""


def test_the_demo_solves_its_task_from_any_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WARPSIM_ALLOW", raising=False)
    assert main(["demo", "--no-gif"]) == 0
    assert "SOLVED" in capsys.readouterr().out
    assert (tmp_path / "warpsim-demo" / "result.html").is_file()
    ws.read_usd("warpsim-demo/result.usda")  # what lies over an example scene may be opened


def test_example_scenes_are_found_by_name():
    assert ws.example_scene("throw").samefile(SCENES / "throw.usda")
    with pytest.raises(ws.UnknownNameError, match="throw"):
        ws.example_scene("thow")


def test_a_starter_task_lists_what_may_vary_and_can_be_solved(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("arm.xml").write_text(ROBOT)
    assert main(["init", "arm.xml"]) == 0
    scene = ws.read_usd("arm_task.usda")
    task = read_task("arm_task.usda", scene)
    assert task.variables == () or list(task.variables) == []
    stage = Usd.Stage.Open("arm_task.usda")
    part = stage.GetPrimAtPath(f"{task.name}/Reach")
    body = stage.GetPrimAtPath(part.GetRelationship("subject").GetTargets()[0])
    place = UsdGeom.XformCache().GetLocalToWorldTransform(body).ExtractTranslation()
    assert np.allclose(np.array(part.GetAttribute("position").Get()) - place, [0, 0, 0.1])
    listed = [p for p in stage.GetPrimAtPath(task.name).GetAllChildren() if p.GetTypeName() == "WarpsimVariable"]
    assert any("damping" in prim.GetName() for prim in listed) and not any(prim.IsActive() for prim in listed)
    sim = ws.Simulator("arm_scene.usda")
    for prim in listed:  # each of them is a handle, or says why it is none
        (path,) = prim.GetRelationship("attributes").GetTargets()
        try:
            sim.attribute(str(path))
        except ws.InputError as error:
            assert str(path) in str(error)
    assert main(["optimize", "arm_task.usda", "-o", "out", "--iterations", "2", "--no-gif", "--quiet"]) in (0, 3)
    assert "arm_task.usda" in capsys.readouterr().out


def test_a_starter_task_in_another_folder_finds_its_scene_without_complaint(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    Path("arm.xml").write_text(ROBOT)
    assert main(["init", "arm.xml", "-o", "made"]) == 0
    assert capfd.readouterr().err == ""
    assert read_task("made/arm_task.usda", ws.read_usd("made/arm_task.usda")).name


def test_a_starter_task_replaces_only_its_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copy(SCENES / "cartpole.usda", "cartpole.usda")
    assert main(["init", "cartpole.usda"]) == 0
    assert main(["init", "cartpole.usda"]) == 0  # its own, unchanged
    written = Path("cartpole_task.usda")
    written.write_text(written.read_text().replace("double duration = 1", "double duration = 2"))
    assert main(["init", "cartpole.usda"]) == 1
    assert "--force" in capsys.readouterr().err
    assert "duration = 2" in written.read_text()


def test_plans_and_captures_are_logged(caplog):
    sim = ws.Simulator(SCENES / "pendulum.usda")
    with caplog.at_level(logging.INFO, logger="warpsim"):
        sim.rollout(20)
    told = [record.getMessage() for record in caplog.records]
    assert any(text.startswith("plan: 20 steps") for text in told)
    assert any(text.startswith("captured") for text in told)
