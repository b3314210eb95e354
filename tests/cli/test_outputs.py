"""No command writes what it reads, nor over what others wrote unless told to; run twice, each replaces its own."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from pxr import Sdf

from simulator_support import PENDULUM_USD, PUCK
from task_scenes import reach, saved, swing
from warpsim.cli.main import main
from warpsim.core.errors import OutputError
from warpsim.io.scene_files import scene_files
from warpsim.io.usd import author
from warpsim.sim.simulator import Simulator

BASE = """#usda 1.0
(
    defaultPrim = "World"
)
def Xform "World" (
    references = @robot.usda@
)
{
    def Sphere "Extra" (
        payload = @extra.usda@
    )
    {
    }
}
"""


@pytest.fixture
def composed(tmp_path, monkeypatch) -> Path:
    """A folder with a scene: root over a sublayer that references a robot, whose prim has a payload."""
    monkeypatch.chdir(tmp_path)
    Path("robot.usda").write_text(PENDULUM_USD)
    Path("extra.usda").write_text('#usda 1.0\n(\n    defaultPrim = "E"\n)\ndef Sphere "E"\n{\n}\n')
    Path("base.usda").write_text(BASE)
    Path("scene.usda").write_text('#usda 1.0\n(\n  defaultPrim = "World"\n  subLayers = [@base.usda@]\n)\n')
    os.symlink("robot.usda", "soft.usda")
    os.link("robot.usda", "hard.usda")
    return tmp_path


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("target", ["scene.usda", "base.usda", "robot.usda", "extra.usda", "soft.usda", "hard.usda"])
@pytest.mark.parametrize(
    "command",
    [
        "simulate scene.usda --steps 2 -o {}",
        "simulate scene.usda --steps 2 --record {}",
        "convert scene.usda {}",
        "stress scene.usda -o {}",
    ],
)
def test_what_is_read_is_never_written(composed, command, target, capsys):
    before = _contents(composed)
    for more in ([], ["--force"]):
        assert main([*command.format(target).split(), *more]) == 1
        shown = capsys.readouterr().err
        assert "nothing is ever written over what it was made from" in shown and target in shown
    assert _contents(composed) == before


def test_replay_spares_its_record_and_the_scene(composed, capsys):
    assert main("simulate scene.usda --steps 2 --record run.json".split()) == 0
    before = _contents(composed)
    for target in ("run.json", "scene.usda", "robot.usda"):
        assert main(["replay", "run.json", "-o", target, "--force"]) == 1
        assert "is read by" in capsys.readouterr().err
    assert _contents(composed) == before
    for _ in range(2):
        assert main(["replay", "run.json", "-o", "again.json"]) == 0


def test_python_does_not_write_what_the_scene_read_either(composed):
    before = _contents(composed)
    trajectory = Simulator("scene.usda").rollout(steps=2)
    for target in ("scene.usda", "base.usda", "robot.usda", "soft.usda"):
        with pytest.raises(OutputError):
            trajectory.save(target)
    assert _contents(composed) == before


def test_a_sublayer_that_does_not_open_is_spared(composed, capsys):
    Path("base.usda").write_text("#usda 1.0\\n a slip of the pen")
    assert main("convert scene.usda base.usda --force".split()) == 1
    assert "base.usda is read by scene.usda" in capsys.readouterr().err


def test_companion_files_count_too(composed, capsys):
    """`-o run.usda` also writes run.animation.usdc, run.values.usda and run.npz."""
    shutil.copy("robot.usda", "run.values.usda")
    Path("over.usda").write_text('#usda 1.0\n(\n  defaultPrim = "World"\n  subLayers = [@run.values.usda@]\n)\n')
    assert main("simulate over.usda --steps 2 -o run.usda".split()) == 1
    assert "run.values.usda is read by over.usda" in capsys.readouterr().err
    Path("run.npz").write_bytes(b"mine")
    assert main("simulate scene.usda --steps 2 -o run.npz".split()) == 1
    assert "--force" in capsys.readouterr().err
    assert main("simulate scene.usda --steps 2 -o a.npz --record a.npz".split()) == 1
    assert "written twice" in capsys.readouterr().err
    assert Path("run.npz").read_bytes() == b"mine"


def test_mjcf_includes_and_meshes_are_spared(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("puck.xml").write_text(PUCK)
    Path("all.xml").write_text('<mujoco><include file="puck.xml"/></mujoco>')
    Path("meshes").mkdir()
    Path("meshes/a.obj").write_text("v 0 0 0")
    Path("deep.xml").write_text(
        '<mujoco><compiler meshdir="meshes"/><include file="all.xml"/><asset><mesh file="a.obj"/></asset></mujoco>'
    )
    assert {file.name for file in scene_files("deep.xml")} == {"deep.xml", "all.xml", "puck.xml", "a.obj"}
    Path("robot.urdf").write_text('<robot><mesh filename="package://meshes/a.obj"/></robot>')
    assert {file.name for file in scene_files("robot.urdf")} == {"robot.urdf", "a.obj"}
    before = _contents(tmp_path)
    assert main(["simulate", "all.xml", "--steps", "2", "--record", "puck.xml", "--force"]) == 1
    assert "puck.xml is read by all.xml" in capsys.readouterr().err
    assert _contents(tmp_path) == before


@pytest.mark.parametrize(
    ("command", "written"),
    [
        ("simulate scene.usda --steps 2 --quiet -o run.usda --record run.json", "run.usda run.npz run.json"),
        ("convert scene.usda out.usda", "out.usda"),
        ("convert scene.usda out.usdc", "out.usdc"),
        ("render scene.usda -o a.png --size 16x16", "a.png"),
        ("render scene.usda -o a.gif --size 16x16 --quiet --frames 2", "a.gif"),
        ("validity scene.usda --seconds 0.01 --plot a.png", "a.png"),
    ],
)
def test_ours_are_replaced_and_others_with_force_alone(composed, command, written, capsys):
    for _ in range(2):
        assert main(command.split()) == 0
    for name in written.split():
        Path(name).write_bytes(b"somebody's work")
        assert main(command.split()) == 1
        assert f"{name} exists" in capsys.readouterr().err
        assert Path(name).read_bytes() == b"somebody's work"
        assert main([*command.split(), "--force"]) == 0
        assert Path(name).read_bytes() != b"somebody's work"


def test_a_converted_robot_that_was_edited_is_spared(composed, capsys):
    assert main("convert scene.usda out.usda".split()) == 0
    layer = Sdf.Layer.OpenAsAnonymous("out.usda")
    Sdf.CreatePrimInLayer(layer, "/World/Task").specifier = Sdf.SpecifierDef
    layer.Export("out.usda")
    assert main("convert scene.usda out.usda".split()) == 1
    assert "was changed since" in capsys.readouterr().err
    assert Sdf.Layer.OpenAsAnonymous("out.usda").GetPrimAtPath("/World/Task")


def test_optimize_runs_twice_and_spares_what_it_reads(tmp_path, capsys):
    stage, task = swing()
    reach(task)
    author.task_part(task, "Knots", "Motors", count=2)
    scene = saved(stage, tmp_path)
    command = ["optimize", str(scene), "-o", str(tmp_path / "out"), "--quiet", "--iterations", "2", "--no-gif"]
    codes = [main(command) for _ in range(2)]
    assert codes[0] == codes[1] and codes[0] in (0, 3)
    assert json.loads((tmp_path / "out/search.json").read_text())["format"].startswith("warpsim")
    before = _contents(tmp_path / "out")
    capsys.readouterr()
    assert main(["optimize", str(tmp_path / "out/result.usda"), *command[2:], "--force"]) == 1
    assert "is read by" in capsys.readouterr().err
    (tmp_path / "out/record.json").write_text("{}")
    assert main(command) == 1
    assert "record.json exists" in capsys.readouterr().err
    assert _contents(tmp_path / "out") == {**before, "record.json": b"{}"}


def test_a_missing_or_unwritable_folder_is_told_before_the_run(composed, capsys):
    assert main("simulate scene.usda --steps 100000000 -o none/run.usda".split()) == 1
    assert "there is no folder 'none'" in capsys.readouterr().err
