"""Adam, from torch, kept within bounds: for many variables, noisy or kinked losses, and long horizons."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from warpsim.core.driving import Steps
from warpsim.optimizers.evaluation import Evaluation, evaluate, free_gradient, norm, project
from warpsim.optimizers.iterate import Iterate
from warpsim.optimizers.problem import Problem

_TRIALS = 10
"""Halvings of a step that leads where nothing can be simulated, or where a step of the simulation has no gradient."""
_NOWHERE = (
    "beside the last point, however near, nothing can be simulated or has a gradient; start elsewhere, shorten the "
    "time step, or see the output 'solver_status' there"
)


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

    def begin(self, problem: Problem, x: torch.Tensor) -> Steps[Iterate]:
        """The iterate at a start (n,)."""
        begun = yield from evaluate(problem, x, strict=True)
        return (yield from _iterate(problem, begun, 1, {"rate": self.rate}))

    def advance(self, problem: Problem, iterate: Iterate) -> Steps[Iterate]:
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
        step = project(problem, parameter) - iterate.x
        kept = {"rate": memory["rate"] * self.decay, "moments": optimizer.state_dict()["state"][0]}
        for shorter in range(_TRIALS):
            evaluation = yield from evaluate(problem, iterate.x + step / 2.0**shorter)
            if (yield from evaluation.finite()):
                tried, dropped = iterate.evaluations + shorter + 1, iterate.dropped + shorter
                return replace((yield from _iterate(problem, evaluation, tried, kept)), dropped=dropped)
        tried, dropped = iterate.evaluations + _TRIALS, iterate.dropped + _TRIALS
        return replace(iterate, evaluations=tried, dropped=dropped, finished=("stalled", _NOWHERE))

    def report(self, problem: Problem, iterate: Iterate) -> Steps[None]:
        """Nothing to add."""
        yield from ()


def _iterate(problem: Problem, evaluation: Evaluation, evaluations: int, memory: dict[str, Any]) -> Steps[Iterate]:
    x, loss = evaluation.x, evaluation.loss
    gradient = (yield from evaluation.differentiate()) if loss < torch.inf else torch.zeros_like(x)
    return Iterate(x, loss, norm(free_gradient(problem, x, gradient)), evaluations, {**memory, "gradient": gradient})
