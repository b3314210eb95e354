"""Levenberg–Marquardt for sums of squares: the method for fitting parameters to data.

The gradient Jᵀr is exact, from one reverse pass, so the point to which the method converges does not depend on how J is
computed. J itself only shapes the steps and the covariance. With n parameters and m residuals it costs 2·n simulations
by central differences (each candidate in a world of its own, all at once) or m by reverse mode (each residual seeded in
a world of its own), which is exact but dearer wherever there are more data than parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from warpsim.errors import InputError, SimulationError
from warpsim.optimize.box_qp import box_qp
from warpsim.optimize.evaluation import free_gradient, norm, project
from warpsim.optimize.identification import Identification, identify
from warpsim.optimize.iterate import Iterate
from warpsim.optimize.problem import Problem
from warpsim.optimize.result import Stopped

_REVERSE_COST = 3.0
"""A reverse pass and the forward pass it needs, in forward passes."""


@dataclass(frozen=True)
class LevenbergMarquardt:
    """Options.

    Attributes:
        jacobian: "differences", "reverse", or "auto": the cheaper for the numbers of parameters and residuals.
        difference: Half the distance of the points of a central difference, in units of x.
        damping: At the start, as a share of the diagonal of JᵀJ.
        trials: Most steps tried in one iteration.
    """

    jacobian: Literal["auto", "differences", "reverse"] = "auto"
    difference: float = 1e-5
    damping: float = 1e-3
    trials: int = 20
    name = "levenberg_marquardt"

    def begin(self, problem: Problem, x: torch.Tensor) -> Iterate:
        """The iterate at a start (n,)."""
        return self._iterate(problem, _Fit(problem, x, strict=True), 1, {"damping": self.damping, "growth": 2.0})

    def advance(self, problem: Problem, iterate: Iterate) -> Iterate:
        """Damped Gauss–Newton steps until one lowers the sum of squares; the damping follows Nielsen's rule (1999)."""
        memory, x, evaluations = iterate.memory, iterate.x, iterate.evaluations
        damping, growth = memory["damping"], memory["growth"]
        end: tuple[Stopped, str] = ("stalled", f"none of {self.trials} steps lowers the sum of squares")
        for _ in range(self.trials):
            step, promised = _step(problem, x, memory, damping)
            if promised <= 1e-15 * iterate.loss or norm(step) <= 1e-14 * (1 + norm(x)):
                end = ("converged", "the next step would be smaller than rounding")
                break
            fit = _Fit(problem, project(problem, x + step))
            evaluations += 1
            gain = (iterate.loss - fit.loss) / promised
            if gain > 1e-4 and fit.finite:
                damping *= max(1 / 3, 1 - (2 * gain - 1) ** 3)
                return self._iterate(problem, fit, evaluations, {"damping": damping, "growth": 2.0})
            damping, growth = damping * growth, growth * 2
        return Iterate(x, iterate.loss, iterate.gradient_norm, evaluations, memory, end)

    def report(self, problem: Problem, iterate: Iterate) -> Identification | None:
        """Covariance of the estimates, and what the data cannot tell apart; None where they are not finite."""
        if "root" not in iterate.memory:
            return None
        gradient = iterate.memory["gradient"]
        held = (free_gradient(problem, iterate.x, gradient) == 0) & (gradient != 0)
        root, count = iterate.memory["root"], iterate.memory["count"]
        return identify(problem.names, iterate.x, root, 2 * iterate.loss, count, held)

    def _iterate(self, problem: Problem, fit: _Fit, evaluations: int, memory: dict[str, Any]) -> Iterate:
        if not fit.finite:
            return Iterate(fit.x, fit.loss, torch.nan, evaluations, memory)
        rows, used = self._jacobian(problem, fit)
        root = torch.linalg.qr(rows, mode="r").R
        root = torch.cat([root, root.new_zeros(len(fit.x) - len(root), len(fit.x))])  # fewer data than parameters
        kept = {**memory, "root": root, "gradient": fit.gradient, "count": len(rows)}
        size = norm(free_gradient(problem, fit.x, fit.gradient))
        return Iterate(fit.x, fit.loss, size, evaluations + used, kept)

    def _jacobian(self, problem: Problem, fit: _Fit) -> tuple[torch.Tensor, int]:
        """J (m, n), and how many candidates it took."""
        m, n = len(fit.residuals), len(fit.x)
        reverse = self.jacobian == "reverse" or (self.jacobian == "auto" and _REVERSE_COST * m <= 2 * n)
        return (
            (_by_seeds(problem, fit.x, m), m) if reverse else (_by_differences(problem, fit.x, self.difference), 2 * n)
        )


class _Fit:
    """Residuals at a point, and the exact gradient of half their squares when first asked for."""

    def __init__(self, problem: Problem, x: torch.Tensor, *, strict: bool = False) -> None:
        self.x = x
        self._leaf = x.clone().requires_grad_()
        self._gradient: torch.Tensor | None = None
        self.residuals = x.new_full((0,), torch.nan)
        self.loss = float("inf")
        try:
            self.residuals = problem.residuals(self._leaf)
            self.loss = self.residuals.square().sum().item() / 2
        except SimulationError:
            if strict:
                raise
        if self.residuals.ndim != 1:
            raise InputError(f"the residuals have shape {tuple(self.residuals.shape)}; give a vector")

    @property
    def gradient(self) -> torch.Tensor:
        if self._gradient is None:
            if not self.residuals.requires_grad:
                raise InputError("the residuals do not depend on x, so nothing can be fitted; check what they read")
            (self._gradient,) = torch.autograd.grad(self.residuals, self._leaf, self.residuals.detach())
        return self._gradient

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.loss)) and bool(torch.isfinite(self.gradient).all())


def _step(problem: Problem, x: torch.Tensor, memory: Any, damping: float) -> tuple[torch.Tensor, float]:
    """The damped step within the bounds, and by how much the undamped model says it lowers the loss."""
    root, gradient = memory["root"].numpy(), memory["gradient"].numpy()
    hessian = root.T @ root
    scale = np.diag(hessian).copy()
    scale[scale <= 1e-12 * scale.max()] = max(scale.max(), 1.0) * 1e-12
    low, high = (problem.lower - x).numpy(), (problem.upper - x).numpy()
    step = box_qp(hessian + damping * np.diag(scale), gradient, low, high, np.zeros(len(x))).x
    moved = root @ step
    return torch.from_numpy(step), float(-gradient @ step - 0.5 * moved @ moved)


def _by_seeds(problem: Problem, x: torch.Tensor, m: int) -> torch.Tensor:
    copies = x.expand(m, -1).clone().requires_grad_()
    (rows,) = torch.autograd.grad(problem.residual_rows(copies).diagonal().sum(), copies)
    return rows


def _by_differences(problem: Problem, x: torch.Tensor, difference: float) -> torch.Tensor:
    """Central differences, one-sided where a bound is in the way."""
    moves = torch.diag(difference * x.abs().clamp_min(1.0))
    ahead, behind = project(problem, x + moves), project(problem, x - moves)
    with torch.no_grad():
        rows = problem.residual_rows(torch.cat([ahead, behind]))
    if not torch.isfinite(rows).all():
        raise SimulationError(
            "residuals beside this point are not finite, so their derivatives are unknown; keep the start away from "
            "where the simulation fails, or bound the parameters"
        )
    distance = (ahead - behind).diagonal()
    change = rows[: len(x)] - rows[len(x) :]
    return torch.where(distance[:, None] > 0, change / torch.where(distance > 0, distance, 1.0)[:, None], 0.0).T
