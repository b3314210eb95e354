"""Gradient descent by Polyak's step: for losses whose least value is known, as those that can be met exactly.

With f* the least value and g the gradient, x ← x − rate (f − f*)/|g|² g (Polyak, "Minimization of unsmooth
functionals", 1969). There is no step size to tune: units of loss and variables cancel. A gradient that noise made too
large gives a short step, and variables that hardly matter hardly move, where Adam would move all of them alike. Where
a problem has a metric M of its own, the step is (f − f*)/(gᵀM⁻¹g) M⁻¹g.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from warpsim.core.driving import Steps
from warpsim.core.errors import InputError
from warpsim.optimizers.evaluation import Evaluation, blocked, evaluate, free_gradient, norm, project
from warpsim.optimizers.iterate import Iterate
from warpsim.optimizers.problem import HasMetric, Problem

_TRIALS = 10
"""Halvings of a step that leads where nothing can be simulated, or where a step of the simulation has no gradient."""
_NOWHERE = (
    "beside the last point, however near, nothing can be simulated or has a gradient; start elsewhere, shorten the "
    "time step, or see the output 'solver_status' there"
)


@dataclass(frozen=True)
class Polyak:
    """Options.

    Attributes:
        rate: Factor on Polyak's step; it converges on convex losses for factors below 2.
        least: f*, a value that the loss can reach and not pass.
        backtracks: Most halvings of a step whose loss is above that of all the latest `memory` iterates. They cost a
            forward pass each, no gradient. The last one is taken as it is: a rough loss does not end the search.
        memory: 1: the loss must not rise.
    """

    rate: float = 1.0
    least: float = 0.0
    backtracks: int = 2
    memory: int = 1
    name = "polyak"

    def __post_init__(self) -> None:
        if not (self.rate > 0.0 and self.backtracks >= 0 and self.memory >= 1):
            raise InputError(f"{self}: rate > 0, backtracks ≥ 0 and memory ≥ 1 are needed")

    def begin(self, problem: Problem, x: torch.Tensor) -> Steps[Iterate]:
        """The iterate at a start (n,)."""
        begun = yield from evaluate(problem, x, strict=True)
        return (yield from self._iterate(problem, begun, 1, []))

    def advance(self, problem: Problem, iterate: Iterate) -> Steps[Iterate]:
        """One step against the gradient of this iterate, halved where it does not pay or leads nowhere."""
        gradient = free_gradient(problem, iterate.x, iterate.memory["gradient"])
        excess = iterate.loss - self.least
        held = blocked(problem, iterate.x, iterate.memory["gradient"])
        direction = problem.steepest(gradient, held) if isinstance(problem, HasMetric) else gradient
        square = (gradient @ direction).item()
        if excess <= 0.0 or square == 0.0:
            end = f"the loss {iterate.loss:.6g} is not above the least, {self.least:g}"
            words = end if excess <= 0.0 else "the gradient vanishes, within the bounds"
            return replace(iterate, finished=("converged", words))
        target = project(problem, iterate.x - self.rate * excess / square * direction)
        latest = iterate.memory["losses"]
        evaluations, dropped, raised = iterate.evaluations, iterate.dropped, 0
        for shorter in range(_TRIALS):
            closer = iterate.x + (target - iterate.x) / 2.0**shorter
            evaluation = yield from evaluate(problem, project(problem, closer) if shorter else target)
            evaluations += 1
            worse = max(latest) < evaluation.loss < torch.inf
            if worse and raised < self.backtracks:
                raised += 1
            elif (yield from evaluation.finite()):
                made = yield from self._iterate(problem, evaluation, evaluations, latest)
                return replace(made, dropped=dropped)
            else:
                dropped += 1
        return replace(iterate, evaluations=evaluations, dropped=dropped, finished=("stalled", _NOWHERE))

    def report(self, problem: Problem, iterate: Iterate) -> Steps[None]:
        """Nothing to add."""
        yield from ()

    def _iterate(
        self, problem: Problem, evaluation: Evaluation, evaluations: int, losses: list[float]
    ) -> Steps[Iterate]:
        x, loss = evaluation.x, evaluation.loss
        gradient = (yield from evaluation.differentiate()) if loss < torch.inf else torch.zeros_like(x)
        kept = {"gradient": gradient, "losses": [*losses, loss][-self.memory :]}
        return Iterate(x, loss, norm(free_gradient(problem, x, gradient)), evaluations, kept)
