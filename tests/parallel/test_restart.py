"""A rank that is killed under `torchrun --max-restarts`: the search goes on from its checkpoint, to the same bits."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCENE = Path(__file__).resolve().parents[2] / "scenes" / "projectile.usda"
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
TASK = ("-m", "warpsim", "optimize", "scene.usda", "--starts", "5")


def ranks_of(output: Path) -> list[int]:
    """Processes that run the command with this output."""
    asked = subprocess.run(
        ["pgrep", "-f", "--", f"-u -m warpsim optimize .*{output.name}$"], capture_output=True, text=True
    )
    return [int(line) for line in asked.stdout.split()]


@pytest.mark.long
@pytest.mark.skipif(shutil.which("pgrep") is None, reason="pgrep finds the rank to kill")
def test_a_killed_rank_is_started_again_and_changes_nothing(tmp_path):
    shutil.copy(SCENE, tmp_path / "scene.usda")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    plain, killed = tmp_path / "plain_run", tmp_path / "killed_run"
    subprocess.run([*TORCHRUN, *TASK, "-o", plain.name], cwd=tmp_path, env=environment, check=True, timeout=300)
    job = subprocess.Popen(
        [*TORCHRUN, "--max-restarts", "2", *TASK, "-o", killed.name],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    until = time.monotonic() + 120
    while not (killed / "search.json").is_file() and time.monotonic() < until:
        time.sleep(0.05)
    running = ranks_of(killed)
    assert len(running) >= 2 and not (killed / "record.json").is_file()
    os.kill(running[-1], signal.SIGKILL)
    said, _ = job.communicate(timeout=300)
    assert job.returncode == 0, said
    assert said.count("worlds over 2 ranks") == 2  # it really began again
    first, second = (json.loads((folder / "record.json").read_text()) for folder in (plain, killed))
    assert second["trajectory"]["sha256"] == first["trajectory"]["sha256"]
    assert second["outcome"] == first["outcome"]
