"""Gradient estimates over worlds: first-order, zeroth-order (randomized smoothing), and a mix by their variances.

A gradient of the simulation is exact for the piece the rollout took. Where pieces matter more than slopes (a wall to
be cleared, a contact to be made) the gradient of the loss *smoothed* over x + σ ε, ε normal, leads further. It has two
unbiased estimates where the loss is continuous: the mean of ∇f(x + σ ε), and the mean of (f(x + σ ε) − f(x)) ε/σ, which
also sees jumps and needs no gradient at all, but scatters more. The mix weighs each by the variance of the other (Suh
et al., "Do differentiable simulators give better policy gradients?", 2022); where the two contradict each other by more
than they scatter, the first misses something, and the second is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from warpsim.core.errors import InputError, SimulationError

Losses = Callable[[torch.Tensor], torch.Tensor]
"""(k,) losses of k candidates (k, n), differentiable; e.g. `Problem.losses`, one world per candidate."""

KINDS = ("first", "zeroth", "mixed")
_CONTRADICTION = 3.0
"""Standard deviations of their difference by which two estimates of one number may differ."""


@dataclass(frozen=True)
class GradientEstimate:
    """An estimate of a gradient.

    Attributes:
        gradient: (n,).
        variance: Of the mean, summed over components.
        share: Weight of the first-order estimate in it, 0 to 1.
        losses: (k,) of the samples; infinite where one could not be simulated, which leaves its pair out.
    """

    gradient: torch.Tensor
    variance: float
    share: float
    losses: torch.Tensor


class GradientEstimator:
    """Estimates gradients of a smoothed loss; successive calls draw new samples."""

    def __init__(
        self,
        losses: Losses,
        *,
        kind: str = "mixed",
        deviation: float,
        samples: int,
        seed: int | Sequence[int] = 0,
    ) -> None:
        """Chooses an estimate.

        Args:
            losses: What is minimized, for several candidates at once.
            kind: "first", "zeroth" or "mixed".
            deviation: σ, in the units of x.
            samples: k, used in pairs x ± σ ε, which cancels even orders; even.
            seed: Of the samples.
        """
        if kind not in KINDS:
            raise InputError(f"kind={kind!r}; one of {', '.join(KINDS)}")
        if samples < 4 or samples % 2:
            raise InputError(f"samples={samples}; give an even number of at least 4")
        self._losses, self._kind, self._deviation, self._samples = losses, kind, deviation, samples
        self._rng = np.random.default_rng(seed)

    def __call__(self, x: torch.Tensor) -> GradientEstimate:
        """The estimate at x (n,)."""
        half = torch.as_tensor(self._rng.normal(size=(self._samples // 2, len(x)))).to(x)
        noise = torch.cat([half, -half])
        candidates = (x + self._deviation * noise).detach().requires_grad_(self._kind != "zeroth")
        losses = self._losses(candidates)
        kept = self._whole_pairs(losses.detach())
        values = losses.detach()[kept]
        zeroth, zeroth_variance = _mean(_pairs((values - values.mean())[:, None] * noise[kept]))
        zeroth, zeroth_variance = zeroth / self._deviation, zeroth_variance / self._deviation**2
        if self._kind == "zeroth":
            return GradientEstimate(zeroth, zeroth_variance, 0.0, losses.detach())
        (slopes,) = torch.autograd.grad(losses[kept].sum(), candidates)
        first, first_variance = _mean(_pairs(slopes[kept]))
        if self._kind == "first":
            return GradientEstimate(first, first_variance, 1.0, losses.detach())
        share = self._share(first, first_variance, zeroth, zeroth_variance)
        variance = share**2 * first_variance + (1.0 - share) ** 2 * zeroth_variance
        return GradientEstimate(share * first + (1.0 - share) * zeroth, variance, share, losses.detach())

    def _whole_pairs(self, losses: torch.Tensor) -> torch.Tensor:
        """(k,) bool: which samples count: those of pairs that could both be simulated."""
        pairs = torch.isfinite(losses).reshape(2, -1).all(0)
        if pairs.sum() < 2:
            raise SimulationError(
                f"of {len(pairs)} pairs of samples {int(pairs.sum())} could be simulated, and two are needed; give "
                f"more samples, or a deviation below {self._deviation:g}"
            )
        return pairs.repeat(2)

    def _share(self, first: torch.Tensor, v1: float, zeroth: torch.Tensor, v0: float) -> float:
        """Weight of the first-order estimate."""
        total = v1 + v0
        if not np.isfinite(total) or total == 0.0:
            return 0.0 if not np.isfinite(v1) else 1.0
        gap = float((first - zeroth).norm())
        return 0.0 if gap > _CONTRADICTION * total**0.5 else v0 / total


def _pairs(terms: torch.Tensor) -> torch.Tensor:
    """Means over antithetic pairs, which are independent of each other."""
    half = len(terms) // 2
    return 0.5 * (terms[:half] + terms[half:])


def _mean(terms: torch.Tensor) -> tuple[torch.Tensor, float]:
    """Mean of independent terms (k, n), and its variance summed over components."""
    return terms.mean(0), float(terms.var(0).sum() / len(terms))
