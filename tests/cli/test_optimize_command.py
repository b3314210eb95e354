"""`warpsim optimize`: what it prints and writes, its exit codes, and going on after an interruption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from PIL import Image

from page_support import unpacked
from task_scenes import loaded_loss, reach, saved, swing
from warpsim.check.records import read_record
from warpsim.cli.main import main
from warpsim.io.usd import author
from warpsim.task import folder, optimize
from warpsim.view.raycast.compare import render_pair

PROJECT = Path(__file__).resolve().parents[2]
ITERATIONS = 60


def test_it_says_solved(tmp_path, capsys):
    scene = str(PROJECT / "scenes" / "throw.usda")
    assert main(["optimize", scene, "-o", str(tmp_path / "out"), "--quiet", "--budget", "8MB"]) == 0
    printed = capsys.readouterr().out
    for words in ("/World/Ball.physics:velocity: (2, 0, 1.5) → (2.5,", "m/s", "SOLVED", "Hit: distance", "result.usda"):
        assert words in printed
    assert "NOT SOLVED" not in printed
    page = tmp_path / "out" / "result.html"
    assert printed.splitlines()[-1].endswith(str(page))
    shown = unpacked(page.read_text(encoding="utf-8")).header
    iterations = [take["iteration"] for take in shown["takes"]]
    assert iterations[:2] == [None, None] and iterations[2:5] == [0, 1, 2]
    assert iterations[-1] == shown["loss"]["iterations"][-1]
    assert shown["takes"][-1]["loss"] == pytest.approx(shown["loss"]["losses"][-1])
    assert [target["name"] for target in shown["targets"]] == ["/World/Task/Hit"]
    with Image.open(tmp_path / "out" / "before_after.gif") as film:
        assert film.n_frames == 11 and film.size[0] > 2 * film.size[1]


def test_the_verdict_comes_before_the_pictures(tmp_path, capsys, monkeypatch):
    seen: list[str] = []

    def watched(*arguments, **options):
        seen.append(capsys.readouterr().out)
        assert (tmp_path / "out" / "throw" / "result.usda").is_file()
        return render_pair(*arguments, **options)

    monkeypatch.setattr(folder, "render_pair", watched)
    monkeypatch.chdir(tmp_path)
    assert main(["optimize", str(PROJECT / "scenes" / "throw.usda"), "--quiet"]) == 0  # into out/NAME
    assert "SOLVED" in seen[0] and "wrote" not in seen[0]
    assert "wrote" in capsys.readouterr().out and (tmp_path / "out" / "throw" / "before_after.gif").is_file()


def test_it_says_not_solved(tmp_path, capsys):
    stage, task = swing()
    reach(task, position=(9, 0, 0))
    author.task_part(task, "Knots", "Motors", count=2)
    scene = str(saved(stage, tmp_path))
    arguments = ["optimize", scene, "-o", str(tmp_path / "out"), "--no-gif", "--quiet", "--iterations", "2"]
    assert main(arguments) == 3
    assert "(needs ≤ 10 mm): no\nNOT SOLVED" in capsys.readouterr().out
    assert main([*arguments, "--resume", "--method", "adam"]) == 1
    assert "was saved with method 'lbfgs', not 'adam'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["scenes/pendulum.usda", "-o", "{tmp}/out"], "no WarpsimTask prim"),
        (["scenes/throw.usda", "-o", "{tmp}/out.usda"], "a result is a folder"),
        (["scenes/throw.usda", "-o", "{tmp}/out", "--task", "/World/Tisk"], "did you mean '/World/Task'"),
        (["scenes/nothing.usda", "-o", "{tmp}/out"], "no file"),
        (["pyproject.toml", "-o", "{tmp}/out"], "tasks live in USD files"),
    ],
)
def test_wrong_command_lines(arguments, words, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(PROJECT)
    assert main(["optimize", *(a.format(tmp=tmp_path) for a in arguments)]) == 1
    assert words in capsys.readouterr().err


@pytest.fixture(scope="module")
def long_search(tmp_path_factory) -> tuple[Path, list[float], float]:
    """A file whose search takes some seconds, its losses, and the loss it ends with."""
    folder = tmp_path_factory.mktemp("long")
    stage, task = swing()
    reach(task, position=(0.5, 0, 1.3))
    author.set_attributes(task, {"method": "adam", "iterations": ITERATIONS})
    author.task_part(task, "Steps", "Motors")
    path = saved(stage, folder)
    done = optimize(path)
    return path, [row.loss for row in done.result.history], done.loss


@pytest.mark.parametrize("how", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long), signal.SIGKILL])
def test_interrupted_and_resumed(how, long_search, tmp_path):
    """The best so far is on disk as a scene; going on makes the iterations of an unperturbed run, bit for bit."""
    scene, losses, end = long_search
    folder = tmp_path / "out"
    state = folder / "search.json"
    command = ["optimize", str(scene), "-o", str(folder), "--no-gif", "--quiet"]
    process = subprocess.Popen(
        [sys.executable, "-m", "warpsim", *command],
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while not state.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(how)
    assert process.wait(60) == (-signal.SIGKILL if how == signal.SIGKILL else 130)
    done = len(json.loads(state.read_text())["state"]["history"])
    assert 0 < done < ITERATIONS, "the signal came too late for this machine"
    assert loaded_loss(folder / "result.usda") <= losses[0]
    main([*command, "--resume"])
    record = read_record(folder / "record.json")
    assert [row["loss"] for row in record.more["result"]["history"]] == losses
    assert record.outcome["loss"] == end == loaded_loss(folder / "result.usda")
