"""Spaces of actions where controls have ranges, and where they have none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from warpsim.gym.environment import _ranges
from warpsim.sim.simulator import Simulator

SCENES = Path(__file__).resolve().parents[2] / "scenes"


def test_controls_without_ranges_may_be_any_number():
    sim = Simulator(SCENES / "pendulum.usda", controls=("joint_force",))
    low, high = _ranges(sim, np.float64)
    assert low.tolist() == [-np.inf] * sim.nv and high.tolist() == [np.inf] * sim.nv


def test_actuators_have_theirs_beside_other_controls():
    sim = Simulator(SCENES / "cartpole.usda", controls=("joint_force", "actuator"))
    low, high = _ranges(sim, np.float32)
    assert low.dtype == np.float32
    part = sim.control_slice("actuator")
    given = sim.scene.actuators[0].control_range
    assert (low[part].tolist(), high[part].tolist()) == ([given[0]], [given[1]])
    others = np.delete(high, np.arange(sim.control_size)[part])
    assert len(others) == sim.nv and np.isposinf(others).all()
