"""Damaged stages give errors or ledger entries: never a crash, a hang or silence."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from usd_fuzz import rich_stage
from warpsim.io.usd.reader import read_usd

FUZZER = Path(__file__).parents[1] / "support" / "usd_fuzz.py"


def run(first: int, last: int) -> dict[str, int]:
    """Counts of outcomes, from a process of its own: a crash there is a failure here."""
    command = [sys.executable, str(FUZZER), str(first), str(last)]
    environment = {**os.environ, "PYTHONPATH": str(FUZZER.parents[2])}
    limit = 60 + 2 * (last - first)  # s; the program itself gives up on a stage that takes too long, unless USD hangs
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=limit)
    assert result.returncode == 0, f"seeds {first} to {last}: exit {result.returncode}\n{result.stdout[-4000:]}"
    return ast.literal_eval(result.stdout.splitlines()[-1])


def test_undamaged_stage_is_fully_understood():
    scene = read_usd(rich_stage(), strict=True)
    assert len(scene.bodies) == 6


def test_sample():
    counts = run(0, 200)
    assert counts["read"] > 50
    assert counts["error"] > 50


@pytest.mark.long
@pytest.mark.parametrize("block", range(100))
def test_hundred_thousand(block):
    run(1000 * block, 1000 * (block + 1))
