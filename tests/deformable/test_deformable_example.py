"""The examples with cloth: each asserts its own result, and its page can be written."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


QUICK, LONG = ("cloth_throw", "cloth_identify"), ("beam_prebend", "cable_route", "cloth_lay", "soft_grasp")


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.long) for name in LONG)])
def test_an_example_succeeds(name, tmp_path):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.main(str(tmp_path / "page.html"))
    assert (tmp_path / "page.html").stat().st_size > 100_000
