"""The same kernels in float32: how far they are from float64."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from finite_differences import relative_error
from precision_probe import probe

TESTS = Path(__file__).resolve().parents[1] / "support"
PARITY, GRADIENT = 1e-4, 1e-2


def run(code: list[str], **environment: str) -> subprocess.CompletedProcess:
    path = os.pathsep.join([str(TESTS.parents[1]), str(TESTS), os.environ.get("PYTHONPATH", "")])
    everything = {**os.environ, "PYTHONPATH": path, **environment}
    return subprocess.run([sys.executable, *code], env=everything, capture_output=True, text=True, check=False)


def test_an_unknown_precision_is_refused():
    ran = run(["-c", "import warpsim.core.precision"], WARPSIM_PRECISION="float16")
    assert ran.returncode != 0 and "use 'float64' or 'float32'" in ran.stderr


@pytest.mark.long
def test_float32_is_as_close_as_its_digits_allow(tmp_path):
    ran = run([str(TESTS / "precision_probe.py"), str(tmp_path / "single.npz")], WARPSIM_PRECISION="float32")
    assert ran.returncode == 0 and ran.stdout.split()[-1] == "float32", ran.stderr
    single, double = np.load(tmp_path / "single.npz"), probe()
    assert single["type"].dtype == np.float32 and double["type"].dtype == np.float64
    errors = {name: relative_error(single[name], double[name]) for name in double if double[name].size}
    kinds = {name: GRADIENT if "gradient" in name else PARITY for name in errors}
    print("largest:", {k: max(e for n, e in errors.items() if kinds[n] == k) for k in (PARITY, GRADIENT)})
    assert all(error < kinds[name] for name, error in errors.items()), errors
