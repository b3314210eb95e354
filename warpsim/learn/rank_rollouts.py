"""Closed loops of a training whose worlds the ranks of a job share; alone, just the simulator's.

Each rank rolls out its blocks with the weights of these worlds and gets the gradient of each world's weights back; what
follows (costs, critic, moments of what is seen, bounds on gradients, random starts) sees all worlds on every rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from warpsim.parallel.ranks import current
from warpsim.parallel.worlds import worlds_over_ranks
from warpsim.sim.network_policy import NetworkPolicy
from warpsim.sim.policy_rollout import Policy
from warpsim.sim.simulator import Simulator


class RankRollouts:
    """Rolls out policies in all worlds of a simulator."""

    def __init__(self, sim: Simulator) -> None:
        self._sim = sim
        self._sims: dict[int, Simulator] = {}
        self._fields: dict[str, torch.Size] = {}

    def __call__(
        self, policy: Policy, steps: int, *, start: Mapping[str, torch.Tensor], hold: int, **options: Any
    ) -> Mapping[str, torch.Tensor]:
        """Fields of all states, (steps + 1, W, …) each.

        Args:
            policy: A `NetworkPolicy` is shared by ranks; any other runs on each of them.
            steps: How many.
            start: By field, (W, …).
            hold: Steps for which a control is held.
            **options: Of `Simulator.rollout_policy`.
        """
        if current() is None or not isinstance(policy, NetworkPolicy):
            return self._sim.rollout_policy(policy, steps, start=start, hold=hold, **options)
        weights = policy.weights_in_kernels()
        each = weights.expand(self._sim.worlds, -1) if weights.ndim == 1 else weights
        if not self._fields:
            self._fields = self._layout(policy, start, each, hold)
        given = self._parameters()
        names = list(start)

        def roll_out(worlds: torch.Tensor, each: torch.Tensor, *states: torch.Tensor) -> torch.Tensor:
            with _weights(policy, each):
                motion = self._of(len(worlds)).rollout_policy(
                    policy,
                    steps,
                    start=dict(zip(names, states, strict=True)),
                    hold=hold,
                    parameters={name: value[worlds] for name, value in given.items()},
                    **options,
                )
            return torch.cat([motion[name].transpose(0, 1).flatten(2) for name in self._fields], -1)

        worlds = torch.arange(self._sim.worlds)
        made = worlds_over_ranks(roll_out, worlds, each, *(start[name] for name in names), what="rollouts of a policy")
        parts = made.split([shape.numel() for shape in self._fields.values()], -1)
        return {
            name: part.transpose(0, 1).unflatten(2, shape) if shape else part.transpose(0, 1)[..., 0]
            for (name, shape), part in zip(self._fields.items(), parts, strict=True)
        }

    def _of(self, worlds: int) -> Simulator:
        if worlds not in self._sims:
            self._sims[worlds] = self._sim.with_worlds(worlds)
        return self._sims[worlds]

    def _parameters(self) -> dict[str, torch.Tensor]:
        """Values in force, (W, …), of parameters that are not the scene's own."""
        own = self._of(1)
        found = {name: self._sim.parameter(name) for name in self._sim.parameter_names}
        return {
            name: value for name, value in found.items() if not torch.equal(value, own.parameter(name).expand_as(value))
        }

    def _layout(
        self, policy: NetworkPolicy, start: Mapping[str, torch.Tensor], each: torch.Tensor, hold: int
    ) -> dict[str, torch.Size]:
        """Fields of a state and their shapes in a world, from one control in one world."""
        with torch.no_grad(), _weights(policy, each[:1]):
            first = {name: value[:1] for name, value in start.items()}
            motion = self._of(1).rollout_policy(policy, hold, start=first, hold=hold)
        return {name: value.shape[2:] for name, value in motion.items()}


@contextmanager
def _weights(policy: NetworkPolicy, each: torch.Tensor) -> Iterator[None]:
    """While open, rollouts of the policy have these weights, (W, n)."""
    kept: Callable[[torch.Tensor], torch.Tensor] | None = policy.each_world
    policy.each_world = lambda _: each
    try:
        yield
    finally:
        policy.each_world = kept
