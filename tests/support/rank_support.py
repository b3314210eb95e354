"""Starts jobs of several ranks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
JOB = Path(__file__).with_name("rank_job.py")


def torchrun(ranks: int, *command: object, more: tuple[str, ...] = (), **variables: str) -> subprocess.CompletedProcess:
    """Runs `torchrun --standalone --nproc-per-node ranks command…` in the project; with its output."""
    search = os.pathsep.join(map(str, (PROJECT, JOB.parent)))
    environment = {**os.environ, "PYTHONPATH": search, "OMP_NUM_THREADS": "1", **variables}
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", *more]
    return subprocess.run(
        [*launch, *map(str, command)], env=environment, capture_output=True, text=True, check=False, cwd=PROJECT
    )


def job(ranks: int, output: Path, mode: str, *arguments: object, more: tuple[str, ...] = (), **variables: str) -> dict:
    """What rank 0 of `rank_job.py` wrote."""
    done = torchrun(ranks, JOB, mode, output, *arguments, more=more, **variables)
    assert done.returncode == 0, done.stderr
    return json.loads(output.read_text())
