"""L-BFGS within bounds: quick on smooth losses, and steady on kinked ones.

Bounds by two metrics (Bertsekas, "Projected Newton methods for optimization problems with simple constraints", 1982):
components at a bound that the gradient pushes against are held, the others move along the quasi-Newton direction and
the path is bent back onto the box. The line search is the bisection for weak Wolfe conditions of Lewis and Overton
("Nonsmooth optimization via quasi-Newton methods", 2013), which needs no smoothness; losses through contact have kinks.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from warpsim.core.driving import Steps
from warpsim.optimizers.evaluation import Evaluation, evaluate, free_gradient, norm, project
from warpsim.optimizers.iterate import Iterate
from warpsim.optimizers.problem import Problem
from warpsim.optimizers.result import Stopped

_ARMIJO, _WOLFE = 1e-4, 0.9


@dataclass(frozen=True)
class LBFGS:
    """Options.

    Attributes:
        memory: Pairs of steps and gradient changes that shape the direction.
        first_step: Largest change of a component in the first step, when nothing is known of curvature.
        largest_step: Largest change of a component in any step.
        trials: Most losses computed in one line search.
    """

    memory: int = 20
    first_step: float = 0.1
    largest_step: float = torch.inf
    trials: int = 25
    name = "lbfgs"

    def begin(self, problem: Problem, x: torch.Tensor) -> Steps[Iterate]:
        """The iterate at a start (n,)."""
        return (yield from _iterate(problem, (yield from evaluate(problem, x, strict=True)), 1, []))

    def advance(self, problem: Problem, iterate: Iterate) -> Steps[Iterate]:
        """One line search along the quasi-Newton direction, or down the gradient if that one fails."""
        gradient, pairs = iterate.memory["gradient"], list(iterate.memory["pairs"])
        evaluations = iterate.evaluations
        for known in [pairs, []] if pairs else [[]]:
            search = _LineSearch(problem, iterate, self._direction(problem, iterate, known))
            yield from search.look(self.trials)
            evaluations += search.evaluations
            if search.found is not None:
                pair = [search.found.x - iterate.x, search.found.gradient - gradient]
                return (yield from _iterate(problem, search.found, evaluations, [*known, pair][-self.memory :]))
        end: tuple[Stopped, str] = ("stalled", "no step along the direction of descent lowers the loss")
        return Iterate(iterate.x, iterate.loss, iterate.gradient_norm, evaluations, iterate.memory, end)

    def report(self, problem: Problem, iterate: Iterate) -> Steps[None]:
        """Nothing to add."""
        yield from ()

    def _direction(self, problem: Problem, iterate: Iterate, pairs: list[list[torch.Tensor]]) -> torch.Tensor:
        """−H·g over the free components, zero for the held ones."""
        g = free_gradient(problem, iterate.x, iterate.memory["gradient"])
        free = g != 0
        usable = []
        for s, y in pairs:
            s, y = s * free, y * free
            if s @ y > 1e-10 * s.norm() * y.norm():  # curvature that keeps H positive definite
                usable.append((s, y))
        if not usable:
            direction = -g * (self.first_step / max(norm(g), 1e-300))
        else:
            direction = -_two_loops(g, usable) * free
            if direction @ g > -1e-12 * direction.norm() * g.norm():
                direction = -g * (self.first_step / norm(g))
        return direction * min(1.0, self.largest_step / max(norm(direction), 1e-300))


def _two_loops(g: torch.Tensor, pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    """H·g by the two-loop recursion (Nocedal and Wright, Numerical Optimization, algorithm 7.4)."""
    q, weights = g, []
    for s, y in reversed(pairs):
        weights.append((s @ q) / (s @ y))
        q = q - weights[-1] * y
    s, y = pairs[-1]
    r = q * ((s @ y) / (y @ y))
    for (s, y), weight in zip(pairs, reversed(weights), strict=True):
        r = r + s * (weight - (y @ r) / (s @ y))
    return r


class _LineSearch:
    """Looks along P(x + t·direction) for a point that is low enough and no longer falls steeply.

    Attributes:
        found: Such a point; else the lowest that was low enough; None: there was none.
        evaluations: Losses computed.
    """

    def __init__(self, problem: Problem, iterate: Iterate, direction: torch.Tensor) -> None:
        self._problem, self._x, self._loss = problem, iterate.x, iterate.loss
        self._gradient, self._direction = iterate.memory["gradient"], direction
        self.found: Evaluation | None = None
        self.evaluations = 0

    def look(self, trials: int) -> Steps[None]:
        """Tries so many points at most."""
        low, high, t = 0.0, torch.inf, 1.0
        for _ in range(trials):
            self.evaluations += 1
            evaluation = yield from evaluate(self._problem, project(self._problem, self._x + t * self._direction))
            if not (yield from self._low_enough(evaluation)):
                low, high, t = low, t, self._between(evaluation, low, t)
            elif self._flat_enough(evaluation):
                self.found = evaluation
                return
            else:
                self._keep(evaluation)
                low = t
                t = 2 * low if high == torch.inf else (low + high) / 2
            if high - low <= 1e-14 * high:
                return

    def _low_enough(self, trial: Evaluation) -> Steps[bool]:
        """Armijo's rule along the bent path, with a gradient that can be used."""
        moved = trial.x - self._x
        if not trial.loss < self._loss + _ARMIJO * (self._gradient @ moved).item() or not moved.any():
            return False
        return (yield from trial.finite())

    def _flat_enough(self, trial: Evaluation) -> bool:
        """The weak Wolfe condition, over components that can still move on."""
        ahead = project(self._problem, trial.x + self._direction) != trial.x
        direction = self._direction * ahead
        return (trial.gradient @ direction).item() >= _WOLFE * (self._gradient @ direction).item()

    def _between(self, trial: Evaluation, low: float, t: float) -> float:
        """Where a parabola through both ends is lowest, well within the interval; else its middle."""
        if low > 0.0 or not trial.loss < torch.inf:
            return (low + t) / 2 if low > 0.0 else t / 10
        slope = (self._gradient @ self._direction).item()
        rise = trial.loss - self._loss - slope * t
        guess = -slope * t * t / (2 * rise) if rise > 0 else t / 2
        return min(max(guess, 0.1 * t), 0.5 * t)

    def _keep(self, trial: Evaluation) -> None:
        if self.found is None or trial.loss < self.found.loss:
            self.found = trial


def _iterate(problem: Problem, found: Evaluation, evaluations: int, pairs: list[list[torch.Tensor]]) -> Steps[Iterate]:
    gradient = (yield from found.differentiate()) if found.loss < torch.inf else torch.zeros_like(found.x)
    size = norm(free_gradient(problem, found.x, gradient))
    return Iterate(found.x, found.loss, size, evaluations, {"gradient": gradient, "pairs": pairs})
