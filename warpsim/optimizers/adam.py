"""Adam, from torch, kept within bounds: for many variables, noisy or kinked losses, and long horizons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from warpsim.optimizers.evaluation import Evaluation, free_gradient, norm, project
from warpsim.optimizers.iterate import Iterate
from warpsim.optimizers.problem import Problem


@dataclass(frozen=True)
class Adam:
    """Options of `torch.optim.Adam`, projected onto the bounds after each step.

    Attributes:
        rate: Step length of each component, in units of x.
        betas: Decay of the two moments.
        decay: Factor on the rate from one iteration to the next.
        clip: Longest gradient (Euclidean) that is let through; longer ones are shortened. Contact can make them huge.
    """

    rate: float = 0.05
    betas: tuple[float, float] = (0.9, 0.999)
    decay: float = 1.0
    clip: float = torch.inf
    name = "adam"

    def begin(self, problem: Problem, x: torch.Tensor) -> Iterate:
        """The iterate at a start (n,)."""
        return _iterate(problem, Evaluation(problem, x, strict=True), 1, {"rate": self.rate})

    def advance(self, problem: Problem, iterate: Iterate) -> Iterate:
        """One step against the gradient of this iterate, and the gradient where it leads."""
        memory = iterate.memory
        parameter = iterate.x.clone()
        optimizer = torch.optim.Adam([parameter], lr=memory["rate"], betas=self.betas)
        if "moments" in memory:
            moments = {name: value.clone() for name, value in memory["moments"].items()}  # torch writes them in place
            optimizer.load_state_dict({**optimizer.state_dict(), "state": {0: moments}})
        # What pushes against a bound is left out, or the moments would wind up and hold x there afterward.
        gradient = free_gradient(problem, iterate.x, memory["gradient"])
        parameter.grad = gradient * min(1.0, self.clip / max(gradient.norm().item(), 1e-300))
        optimizer.step()
        evaluation = Evaluation(problem, project(problem, parameter))
        moments = optimizer.state_dict()["state"][0]
        return _iterate(
            problem, evaluation, iterate.evaluations + 1, {"rate": memory["rate"] * self.decay, "moments": moments}
        )

    def report(self, problem: Problem, iterate: Iterate) -> None:
        """Nothing to add."""


def _iterate(problem: Problem, evaluation: Evaluation, evaluations: int, memory: dict[str, Any]) -> Iterate:
    x, loss = evaluation.x, evaluation.loss
    gradient = evaluation.gradient if loss < torch.inf else torch.zeros_like(x)
    return Iterate(x, loss, norm(free_gradient(problem, x, gradient)), evaluations, {**memory, "gradient": gradient})
