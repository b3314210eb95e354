"""A rank that is killed under `torchrun --max-restarts`: the search goes on from its checkpoint, to the same bits."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from warpsim.learn import load_policy, read_log

SCENE = Path(__file__).resolve().parents[2] / "scenes" / "projectile.usda"
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
UPDATES = 25
TRAINING = ("-m", "warpsim", "train", "scene.usda", "--worlds", "8", "--updates", str(UPDATES), "--quiet")
TASK = ("-m", "warpsim", "optimize", "scene.usda", "--starts", "5")


pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("pgrep") is None, reason="pgrep finds the rank to kill"),
]


def ranks_of(output: Path) -> list[int]:
    """Processes that run the command with this output."""
    asked = subprocess.run(["pgrep", "-f", "--", f"-u -m warpsim .*{output.name}$"], capture_output=True, text=True)
    return [int(line) for line in asked.stdout.split()]


def killed_after(kept: str, command: tuple[str, ...], output: Path) -> str:
    """Runs a command on two ranks and kills one when a file has appeared in the output; what was said."""
    job = subprocess.Popen(
        [*TORCHRUN, "--max-restarts", "2", *command, "-o", output.name],
        cwd=output.parent,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    until = time.monotonic() + 240
    while not (output / kept).is_file() and time.monotonic() < until:
        time.sleep(0.05)
    running = ranks_of(output)
    assert len(running) >= 2 and not (output / "record.json").is_file()
    os.kill(running[-1], signal.SIGKILL)
    said, _ = job.communicate(timeout=600)
    assert job.returncode == 0, said
    assert said.count("worlds over 2 ranks") == 2  # it really began again
    return said


def test_a_killed_rank_is_started_again_and_changes_nothing(tmp_path):
    shutil.copy(SCENE, tmp_path / "scene.usda")
    plain, killed = tmp_path / "plain_run", tmp_path / "killed_run"
    subprocess.run([*TORCHRUN, *TASK, "-o", plain.name], cwd=tmp_path, env=ENVIRONMENT, check=True, timeout=300)
    killed_after("search.json", TASK, killed)
    first, second = (json.loads((folder / "record.json").read_text()) for folder in (plain, killed))
    assert second["trajectory"]["sha256"] == first["trajectory"]["sha256"]
    assert second["outcome"] == first["outcome"]


def test_a_training_goes_on_from_its_checkpoint(tmp_path):
    text = SCENE.with_name("ant_run.usda").read_text()
    often = text.replace("int seed = 0\n", "int seed = 0\n        int evaluateEvery = 5\n")
    assert often != text
    (tmp_path / "scene.usda").write_text(often)
    plain, killed = tmp_path / "plain_run", tmp_path / "killed_run"
    subprocess.run([*TORCHRUN, *TRAINING, "-o", plain.name], cwd=tmp_path, env=ENVIRONMENT, check=True, timeout=600)
    said = killed_after("checkpoint.pt", TRAINING, killed)
    assert "8 worlds over 2 ranks: rank 0: 4, rank 1: 4" in said
    for name in ("policy.pt", "last.pt"):
        here, there = (load_policy(folder / name).policy.state_dict() for folder in (plain, killed))
        assert here.keys() == there.keys() and all(torch.equal(here[key], there[key]) for key in here)
    here, there = (read_log(folder) for folder in (plain, killed))
    assert [replace(made, seconds=0.0) for made in here] == [replace(made, seconds=0.0) for made in there]
    assert len(here) == UPDATES
