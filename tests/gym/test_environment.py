"""Gymnasium environments: Gymnasium's own checker, its rules of resetting, and the simulator's numbers."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from warpsim.core.errors import InputError
from warpsim.objective import OnBody
from warpsim.sim.simulator import Simulator
from warpsim.task.rewards import ActionCost, Alive, Fall, Progress
from warpsim.task.training import StartSpread, Training

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import AutoresetMode  # noqa: E402

from warpsim.gym import Env, VectorEnv  # noqa: E402

SCENE = Path(__file__).resolve().parents[2] / "scenes" / "ant_run.usda"
TORSO = OnBody("/World/Torso")
SHORT = Training(
    rewards=(Progress(TORSO), Alive(), ActionCost(0.05)),
    falls=(Fall(TORSO, 0.2, 0.6),),
    starts=StartSpread(position=0.02, velocity=0.01),
    senses=("height", "rotation", "base_velocity", "joint_position", "joint_velocity"),
    worlds=3,
    episode=0.08,
    window=0.04,
)


@pytest.fixture(scope="module")
def vector() -> VectorEnv:
    return VectorEnv(SCENE, SHORT)


def test_gymnasium_finds_nothing_wrong():
    env = Env(SCENE, SHORT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*Box observation space m.*imum value is .*infinity")
        warnings.filterwarnings("ignore", message=".*not compatible with.*render.*")
        check_env(env, skip_render_check=True)


def test_spaces_are_those_of_the_scene(vector):
    assert vector.single_action_space == gymnasium.spaces.Box(-1.0, 1.0, (8,), np.float64)
    assert vector.observation_space.shape == (3, 1 + 9 + 3 + 8 + 8)
    observation, _ = vector.reset(seed=1)
    assert observation in vector.observation_space


def test_a_step_is_the_simulators(vector):
    vector.reset(seed=3)
    start = {name: value.clone() for name, value in vector._state.items()}
    actions = np.random.default_rng(0).uniform(-0.3, 0.3, (3, 8))
    observation, rewards, terminated, truncated, infos = vector.step(actions)
    sim = Simulator(SCENE, worlds=3, outputs=())
    motion = sim.rollout(controls=torch.from_numpy(actions).expand(2, 3, 8), start=start)
    np.testing.assert_array_equal(observation[:, 0], motion.q[-1, :, 2].numpy())
    np.testing.assert_array_equal(observation[:, -8:], motion.qd[-1, :, 6:].numpy())
    expected = motion.qd[-1, :, 0].numpy() + 1 - 0.05 * (actions**2).sum(1)
    np.testing.assert_allclose(rewards, expected, rtol=1e-12)
    assert not terminated.any() and not truncated.any() and infos == {}


def test_worlds_begin_anew_at_the_next_step(vector):
    assert vector.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    first, _ = vector.reset(seed=5)
    zero = np.zeros((3, 8))
    for k in range(4):
        observation, rewards, terminated, truncated, _ = vector.step(zero)
        assert truncated.all() == (k == 3) and not terminated.any()
    again, rewards, terminated, truncated, _ = vector.step(np.ones((3, 8)))
    assert (rewards == 0).all() and not terminated.any() and not truncated.any()
    assert np.abs(again[:, 0] - 0.557).max() < 0.021 and not np.array_equal(again, first)
    _, rewards, *_ = vector.step(zero)
    assert (rewards != 0).all()


def test_worlds_begin_anew_in_the_same_step():
    env = VectorEnv(SCENE, SHORT, autoreset="same_step", tensors=True)
    env.reset(seed=5)
    env._state["q"][1, 2] = 0.9  # above what counts as standing
    observation, rewards, terminated, truncated, infos = env.step(torch.zeros(3, 8, dtype=torch.float64))
    assert terminated.tolist() == [False, True, False] and not truncated.any()
    assert infos["_final_obs"].tolist() == [False, True, False]
    assert infos["final_obs"][1, 0] > 0.6 > observation[1, 0]
    assert torch.equal(infos["final_obs"][[0, 2]], observation[[0, 2]])


def test_one_seed_gives_the_same_episode_and_another_one_another(vector):
    def played(seed: int) -> np.ndarray:
        vector.action_space.seed(0)
        rows = [vector.reset(seed=seed)[0]]
        rows += [vector.step(vector.action_space.sample())[0] for _ in range(7)]
        return np.array(rows)

    once = played(1)
    np.testing.assert_array_equal(once, played(1))
    assert not np.array_equal(once, played(2))


def test_misuse_is_named(vector):
    with pytest.raises(InputError, match="actions have shape"):
        vector.reset()
        vector.step(np.zeros((2, 8)))
    with pytest.raises(InputError, match="autoreset='sometimes'"):
        VectorEnv(SCENE, SHORT, autoreset="sometimes")
    with pytest.raises(InputError, match="call `reset`"):
        VectorEnv(SCENE, SHORT).step(np.zeros((3, 8)))


@pytest.mark.long
def test_stable_baselines_trains_on_it():
    sb3 = pytest.importorskip("stable_baselines3")
    env = Env(SCENE)
    model = sb3.PPO("MlpPolicy", env, n_steps=256, batch_size=64, n_epochs=2, seed=0)
    before = [p.clone() for p in model.policy.parameters()]
    model.learn(512)
    assert any(not torch.equal(a, b) for a, b in zip(before, model.policy.parameters(), strict=True))
