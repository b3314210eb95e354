"""Parameters and states given in a form that nothing can be made of."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from warpsim.core.errors import InputError
from warpsim.sim.simulator import Simulator

SCENE = Path(__file__).resolve().parents[2] / "scenes" / "pendulum.usda"


@pytest.fixture(scope="module")
def sim() -> Simulator:
    return Simulator(SCENE, worlds=3)


def test_parameters_are_given_by_name(sim):
    for call in (sim.set_parameters, lambda given: sim.rollout(1, parameters=given)):
        with pytest.raises(InputError, match="given by name, e.g. {'body.mass': …}, not as a list"):
            call([("world.timestep", 0.1)])
        with pytest.raises(InputError, match="3 names no parameter"):
            call({3: 0.1})


def test_a_state_that_is_not_finite_is_refused_and_changes_nothing(sim):
    sim.reset(q=[0.25])
    q = torch.tensor([[0.1], [math.nan], [math.inf]], dtype=torch.float64)
    with pytest.raises(InputError, match="q of world 1 is not finite; nothing was reset"):
        sim.reset(q=q)
    with pytest.raises(InputError, match="qd of world 0 is not finite"):
        sim.reset(qd=[math.nan])
    with pytest.raises(InputError, match="q of world 2"):
        sim.reset(worlds=[0, 2], q=q)
    assert sim.state.q.flatten().tolist() == [0.25] * 3
    sim.reset(worlds=[0], q=q)  # what the others were given does not count
    assert sim.state.q.flatten().tolist() == [0.1, 0.25, 0.25]
