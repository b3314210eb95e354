"""What differences can know: rounding of the state, carried through a window, hides the smallest derivatives."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from warpsim.check.gradcheck.check import _carried
from warpsim.check.gradcheck.probe import Point
from warpsim.io.mjcf import read_mjcf
from warpsim.sim.simulator import Simulator

ZOO = Path(os.environ.get("WARPSIM_ZOO", Path(__file__).resolve().parents[3] / "shared" / "zoo"))


def test_rounding_of_the_state_counts_by_its_slopes():
    state = {"q": torch.tensor([3.0, -2.0]), "qd": torch.tensor([0.5, 0.0]), "turn": torch.tensor([0.6, 0.8, 0.0, 0.0])}
    slopes = {"q": torch.tensor([-10.0, 1.0]), "qd": torch.tensor([2.0, 7.0]), "turn": torch.tensor([1.0, -2.0, 0.5])}
    assert _carried(Point(state, {}, {}), slopes) == pytest.approx(30.0 + 2.0 + 1.0 + 0.8 * 3.5)


@pytest.mark.long
@pytest.mark.skipif(not ZOO.is_dir(), reason="WARPSIM_ZOO names no folder of models")
@pytest.mark.parametrize("name", ["tiago_position", "tiago_motor"])
def test_small_slopes_beside_steep_ones_are_not_called_wrong(name):
    """Slopes of 1e-9 beside 93: rounding of q moves the loss by 3e-14, which steps of 1e-3 make 1e-11 of a slope."""
    assert Simulator(read_mjcf(ZOO / "pal_tiago" / f"{name}.xml")).gradcheck(steps=60, seed=0).ok
