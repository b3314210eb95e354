"""Whether the gradient of a fit's loss can be followed: exact derivatives against differences over growing steps.

A loss over contacts may be smooth at a small scale and rugged at the scale of a search's steps. Then its exact gradient
is right and useless. Along random directions, the derivative of every recording's loss is compared with central
differences of several steps; all recordings are looked at, each in a world of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from warpsim.core.errors import SimulationError
from warpsim.identification.gauss_newton import GaussNewton, Setting
from warpsim.identification.robust import sample_losses

STEPS = (1e-4, 1e-3, 1e-2, 1e-1)
"""In units of x, that is of the parameters' scales."""
_AGREES = 0.98
_DIRECTIONS = 2


@dataclass(frozen=True)
class LossCheck:
    """The comparison.

    Attributes:
        steps: Of the differences, in units of the parameters' scales.
        cosine: For each step, between the recordings' derivatives and differences; 1: they agree. NaN: candidates at
            this distance cannot be simulated.
        ratio: For each step, length of the derivatives over that of the differences.
        exact: (directions, R) derivatives.
        differences: (steps, directions, R).
        advice: What to do.
    """

    steps: tuple[float, ...]
    cosine: tuple[float, ...]
    ratio: tuple[float, ...]
    exact: torch.Tensor
    differences: torch.Tensor
    advice: str

    @property
    def ok(self) -> bool:
        """Whether they agree at every step."""
        return all(c >= _AGREES for c in self.cosine)

    def __str__(self) -> str:
        lines = [
            f"step {step:g}: cosine {c:.4f}, lengths {r:.3g} : 1"
            for step, c, r in zip(self.steps, self.cosine, self.ratio, strict=True)
        ]
        return "\n".join(["exact gradient of the loss against differences, all recordings:", *lines, self.advice])


def check_loss(solver: GaussNewton, setting: Setting, *, seed: int = 0) -> LossCheck:
    """Compares at a solver's x.

    Args:
        solver: Where.
        setting: Samples and contacts.
        seed: Of the directions.
    """
    generator = torch.Generator().manual_seed(seed)
    directions = torch.randn(_DIRECTIONS, len(solver.x), generator=generator, dtype=torch.float64)
    directions = directions / torch.linalg.vector_norm(directions, dim=-1, keepdim=True)
    slopes = _gradients(solver, setting) @ directions.T  # (R, directions)
    exact = slopes.T
    found = torch.stack([_differences(solver, setting, directions, step) for step in STEPS])
    cosine, ratio = [], []
    for one in found:
        sizes = torch.linalg.vector_norm(exact), torch.linalg.vector_norm(one)
        cosine.append(float((exact * one).sum() / (sizes[0] * sizes[1]).clamp_min(1e-300)))
        ratio.append(float(sizes[0] / sizes[1].clamp_min(1e-300)))
    return LossCheck(STEPS, tuple(cosine), tuple(ratio), exact, found, advise(cosine, ratio, setting))


def _gradients(solver: GaussNewton, setting: Setting) -> torch.Tensor:
    """(R, n) derivatives of each recording's loss by the shared numbers, by reverse mode."""
    count = len(solver.chosen)
    x = solver.x.expand(count, -1).clone().requires_grad_(True)
    made = solver.residuals(x[None], solver.z[None], setting)
    sample_losses(made, solver.width(made, setting)).sum().backward()
    assert x.grad is not None
    return x.grad


@torch.no_grad()
def _differences(solver: GaussNewton, setting: Setting, directions: torch.Tensor, step: float) -> torch.Tensor:
    """(directions, R) central differences of each recording's loss; NaN where they cannot be simulated."""
    lower, upper = torch.tensor(solver.lower), torch.tensor(solver.upper)
    points = torch.cat([solver.x + step * directions, solver.x - step * directions])
    points = torch.maximum(torch.minimum(points, upper), lower)
    try:
        made = solver.residuals(points, solver.z.expand(len(points), -1, -1), setting)
    except SimulationError:
        return torch.full((len(directions), len(solver.chosen)), torch.nan, dtype=torch.float64)
    losses = sample_losses(made, solver.width(made, setting)).sum(-1)
    ahead, behind = losses.chunk(2)
    return (ahead - behind) / (2 * step)


def advise(cosine: list[float], ratio: list[float], setting: Setting) -> str:
    """What the numbers mean.

    Args:
        cosine: By step, smallest first.
        ratio: Likewise.
        setting: What was compared.
    """
    if all(c >= _AGREES for c in cosine):
        return "They agree at every step: the gradient can be followed."
    softer = 2 * setting.contacts.softening or 0.004
    if cosine[0] >= _AGREES:
        return (
            "The gradient is right, but the loss is rugged at the size of a search's steps: soften contacts "
            f"(softening={softer:g}), begin with short horizons, or smooth the start."
        )
    if max(ratio) > 10:
        return (
            "Derivatives are far larger than what differences see: the motion is chaotic over these samples; compare "
            f"fewer samples, soften contacts (softening={softer:g}) or resolve impacts (impacts=True)."
        )
    return (
        "They disagree even at small steps: contacts switch within a step; soften them "
        f"(softening={softer:g}) or resolve impacts (impacts=True)."
    )
