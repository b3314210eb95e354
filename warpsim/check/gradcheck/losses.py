"""What is differentiated: a random linear form of the final state, or a loss of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
import torch

from warpsim.autograd.exchange import torch_real
from warpsim.rigid.model.model import Model
from warpsim.sim.trajectory import Source, Trajectory

Tensors = Mapping[str, torch.Tensor]
"""Trajectories by name, (frames, W, …) each."""


class Loss(Protocol):
    """A number per world of a rollout."""

    text: str

    def __call__(self, made: Tensors) -> torch.Tensor:
        """(W,) losses."""
        ...

    def size(self, made: Tensors) -> float:
        """Magnitude of the terms of world 0's loss, which bounds what rounding does to it."""
        ...


class RandomForm:
    """Σ wᵢ xᵢ over the final state with fixed normal weights: it sees every number of it."""

    def __init__(self, seed: int, fields: Sequence[str]) -> None:
        self._seed, self._fields = seed, tuple(fields)
        self.text = f"a random linear form of the final {' and '.join(n for n in fields if n != 'activation')}"

    def __call__(self, made: Tensors) -> torch.Tensor:
        """(W,) losses."""
        return torch.stack([term.flatten(1).sum(-1) for term in self._terms(made)]).sum(0)

    def size(self, made: Tensors) -> float:
        """Sum of the terms' magnitudes."""
        return float(sum(term[0].abs().sum() for term in self._terms(made)))

    def _terms(self, made: Tensors) -> list[torch.Tensor]:
        rng = np.random.default_rng(self._seed)
        terms = []
        for name in self._fields:
            if name in made:
                last = made[name][-1]
                weights = rng.normal(size=last.shape[1:])
                terms.append(last * torch.as_tensor(weights, dtype=torch_real, device=last.device))
        return terms


class UserLoss:
    """A function of a one-world trajectory, applied to every world."""

    text = "the given loss"

    def __init__(
        self, function: Callable[[Trajectory], torch.Tensor], model: Model, source: Source, interval: float
    ) -> None:
        self._function = function
        self._model, self._source, self._interval = model, source, interval

    def __call__(self, made: Tensors) -> torch.Tensor:
        """(W,) losses."""
        worlds = next(iter(made.values())).shape[1]
        return torch.stack([self._of_world(made, w) for w in range(worlds)])

    def size(self, made: Tensors) -> float:
        """The loss itself: what it is a sum of is not known."""
        return abs(float(self._of_world(made, 0)))

    def _of_world(self, made: Tensors, world: int) -> torch.Tensor:
        own = {name: tensor[:, world : world + 1] for name, tensor in made.items()}
        return self._function(Trajectory(self._model, self._source, own, self._interval)).sum()
