"""A problem whose gradient is an estimate over samples, so that every gradient method runs with every estimate."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import torch

from warpsim.core.errors import InputError
from warpsim.optimizers.candidates import losses_one_by_one
from warpsim.optimizers.estimators import GradientEstimate, GradientEstimator
from warpsim.optimizers.evaluation import project
from warpsim.optimizers.problem import Problem


class SmoothedProblem:
    """Losses of a problem, with gradients of that loss smoothed over x + σ ε; see `GradientEstimator`.

    Samples are drawn from the seed and x alone, so the same x always has the same gradient. Those that leave the
    bounds are moved back to them.

    Attributes: `start`, `lower`, `upper` and `names`, as in `Problem`.
    """

    def __init__(self, problem: Problem, *, kind: str = "mixed", deviation: float, samples: int, seed: int = 0) -> None:
        """Wraps a problem.

        Args:
            problem: What is minimized.
            kind: "first", "zeroth" or "mixed".
            deviation: σ, in the units of x.
            samples: Candidates per gradient, even; each a world.
            seed: Of the samples.
        """
        self.start, self.lower, self.upper = problem.start, problem.lower, problem.upper
        self.names: Sequence[str] = problem.names
        self._problem, self._seed = problem, seed
        self._options: dict[str, Any] = {"kind": kind, "deviation": deviation, "samples": samples}
        GradientEstimator(problem.losses, **self._options)  # wrong options are refused here

    def estimate(self, x: torch.Tensor) -> GradientEstimate:
        """The estimate of the gradient at x (n,)."""
        seed = [self._seed, zlib.crc32(x.detach().cpu().numpy().tobytes())]
        return GradientEstimator(self._candidates, seed=seed, **self._options)(x.detach())

    def loss(self, x: torch.Tensor) -> torch.Tensor:
        """The problem's own loss at x, with the estimated gradient."""
        with torch.no_grad():
            value = self._problem.loss(x)
        if not x.requires_grad:
            return value
        slope = self.estimate(x).gradient
        return value + (slope * (x - x.detach())).sum()  # adds zero, and the slope

    def losses(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`; each row has an estimate of its own."""
        return losses_one_by_one(self.loss, x)

    def residuals(self, x: torch.Tensor) -> torch.Tensor:
        """Raises: the estimate is of the loss."""
        raise InputError("gradients are estimated for a loss, not for residuals; choose another method")

    batched_residuals = residuals

    def _candidates(self, x: torch.Tensor) -> torch.Tensor:
        return self._problem.losses(project(self._problem, x))
