"""The quick start reaches its target."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "quickstart.py"


@pytest.mark.long
def test_the_arm_reaches_its_target(tmp_path):
    spec = importlib.util.spec_from_file_location("quickstart", EXAMPLE)
    quickstart = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(quickstart)
    assert quickstart.main(str(tmp_path / "reach.usda")) < 0.01
    assert (tmp_path / "reach.usda").is_file()
