"""Simulators, trajectories and policies pickled, deep-copied and saved by torch."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from simulator_support import arm
from warpsim.core.errors import InputError, SceneError
from warpsim.sim.simulator import Simulator

THROW = Path(__file__).resolve().parents[2] / "scenes" / "throw.usda"
BALL = "/World/Ball"


def by_torch(thing):
    memory = io.BytesIO()
    torch.save(thing, memory)
    memory.seek(0)
    return torch.load(memory, weights_only=False)


WAYS = {"pickle": lambda thing: pickle.loads(pickle.dumps(thing)), "deepcopy": copy.deepcopy, "torch": by_torch}
ways = pytest.mark.parametrize("way", WAYS)


@ways
def test_a_simulator_comes_back_with_its_parameters_and_state(way):
    sim = Simulator(arm(), worlds=2, controls=("joint_force",), outputs=("com",))
    density = sim.parameter("shape.density")[0].mul(2.0).requires_grad_()
    sim.set_parameters({"shape.density": density})
    sim.reset(q=torch.tensor([[0.1, 0.2], [0.3, 0.4]], dtype=torch.float64, requires_grad=True))
    sim.step(torch.ones(2, 2))
    made = WAYS[way](sim)
    assert made is not sim and made.time == sim.time
    assert (made.control_names, made.outputs, made.worlds) == (sim.control_names, sim.outputs, sim.worlds)
    for a, b in ((made.state, sim.state), (made.step(), sim.step()), (made.rollout(4), sim.rollout(4))):
        for name in ("q", "qd"):
            assert torch.equal(a[name], b[name]), name
    made.step()
    assert made.time > sim.time  # they share nothing
    assert not made.rollout(2).q.requires_grad


def test_a_simulator_is_saved_as_its_file(tmp_path):
    source = tmp_path / "throw.usda"
    shutil.copy(THROW, source)
    sim = Simulator(source)
    velocity = sim.attribute(f"{BALL}.physics:velocity")
    sim.set_parameters({velocity: velocity.value + 1.0})
    saved = pickle.dumps(sim)
    assert len(saved) < 20_000
    made = pickle.loads(saved)
    assert made.path == source and torch.equal(made.rollout(5).q, sim.rollout(5).q)
    made.rollout(5).save(tmp_path / "motion.usda")
    del sim, made, velocity  # their stages hold the layer as it was
    gc.collect()
    source.write_text(source.read_text().replace("physics:mass = ", "physics:mass = 1"))
    with pytest.raises(SceneError, match="throw.usda is not what it was when the simulator was saved"):
        pickle.loads(saved)
    source.unlink()
    with pytest.raises(InputError, match="no file"):
        pickle.loads(saved)


@ways
def test_a_trajectory_comes_back_with_names_and_values(way, tmp_path):
    sim = Simulator(THROW, worlds=2)
    mass = torch.tensor([0.5, 0.75], dtype=torch.float64, requires_grad=True)
    trajectory = sim.rollout(5, parameters={f"{BALL}/Shape.physics:mass": mass})
    made = WAYS[way](trajectory)
    assert type(made) is type(trajectory)
    for name, tensor in trajectory.items():
        assert torch.equal(made[name], tensor) and not made[name].requires_grad, name
    np.testing.assert_array_equal(made.times, trajectory.times)
    assert torch.equal(made.body_position(BALL), trajectory.body_position(BALL))
    files = [part.save(tmp_path / f"{i}.usda", world=1) for i, part in enumerate((made, WAYS[way](made), trajectory))]
    assert [float(Simulator(file[0]).attribute(f"{BALL}/Shape.physics:mass").value) for file in files] == [0.75] * 3
    made.q.fill_(0.0)
    assert trajectory.q.any()


@ways
def test_a_state_comes_back(way):
    sim = Simulator(arm())
    state = sim.step(torch.ones(1, 2, requires_grad=True))
    made = WAYS[way](state)
    assert torch.equal(made.joint_position("elbow"), state.joint_position("elbow"))
    assert torch.equal(sim.rollout(3, start=made).q, sim.rollout(3, start=state).q)


@ways
def test_a_network_policy_comes_back(way):
    sim = Simulator(arm(), worlds=2)
    policy = sim.network_policy(hidden=(8,), seed=3)
    made = WAYS[way](policy)
    for in_kernels in (True, False):
        found, expected = (sim.rollout_policy(p, 4, q=[0.1, 0.2], in_kernels=in_kernels) for p in (made, policy))
        assert torch.equal(found.q, expected.q)
    with torch.no_grad():
        made.layers[0].weight.zero_()
    assert not torch.equal(made.weights(), policy.weights())
