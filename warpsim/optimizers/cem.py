"""The cross-entropy method: samples, the best of which say where to sample next. Reads losses only, no gradient.

For few variables, losses that jump, and comparison with gradients. Each generation draws candidates from a normal
distribution with independent components, evaluates all of them at once, one per world, and fits the distribution to
the best (Rubinstein and Kroese, "The Cross-Entropy Method", 2004).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from warpsim.core.driving import Steps
from warpsim.core.errors import InputError
from warpsim.optimizers.evaluation import evaluate, project
from warpsim.optimizers.iterate import Iterate
from warpsim.optimizers.problem import Problem
from warpsim.optimizers.result import Stopped


@dataclass(frozen=True)
class CEM:
    """Generations of samples within the bounds; an iterate is the best sample of its generation.

    Where gradient methods report the largest component of the gradient, this one reports the largest deviation.

    Attributes:
        samples: Candidates in a generation.
        elites: How many of the best the next generation is fitted to.
        deviation: Of the first generation around the start, in units of x.
        inertia: Share of mean and deviation that stays from one generation to the next; 0: none.
        least: Converged when no component's deviation exceeds this.
        seed: Of the samples: the same seed draws the same.
    """

    samples: int = 64
    elites: int = 8
    deviation: float = 0.5
    inertia: float = 0.0
    least: float = 1e-7
    seed: int = 0
    name = "cem"

    def __post_init__(self) -> None:
        if not 2 <= self.elites <= self.samples:
            raise InputError(f"samples={self.samples}, elites={self.elites}: 2 ≤ elites ≤ samples is needed")
        if not (self.deviation > 0.0 and 0.0 <= self.inertia < 1.0):
            raise InputError(
                f"deviation={self.deviation}, inertia={self.inertia}: needed are > 0 and from 0 to below 1"
            )

    def begin(self, problem: Problem, x: torch.Tensor) -> Steps[Iterate]:
        """The iterate at a start (n,)."""
        loss = (yield from evaluate(problem, x, strict=True)).loss
        memory = {"mean": x, "deviation": torch.full_like(x, self.deviation), "generation": 0}
        return Iterate(x, loss, self.deviation, 1, memory)

    def advance(self, problem: Problem, iterate: Iterate) -> Steps[Iterate]:
        """One generation."""
        memory = iterate.memory
        generation = memory["generation"]
        # of seed and generation alone, so that a search that goes on draws what it would have drawn
        noise = np.random.default_rng([self.seed, generation]).standard_normal((self.samples, len(iterate.x)))
        candidates = project(problem, memory["mean"] + memory["deviation"] * torch.as_tensor(noise))
        with torch.no_grad():
            losses = yield partial(problem.losses, candidates)
        losses = torch.where(torch.isfinite(losses), losses, torch.inf)
        order = losses.argsort(stable=True)
        best = int(order[0])
        chosen = [k for k in order[: self.elites].tolist() if losses[k] < torch.inf]
        mean, deviation = self._fitted(candidates[chosen], memory)
        largest = float(deviation.max()) if len(deviation) else 0.0
        finished: tuple[Stopped, str] | None = None
        if largest <= self.least:
            finished = ("converged", f"no component of the samples deviates by more than {self.least:g}")
        return Iterate(
            x=candidates[best],
            loss=losses[best].item(),
            gradient_norm=largest,
            evaluations=iterate.evaluations + self.samples,
            memory={"mean": mean, "deviation": deviation, "generation": generation + 1},
            finished=finished,
            dropped=iterate.dropped + int(torch.isinf(losses).sum()),
        )

    def report(self, problem: Problem, iterate: Iterate) -> Steps[None]:
        """Nothing to add."""
        yield from ()

    def _fitted(self, elites: torch.Tensor, memory: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and deviation of the next generation; the last one's where too few candidates could be simulated."""
        if len(elites) < 2:
            return memory["mean"], memory["deviation"]
        old, new = self.inertia, 1.0 - self.inertia
        mean, deviation = elites.mean(0), elites.std(0, correction=0)
        return old * memory["mean"] + new * mean, old * memory["deviation"] + new * deviation
