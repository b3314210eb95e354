"""The example that throws a cloth: it arrives, and the page can be written."""

from __future__ import annotations

import importlib.util
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "cloth_throw.py"


def test_cloth_arrives_at_its_target(tmp_path):
    spec = importlib.util.spec_from_file_location("cloth_throw", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.main(tmp_path / "page.html")  # asserts that it arrives
    assert (tmp_path / "page.html").stat().st_size > 100_000
