"""What a long gradient of a cloth takes, scratch of the solve included, as the system counts it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's count of resident memory")
def test_ten_seconds_of_a_swinging_cloth_are_differentiated_within_64_megabytes():
    """30² vertices, 1,000 steps."""
    script = ROOT / "tests" / "support" / "long_cloth.py"
    path = os.pathsep.join([str(ROOT), str(script.parent)])
    done = subprocess.run(
        [sys.executable, str(script), "30", "1000", "40MB"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    grown = int(done.stdout.split()[-1])
    assert 2e6 < grown <= 64e6
