"""What a policy is worth: one long rollout from starts of its own, without gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from warpsim.learn.rank_rollouts import RankRollouts
from warpsim.learn.windows import Cost, Starts, in_kernels
from warpsim.sim.policy_rollout import Policy
from warpsim.sim.simulator import Simulator
from warpsim.sim.trajectory import Observed
from warpsim.tape.diagnostics import NonFiniteError


@dataclass(frozen=True)
class Score:
    """Of one evaluation.

    Attributes:
        cost: Mean cost per control over all worlds and all of the time, nothing after a failure.
        failed: Worlds that failed on the way.
    """

    cost: float
    failed: int


class Judge:
    """Evaluates policies on the same starts each time, so that they can be compared."""

    def __init__(
        self,
        sim: Simulator,
        cost: Cost,
        starts: Starts,
        failed: Callable[[Observed], torch.Tensor] | None = None,
        *,
        hold: int,
        seconds: float = 5.0,
        number: int = 1_000_000,
        threads: int = 1,
    ) -> None:
        """Takes starts that training does not draw.

        Args:
            sim: Whose worlds are used.
            cost: As in training.
            starts: As in training.
            failed: As in training.
            hold: Steps for which a control is held.
            seconds: Length of the rollout, s.
            number: Which draw of the starts; training counts from 0.
            threads: CPU threads that share the worlds.
        """
        self._roll = RankRollouts(sim)
        self._sim, self._cost, self._failed, self._hold, self._threads = sim, cost, failed, hold, threads
        self._start = starts(number)
        self._steps = max(1, round(seconds / (sim.timestep * hold))) * hold

    def __call__(self, policy: Policy) -> Score:
        """Evaluates; a policy under which a world's numbers cease to be finite costs infinitely much."""
        with torch.no_grad():
            try:
                motion = self._roll(
                    policy, self._steps, start=self._start, hold=self._hold, **in_kernels(policy, self._threads)
                )
            except NonFiniteError:
                return Score(float("inf"), self._sim.worlds)
            states = {name: value[:: self._hold] for name, value in motion.items()}
            before, reached = (
                Observed(self._sim.model, {n: v[part] for n, v in states.items()})
                for part in (slice(None, -1), slice(1, None))
            )
            costs = self._cost(reached, policy(before))
            if self._failed is None:
                return Score(float(costs.mean()), 0)
            gone = self._failed(reached).cummax(0).values
            alive = torch.ones_like(costs)
            alive[1:] = (~gone[:-1]).to(costs.dtype)
            return Score(float((alive * costs).mean()), int(gone[-1].sum()))
