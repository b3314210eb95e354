"""Damaged tasks, records, states of searches, MJCF and URDF give errors of our own or right results, nothing else."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

FUZZER = Path(__file__).parents[1] / "support" / "reader_fuzz.py"
KINDS = ("task", "record", "search", "mjcf", "urdf")


def run(kinds: tuple[str, ...], first: int, last: int) -> dict[str, dict[str, int]]:
    """Counts of outcomes by kind, from a process of its own: a crash there is a failure here."""
    command = [sys.executable, str(FUZZER), "+".join(kinds), str(first), str(last)]
    environment = {**os.environ, "PYTHONPATH": str(FUZZER.parents[2])}
    limit = 300 + 2 * len(kinds) * (last - first)  # s; the program itself gives up on a case that takes too long
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=limit)
    assert result.returncode == 0, f"seeds {first} to {last}: exit {result.returncode}\n{result.stdout[-4000:]}"
    return ast.literal_eval(result.stdout.splitlines()[-1])


def test_sample():
    for kind, counts in run(KINDS, 0, 100).items():
        assert counts["read"] + counts["error"] + counts["unparsable"] == 100, kind
        assert min(counts["read"], counts["error"]) >= 10, f"{kind}: the damage is too light or too heavy"


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_two_thousand(kind):
    run((kind,), 0, 2000)
