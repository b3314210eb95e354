"""`SHAC`: trains a policy through short windows of physics, with a learned value for all that comes after.

The gradient of a long closed loop is exact and useless: it grows with the horizon and points along the ripples of a
chaotic loss. Here each update differentiates a window of a second or less, in many worlds that go on from window to
window and begin anew at different times; a critic, fitted to what the windows cost, stands for the rest (short-horizon
actor-critic: Xu et al., Accelerated Policy Learning with Parallel Differentiable Simulation, ICLR 2022).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from tqdm import trange

from warpsim.core.errors import InputError
from warpsim.learn.critic import Critic, blended_returns
from warpsim.sim.network_policy import NetworkPolicy
from warpsim.sim.simulator import Simulator
from warpsim.sim.trajectory import Observed
from warpsim.tape.memory import Memory

Cost = Callable[[Observed, torch.Tensor], torch.Tensor]
"""(states reached (n, W, …), controls that led there (n, W, control size)) → (n, W)."""
Starts = Callable[[int], Mapping[str, torch.Tensor]]
"""Number of an update → initial "q" (W, nq), "qd" (W, nv) and, if there are any, "activation" (W, na) of all worlds."""


@dataclass(frozen=True)
class Iteration:
    """One update.

    Attributes:
        number: From 0 on.
        cost: Mean of the window's costs, in worlds that have not failed.
        loss: What the policy was moved along: discounted costs of the window and the value of its end.
        gradient_norm: Of the policy's weights, before it was clipped.
        critic_error: Mean square error of values against their targets.
        failed: Worlds that failed in this window.
    """

    number: int
    cost: float
    loss: float
    gradient_norm: float
    critic_error: float
    failed: int


class SHAC:
    """Worlds, a policy in their kernels, and a critic that sees what the policy sees.

    Attributes:
        critic: The value of states.
        history: All updates so far.
    """

    def __init__(
        self,
        sim: Simulator,
        policy: NetworkPolicy,
        cost: Cost,
        starts: Starts,
        *,
        failed: Callable[[Observed], torch.Tensor] | None = None,
        window: int = 16,
        hold: int = 1,
        episode: int = 256,
        discount: float = 0.99,
        blend: float = 0.95,
        rate: float = 5e-3,
        clip: float = 1.0,
        adjoint_clip: float | None = None,
        critic: Critic | None = None,
        warm_up: int = 0,
        threads: int = 1,
        seed: int = 0,
    ) -> None:
        """Draws the first states.

        Args:
            sim: Whose worlds are used, with the parameters in force there, which may differ from world to world.
            policy: Is trained, from the weights it has.
            cost: Of states and controls, one row a control; see `Cost`.
            starts: Where worlds begin that have failed or gone on for an episode.
            failed: Which states (n, W, …) end an episode. What comes after costs nothing, so where failing is possible
                costs should be below zero while all goes well.
            window: Controls that are differentiated at a time.
            hold: Steps for which each control is held.
            episode: Controls after which a world begins anew.
            discount: What a cost one control later counts.
            blend: λ of the critic's targets.
            rate: Adam's learning rate for the policy; falls to zero along `train`, like the critic's.
            clip: Largest norm of the policy's gradient.
            adjoint_clip: Largest norm of the derivative of a world's loss by its state that is handed back from control
                to control; keeps a few worlds that tumble from drowning the others. None: the exact gradient.
            critic: None: one with its defaults.
            warm_up: Updates at the beginning that fit the critic alone, so that a policy which already does something
                of use is not thrown off by a critic that knows nothing.
            threads: CPU threads that share the worlds.
            seed: Of the critic, and of the moments at which worlds first begin anew.
        """
        if window < 1 or hold < 1 or episode < window or not 0.0 <= discount <= 1.0 or not 0.0 <= blend <= 1.0:
            raise InputError(
                f"window={window} and hold={hold} must be 1 or more, episode={episode} no less than the window, "
                f"discount={discount} and blend={blend} from 0 to 1"
            )
        self._sim, self._policy, self._cost, self._starts, self._failed = sim, policy, cost, starts, failed
        self._window, self._hold, self._episode = window, hold, episode
        self._discount, self._blend, self._clip, self._threads = discount, blend, clip, threads
        self._adjoint_clip = None if adjoint_clip is None else adjoint_clip / sim.worlds  # the loss is a mean
        self._warm_up = warm_up
        self._rates = {"policy": rate}
        self._optimizer = torch.optim.Adam(policy.parameters(), lr=rate, betas=(0.9, 0.95))
        self.critic = Critic(len(policy.features), seed=seed, device=sim.device) if critic is None else critic
        self._rates["critic"] = self.critic.optimizer.param_groups[0]["lr"]
        self.history: list[Iteration] = []
        self._state: dict[str, torch.Tensor] = {name: value.detach() for name, value in starts(0).items()}
        generator = torch.Generator().manual_seed(seed)
        self._age = torch.randint(0, episode, (sim.worlds,), generator=generator).to(sim.device)

    def train(
        self, iterations: int, *, progress: bool = False, until: Callable[[Iteration], bool] | None = None
    ) -> list[Iteration]:
        """Updates the policy so many times, with learning rates that fall linearly to zero.

        Args:
            iterations: How many.
            progress: Show a bar.
            until: Asked after each update; True ends the training.

        Returns:
            What was seen at each.
        """
        bar = trange(iterations, desc="training", disable=not progress)
        first = len(self.history)
        for k in bar:
            remaining = 1.0 - k / iterations
            for optimizer, name in ((self._optimizer, "policy"), (self.critic.optimizer, "critic")):
                optimizer.param_groups[0]["lr"] = remaining * self._rates[name]
            made = self.update()
            bar.set_postfix(cost=f"{made.cost:.3f}", failed=made.failed, refresh=False)
            if until is not None and until(made):
                break
        return self.history[first:]

    def update(self) -> Iteration:
        """One window: moves the policy along its gradient, fits the critic, and lets the worlds go on."""
        states, costs, alive = self._roll_out()
        weights = self._discount ** torch.arange(self._window, dtype=costs.dtype, device=costs.device).unsqueeze(1)
        features = self._policy.observe(states.q, states.qd)
        rest = self._discount**self._window * alive[-1] * self.critic(features[-1])
        loss = ((weights * costs).sum(0) + rest).mean()
        if not torch.isfinite(loss):
            raise InputError(f"the cost of update {len(self.history)} is {loss.item()}; it must be finite")
        self._optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self._policy.parameters(), self._clip)
        if len(self.history) >= self._warm_up:
            self._optimizer.step()
        error = self._fit(features.detach(), costs.detach(), alive)
        mean = float((costs.detach().sum() / alive[:-1].sum()).item())
        failed = int((alive[-1] == 0).sum())
        self.history.append(Iteration(len(self.history), mean, float(loss.detach()), float(norm), error, failed))
        self._go_on(states, alive)
        return self.history[-1]

    def _roll_out(self) -> tuple[Observed, torch.Tensor, torch.Tensor]:
        """States at every control (n + 1, W, …), costs (n, W), and whether worlds are alive (n + 1, W)."""
        steps = self._window * self._hold
        motion = self._sim.rollout_policy(
            self._policy,
            steps,
            start=self._state,
            hold=self._hold,
            memory=Memory(segment=steps if self._adjoint_clip is None else self._hold),
            threads=self._threads,
            clip=self._adjoint_clip,
        )
        states = Observed(self._sim.model, {name: value[:: self._hold] for name, value in motion.items()})
        before, reached = (Observed(self._sim.model, {n: v[part] for n, v in states.items()}) for part in _PARTS)
        costs = self._cost(reached, self._policy(before))
        if costs.shape != reached.q.shape[:2]:
            raise InputError(f"the cost has shape {tuple(costs.shape)}; needed: {tuple(reached.q.shape[:2])}")
        alive = torch.ones(states.q.shape[:2], dtype=costs.dtype, device=costs.device)
        if self._failed is not None:
            alive[1:] = 1.0 - self._failed(reached).to(costs.dtype).cummax(0).values
        return states, alive[:-1] * costs, alive

    def _fit(self, features: torch.Tensor, costs: torch.Tensor, alive: torch.Tensor) -> float:
        with torch.no_grad():
            targets = blended_returns(costs, self.critic(features), alive, self._discount, self._blend)
        lived = alive[:-1] > 0
        return self.critic.fit(features[:-1][lived], targets[lived])

    def _go_on(self, states: Observed, alive: torch.Tensor) -> None:
        self._age += self._window
        ended = (self._age >= self._episode) | (alive[-1] == 0)
        self._age = torch.where(ended, 0, self._age)
        fresh = self._starts(len(self.history))
        self._state = {
            name: torch.where(ended.reshape(-1, *[1] * (value.ndim - 1)), value.detach(), states[name][-1].detach())
            for name, value in fresh.items()
        }


_PARTS: tuple[Any, Any] = (slice(None, -1), slice(1, None))
"""States in which the policy is asked, and states reached."""
