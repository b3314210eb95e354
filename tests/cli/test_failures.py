"""Hostile input on the command line: a sentence with what to do, exit code 1, never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from task_scenes import reach, saved, swing
from warpsim.cli.failures import explain
from warpsim.cli.main import main
from warpsim.io.usd import author

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def scene(tmp_path, monkeypatch) -> Path:
    """A file with a task, in the current folder."""
    monkeypatch.chdir(tmp_path)
    return _task_file(tmp_path, "scene")


def _task_file(folder: Path, name: str, *, knots: int = 2, **settings: object) -> Path:
    stage, task = swing()
    reach(task)
    author.task_part(task, "Knots", "Motors", count=knots)
    author.set_attributes(task, settings)
    return saved(stage, folder, name)


def _told(capsys, *command: object) -> str:
    """What a command that fails says."""
    capsys.readouterr()
    assert main([str(part) for part in command]) == 1
    shown = capsys.readouterr().err
    assert "Traceback" not in shown and "fault of warpsim" not in shown
    return shown


def test_damaged_records(scene, capsys):
    assert main(["simulate", "scene.usda", "--steps", "3", "--record", "run.json", "--quiet"]) == 0
    data = json.loads(Path("run.json").read_text())
    bad = Path("bad.json")
    for name in ("scene", "settings", "initial_state", "actions", "trajectory", "parameters", "horizon", "versions"):
        for value in (None, 3, [], "x"):
            bad.write_text(json.dumps({**data, name: value}))
            assert "bad.json" in _told(capsys, "replay", bad)
            assert "bad.json" in _told(capsys, "compare", "run.json", bad)
    for actions in ({"actuator": 3}, {"actuator": {"array": "float64", "shape": [2, 9], "data": []}}, {"nobody": []}):
        bad.write_text(json.dumps({**data, "actions": actions}))
        _told(capsys, "replay", bad)
    text = Path("run.json").read_text()
    for damaged in (text[:400], text[:-3], "", "[]", "[" * 50_000, "\x00" * 10):
        bad.write_text(damaged)
        assert "bad.json" in _told(capsys, "replay", bad)
    bad.write_bytes(bytes(range(256)))
    assert "bad.json" in _told(capsys, "replay", bad)


def test_a_damaged_search_is_not_gone_on_with(scene, capsys):
    command = ["optimize", "scene.usda", "-o", "out", "--no-gif", "--quiet", "--iterations", "1", "--force"]
    assert main(command) == 3
    state = Path("out/search.json")
    text = state.read_text()
    changed = json.loads(text)
    changed["state"]["iterate"] = 3
    for damaged in (text[:300], "", "{}", "[]", "[" * 50_000, json.dumps(changed), text.replace("lbfgs", "adam")):
        state.write_text(damaged)
        assert "out/search.json is damaged" in _told(capsys, *command, "--resume")
    state.write_text(text)
    assert main([*command, "--resume"]) == 3


def test_numbers_that_are_too_large(scene, capsys, tmp_path):
    assert "at most 2147483647" in _told(capsys, "simulate", "scene.usda", "--seconds", 1e300)
    assert "at most 2147483647" in _told(capsys, "simulate", "scene.usda", "--steps", 10**30)
    assert "at most 2147483647" in _told(capsys, "simulate", "scene.usda", "--worlds", 10**12)
    assert "at most 2147483647" in _told(capsys, "gradcheck", "scene.usda", "--steps", 10**15)
    assert "at most 2147483647" in _told(capsys, "validity", "scene.usda", "--seconds", 1e300)
    _task_file(tmp_path, "long", duration=1e300)
    assert "/World/Task: duration is 1e+300 s" in _told(capsys, "optimize", "long.usda", "-o", "out")
    _task_file(tmp_path, "knots", knots=2**31 - 1)
    assert "/World/Task/Motors: 2147483647 knots" in _told(capsys, "optimize", "knots.usda", "-o", "out")
    Path("units.usda").write_text(scene.read_text().replace("metersPerUnit = 1", "metersPerUnit = 1e300"))
    assert "units.usda: metersPerUnit is 1e+300" in _told(capsys, "inspect", "units.usda")
    with pytest.raises(SystemExit):
        main(["simulate", "scene.usda", "--seed", "-1"])
    assert "0 or more" in capsys.readouterr().err


def test_memory_is_asked_for_before_it_is_gone(scene, capsys):
    shown = _told(capsys, "simulate", "scene.usda", "--steps", 2_000_000_000, "--quiet")
    assert "of memory, and" in shown and "--fps" in shown


def test_two_thousand_nested_prims_are_read(scene, capsys):
    depth = 2000
    text = '#usda 1.0\n(\n    defaultPrim = "A0"\n)\n' + "".join(f'def Xform "A{k}"\n{{\n' for k in range(depth))
    Path("nest.usda").write_text(text + "}\n" * depth)
    assert main(["inspect", "nest.usda"]) == 0
    assert "nothing in this scene can move" in _told(capsys, "simulate", "nest.usda")


def test_what_the_source_lacks_is_told_of_the_source_alone(scene, capsys):
    slip = "custom float physics:gravityMagnitud = 3\n        double duration"
    scene.write_text(scene.read_text().replace("double duration", slip, 1))
    assert main(["optimize", "scene.usda", "-o", "out", "--no-gif", "--quiet", "--iterations", "1"]) == 3
    shown = capsys.readouterr().err
    assert "scene.usda has physics that is not simulated: /World/Task: physics:gravityMagnitud" in shown
    assert "result.usda" not in shown


def test_the_command_line_names_its_own_flags(tmp_path, capsys):
    (tmp_path / "a.xml").write_text(
        '<mujoco><worldbody><body><joint type="ball"/><geom size="1"/></body></worldbody>'
        '<actuator><muscle name="m" joint="j"/></actuator></mujoco>'
    )
    (tmp_path / "b.xml").write_text(
        '<mujoco><worldbody><body name="b"><joint name="j"/><geom size="1"/></body></worldbody><actuator>'
        '<adhesion body="world" ctrlrange="0 1"/></actuator></mujoco>'
    )
    shown = _told(capsys, "inspect", tmp_path / "b.xml")
    assert "--lenient" in shown and "strict=" not in shown
    assert "correct the file there" in _told(capsys, "inspect", tmp_path / "a.xml")


def test_files_that_are_not_what_they_are_called(tmp_path, monkeypatch, capsys, rng):
    monkeypatch.chdir(tmp_path)
    Path("noise.usda").write_bytes(rng.bytes(1000))
    for command in (
        "inspect noise.usda",
        "stress noise.usda",
        "render noise.usda -o a.png",
        "optimize noise.usda -o o",
    ):
        shown = _told(capsys, *command.split())
        assert "noise.usda: USD cannot open it" in shown and "pxrInternal" not in shown
    Path("cut.xml").write_text("<mujoco")
    assert "cut.xml" in _told(capsys, "convert", "cut.xml", "a.usda")


def test_targets_that_are_full(scene, small_disk, capsys):
    disk = small_disk("16k")
    (disk / "old.json").write_text('{"format": "warpsim"}')
    shown = _told(capsys, "simulate", "scene.usda", "--steps", 200, "--quiet", "--record", disk / "old.json")
    assert "No space left on device" in shown and "unchanged" in shown
    assert (disk / "old.json").read_text() == '{"format": "warpsim"}'
    shown = _told(capsys, "optimize", "scene.usda", "-o", disk / "out", "--quiet", "--no-gif", "--iterations", 1)
    assert "No space left on device" in shown


def test_targets_that_are_read_only(scene, small_disk, capsys):
    disk = small_disk("1m")
    done = subprocess.run(["mount", "-o", "remount,ro", str(disk)], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("this machine does not let the tests remount a disk")
    shown = _told(capsys, "simulate", "scene.usda", "--steps", 2, "--quiet", "-o", disk / "run.usda")
    assert "cannot be written" in shown or "read-only" in shown


def _run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "warpsim", *command],
        env={**os.environ, "PYTHONPATH": str(PROJECT), **environment},
        capture_output=True,
        check=False,
        encoding="utf-8",
        errors="replace",
    )


def test_a_terminal_that_knows_ascii_alone(scene):
    plain = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    done = _run("inspect", "scene.usda", **plain)
    assert done.returncode == 0, done.stderr
    assert "2 bodies, 2 joints" in done.stdout and "Traceback" not in done.stderr


def test_a_full_or_read_only_kernel_cache(scene, small_disk):
    disk = small_disk("100k")
    done = _run("simulate", "scene.usda", WARP_CACHE_PATH=str(disk / "cache"))
    assert done.returncode == 1 and "set WARP_CACHE_PATH to a folder" in done.stderr and "Traceback" not in done.stderr
    (disk / "file").write_text("")
    done = _run("simulate", "scene.usda", WARP_CACHE_PATH=str(disk / "file" / "cache"))
    assert done.returncode == 1 and "set WARP_CACHE_PATH to a folder" in done.stderr and "Traceback" not in done.stderr


def test_faults_of_ours_ask_to_be_reported():
    assert "--traceback" in explain(ZeroDivisionError("division by zero"))
    assert "fewer worlds" in explain(RuntimeError("DefaultCPUAllocator: can't allocate memory"))
    assert "nested too deeply" in explain(RecursionError())
    assert explain(OSError(28, "No space left on device", "/a")).startswith("No space left on device '/a'; free some")
