"""What a network in kernels sees of a robot: against MuJoCo's rotation matrices, and the same in torch."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch
import warp as wp

from warpsim.core.errors import InputError, UnknownNameError
from warpsim.core.precision import numpy_real, real
from warpsim.policy.network import Network, NetworkWork
from warpsim.policy.senses import SENSES, sensed
from warpsim.policy.spec import COORDINATE, Feature, PolicySpec
from warpsim.sim.network_policy import observe_features
from warpsim.sim.simulator import Simulator

ANT = Path(__file__).resolve().parents[2] / "scenes" / "ant.usda"
WORLDS = 3


@pytest.fixture(scope="module")
def sim() -> Simulator:
    return Simulator(ANT, worlds=WORLDS, outputs=())


def state(sim: Simulator) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    q, qd = generator.normal(size=(WORLDS, sim.nq)), generator.normal(size=(WORLDS, sim.nv))
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    return q, qd


def expected(sense: str, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    turn = np.empty(9)
    mujoco.mju_quat2Mat(turn, q[3:7])
    return {
        "height": q[2:3],
        "up": turn.reshape(3, 3).T @ np.array([0.0, 0.0, 1.0]),
        "rotation": turn,
        "base_velocity": qd[:3],
        "local_velocity": turn.reshape(3, 3).T @ qd[:3],
        "angular_velocity": qd[3:6],
        "joint_position": q[7:],
        "joint_velocity": qd[6:],
    }[sense]


def in_kernels(features: tuple[Feature, ...], q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    spec = PolicySpec(features, (1,), ("identity",), (0.0,), (1.0,), ("actuator",), (1,))
    device = wp.get_device("cpu")
    network = Network(spec, WORLDS, device)
    seen = wp.full((WORLDS, len(features)), np.nan, dtype=real, device=device)
    work = NetworkWork(seen, wp.full((WORLDS, 1), np.nan, dtype=real, device=device))
    arrays = [wp.array(values.astype(numpy_real), dtype=real, device=device) for values in (q, qd)]
    network.evaluate(wp.zeros(WORLDS, dtype=wp.int32, device=device), *arrays, work, None)
    return seen.numpy()


@pytest.mark.parametrize("sense", SENSES)
def test_every_sense_shows_what_mujoco_says(sim, sense):
    q, qd = state(sim)
    features = sensed(sim.model.layout, (sense,))
    wanted = np.stack([expected(sense, *row) for row in zip(q, qd, strict=True)])
    np.testing.assert_allclose(in_kernels(features, q, qd), wanted, rtol=1e-12, atol=1e-12)
    seen = observe_features(features, torch.from_numpy(q), torch.from_numpy(qd))
    np.testing.assert_allclose(seen.numpy(), wanted, rtol=1e-12, atol=1e-12)


def test_a_feature_is_moved_and_then_scaled(sim):
    q, qd = state(sim)
    features = (Feature(COORDINATE, 2, scale=4.0, offset=0.5),)
    np.testing.assert_allclose(in_kernels(features, q, qd)[:, 0], 4.0 * (q[:, 2] - 0.5), rtol=1e-14)
    seen = observe_features(features, torch.from_numpy(q), torch.from_numpy(qd))
    np.testing.assert_allclose(seen[:, 0], 4.0 * (q[:, 2] - 0.5), rtol=1e-14)


@pytest.mark.parametrize("activation", ["elu", "tanh"])
def test_a_loop_closed_in_kernels_is_that_closed_in_torch(sim, activation):
    senses = ("height", "rotation", "local_velocity", "angular_velocity", "joint_position", "joint_velocity")
    policy = sim.network_policy(hidden=(6, 5), activation=activation, senses=senses, seed=2)
    with torch.no_grad():
        policy.mean.uniform_(-0.5, 0.5, generator=torch.Generator().manual_seed(1))
        policy.deviation.uniform_(0.5, 2.0, generator=torch.Generator().manual_seed(2))
    q, qd = (torch.from_numpy(x) for x in state(sim))
    q[:, :3] = torch.tensor([0.0, 0.0, 0.55], dtype=torch.float64)
    q[:, 7:] = 0.9
    start = {"q": q.requires_grad_(), "qd": qd.requires_grad_()}
    results = []
    for kernels in (True, False):
        motion = sim.rollout_policy(policy, 6, start=start, hold=2, in_kernels=kernels)
        loss = motion.q.square().sum() + motion.qd.sum()
        results.append((motion.q, *torch.autograd.grad(loss, [*policy.parameters(), q, qd])))
    for ours, wanted in zip(*results, strict=True):
        assert wanted.abs().max() > 0
        torch.testing.assert_close(ours, wanted, rtol=1e-9, atol=1e-9)


def test_weights_of_single_worlds_have_gradients_of_their_own(sim):
    policy = sim.network_policy(hidden=(4,), senses=("height", "joint_velocity"), seed=0)
    q, qd = state(sim)
    given = {"q": torch.from_numpy(q), "qd": torch.from_numpy(qd)}
    spread = policy.weights().detach().expand(WORLDS, -1).clone().requires_grad_()
    policy.each_world = lambda weights: spread
    (own,) = torch.autograd.grad(sim.rollout_policy(policy, 2, start=given).q.square().sum(), [spread])
    policy.each_world = None
    shared = sim.rollout_policy(policy, 2, start=given).q.square()
    for world in range(WORLDS):
        wanted = torch.autograd.grad(shared[:, world].sum(), list(policy.parameters()), retain_graph=True)
        flat = torch.cat([wanted[0].T.reshape(-1), wanted[1], wanted[2].T.reshape(-1), wanted[3]])
        torch.testing.assert_close(own[world], flat, rtol=1e-9, atol=1e-12)


def test_bad_senses_are_named(sim):
    with pytest.raises(UnknownNameError, match="heigth"):
        sim.network_policy(senses=("heigth",))
    with pytest.raises(InputError, match="twice"):
        sim.network_policy(senses=("height", "height"))
    with pytest.raises(InputError, match="not both"):
        sim.network_policy(senses=("height",), velocity_scale=0.5)
    cart = Simulator(ANT.with_name("cartpole.usda"), outputs=())
    with pytest.raises(InputError, match="shows nothing of this robot"):
        cart.network_policy(senses=("up",))
