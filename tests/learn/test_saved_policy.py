"""Policies in files: the same answers after loading, in ONNX too."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from warpsim.core.errors import InputError
from warpsim.learn import load_policy, save_policy, write_onnx
from warpsim.sim.simulator import Simulator

SCENES = Path(__file__).resolve().parents[2] / "scenes"
SENSES = ("height", "rotation", "local_velocity", "joint_position", "joint_velocity")


@pytest.fixture(scope="module")
def sim() -> Simulator:
    return Simulator(SCENES / "ant.usda", worlds=2, outputs=())


def made(sim: Simulator, activation: str = "elu"):
    policy = sim.network_policy(hidden=(9, 7), activation=activation, senses=SENSES, seed=4)
    with torch.no_grad():
        policy.mean.normal_(generator=torch.Generator().manual_seed(1))
        policy.deviation.uniform_(0.1, 3.0, generator=torch.Generator().manual_seed(2))
    return policy


def test_a_policy_is_loaded_as_it_was_saved(sim, tmp_path):
    policy = made(sim)
    path = save_policy(policy, tmp_path / "policy.pt", period=0.02, notes={"speed": 1.5})
    found = load_policy(path)
    assert (found.period, found.notes, found.hold(sim)) == (0.02, {"speed": 1.5}, 2)
    assert found.policy.shape == policy.shape
    with torch.no_grad():
        ours, theirs = (sim.rollout_policy(p, 8, hold=2).q for p in (policy, found.policy))
    assert torch.equal(ours, theirs)


def test_what_is_no_policy_for_the_scene_is_refused(sim, tmp_path):
    path = save_policy(made(sim), tmp_path / "policy.pt", period=0.015)
    with pytest.raises(InputError, match="no whole number of time steps"):
        load_policy(path).hold(sim)
    with pytest.raises(InputError, match="trained for another robot"):
        load_policy(path).hold(Simulator(SCENES / "cartpole.usda"))
    (tmp_path / "other.pt").write_bytes(b"nothing")
    with pytest.raises(InputError, match="is no policy"):
        load_policy(tmp_path / "other.pt")
    torch.save({"a": 1}, tmp_path / "third.pt")
    with pytest.raises(InputError, match="is no policy of ours"):
        load_policy(tmp_path / "third.pt")
    with pytest.raises(InputError, match="no file"):
        load_policy(tmp_path / "missing.pt")


@pytest.mark.parametrize("activation", ["elu", "tanh", "relu"])
def test_onnx_answers_the_same(sim, tmp_path, activation):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    policy = made(sim, activation)
    path = write_onnx(policy, tmp_path / "policy.onnx")
    features = 3 * torch.randn(
        50, len(policy.features), dtype=torch.float64, generator=torch.Generator().manual_seed(3)
    )
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (answer,) = session.run(["controls"], {"features": features.numpy()})
    with torch.no_grad():
        torch.testing.assert_close(torch.from_numpy(answer), policy.answer(features), rtol=0.0, atol=1e-6)
