"""`VectorEnv` and `Env`: what a `Training` says of rewards, ends and starts, by Gymnasium's rules."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
import torch

from warpsim.core.errors import InputError, WarpsimError
from warpsim.policy.senses import sensed
from warpsim.sim.network_policy import observe_features
from warpsim.sim.simulator import Simulator
from warpsim.sim.trajectory import Observed
from warpsim.task.bound_training import bind_training
from warpsim.task.training import Training

try:
    import gymnasium
    from gymnasium.vector import AutoresetMode
    from gymnasium.vector.utils import batch_space
except ImportError as error:
    raise WarpsimError(
        "Gymnasium environments need gymnasium, which is not installed: pip install warpsim[gym]"
    ) from error

_MODES = {"next_step": AutoresetMode.NEXT_STEP, "same_step": AutoresetMode.SAME_STEP}


class VectorEnv(gymnasium.vector.VectorEnv):
    """Many worlds of a scene that are stepped together.

    Observations are the features that the training's senses show, actions what the scene's controls take, within their
    ranges. Rewards, ends (`terminated`) and starts are the training's; episodes are cut (`truncated`) at its length.
    What is returned shares no memory with the simulation: tensors of torch, or arrays over them.

    Attributes:
        sim: The worlds.
        training: What is asked for.
    """

    def __init__(
        self,
        source: str | PathLike[str] | Simulator,
        training: Training | str | None = None,
        *,
        num_envs: int | None = None,
        autoreset: str = "next_step",
        tensors: bool = False,
    ) -> None:
        """Compiles the scene.

        Args:
            source: The scene's file, or a simulator of it.
            training: What is asked for, or the path of its prim; None: the only one in the file.
            num_envs: Worlds; None: as many as the training says.
            autoreset: "next_step": the step after an episode's end only begins a new one; "same_step": the step that
                ends it returns the first observation of the next, and "final_obs" in the infos.
            tensors: Take and return torch tensors instead of arrays.
        """
        if autoreset not in _MODES:
            raise InputError(f"autoreset={autoreset!r}; use one of {', '.join(_MODES)}")
        bound = bind_training(source, training, worlds=num_envs)
        self._bound, self.sim, self.training = bound, bound.sim, bound.training
        self._same_step, self._tensors = autoreset == "same_step", tensors
        self._features = sensed(self.sim.model.layout, self.training.senses)
        self._limit = round(self.training.episode / self.training.period)
        self.num_envs = self.sim.worlds
        self.metadata = {"autoreset_mode": _MODES[autoreset], "render_modes": []}
        real = np.float64 if self.sim.torch_dtype == torch.float64 else np.float32
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (len(self._features),), real)
        self.single_action_space = gymnasium.spaces.Box(*_ranges(self.sim, real), dtype=real)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._age = torch.zeros(self.num_envs, dtype=torch.int64, device=self.sim.device)
        self._over = torch.zeros(self.num_envs, dtype=torch.bool, device=self.sim.device)
        self._state: dict[str, torch.Tensor] = {}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode in every world.

        Args:
            seed: Of all starts from here on; None: go on with the last one's.
            options: None are known.
        """
        super().reset(seed=seed)
        self._state = self._drawn()
        self._age.zero_()
        self._over.zero_()
        return self._given(self._observed()), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """One control in every world: observations, rewards, terminated, truncated, infos."""
        if not self._state:
            raise InputError("call `reset` before the first step")
        controls = self._taken(actions)
        before, state = self._over, self._state
        with torch.no_grad():
            self.sim.reset(start=state)
            for _ in range(self._bound.hold):
                reached = self.sim.step(controls)
            row = Observed(self.sim.model, {name: value.unsqueeze(0) for name, value in reached.items()})
            rewards = self._bound.reward(row, controls.unsqueeze(0))[0]
            terminated = self._bound.failed(row)[0] & ~before
        self._state = {name: reached[name] for name in state}
        self._age += 1
        truncated = (self._age >= self._limit) & ~before
        if bool(before.any()):  # their step only begins anew
            self._begin_anew(before)
            rewards = torch.where(before, 0.0, rewards)
        over, infos = terminated | truncated, {}
        if self._same_step and bool(over.any()):
            infos = {"final_obs": self._given(self._observed()), "_final_obs": self._given(over)}
            self._begin_anew(over)
            over = torch.zeros_like(over)
        self._over = over
        return (*map(self._given, (self._observed(), rewards, terminated, truncated)), infos)

    def _taken(self, actions: Any) -> torch.Tensor:
        controls = torch.as_tensor(actions, dtype=self.sim.torch_dtype, device=self.sim.device)
        if controls.shape != self.action_space.shape:
            raise InputError(f"actions have shape {tuple(controls.shape)}; needed: {self.action_space.shape}")
        return controls.detach()

    def _given(self, values: torch.Tensor) -> Any:
        return values if self._tensors else values.cpu().numpy()

    def _drawn(self) -> dict[str, torch.Tensor]:
        return self._bound.starts(int(self.np_random.integers(2**31)))

    def _begin_anew(self, which: torch.Tensor) -> None:
        fresh = self._drawn()
        self._state = {
            name: torch.where(which.reshape(-1, *[1] * (value.ndim - 1)), fresh[name], value)
            for name, value in self._state.items()
        }
        self._age = torch.where(which, 0, self._age)

    def _observed(self) -> torch.Tensor:
        return observe_features(self._features, self._state["q"], self._state["qd"])


class Env(gymnasium.Env):
    """One world of a scene; the same as `VectorEnv`, but it does not begin anew by itself.

    Attributes:
        sim: The world.
        training: What is asked for.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, source: str | PathLike[str] | Simulator, training: Training | str | None = None) -> None:
        """Compiles the scene; arguments as in `VectorEnv`."""
        self._worlds = VectorEnv(source, training, num_envs=1)
        self.sim, self.training = self._worlds.sim, self._worlds.training
        self.observation_space, self.action_space = (
            self._worlds.single_observation_space,
            self._worlds.single_action_space,
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode; arguments as in `VectorEnv.reset`."""
        super().reset(seed=seed)
        observations, infos = self._worlds.reset(seed=seed, options=options)
        return observations[0], infos

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One control: observation, reward, terminated, truncated, infos."""
        observations, rewards, terminated, truncated, infos = self._worlds.step(np.asarray(action)[None])
        return observations[0], float(rewards[0]), bool(terminated[0]), bool(truncated[0]), infos


def _ranges(sim: Simulator, real: type) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest controls: those of actuators where they have ranges, any number elsewhere."""
    low: np.ndarray = np.full(sim.control_size, -np.inf, real)
    high: np.ndarray = np.full(sim.control_size, np.inf, real)
    if "actuator" in sim.control_names:
        part = sim.control_slice("actuator")
        low[part], high[part] = sim.model.actuator.control_range.numpy()[0].T
    return low, high
