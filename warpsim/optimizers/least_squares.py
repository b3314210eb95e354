"""Residuals at a point and their derivatives, where some of the candidates beside it may not be simulated."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from warpsim.core.driving import Steps
from warpsim.core.errors import InputError, SimulationError, UnconvergedError
from warpsim.optimizers.candidates import residuals_side_by_side
from warpsim.optimizers.evaluation import project
from warpsim.optimizers.plain_problem import PlainProblem

_SHORTER = (1.0, 1e-2)
"""Shares of the difference that are tried one after the other where candidates beside the point fail."""


class Fit:
    """Residuals at a point, and the exact gradient of half their squares when first asked for.

    Attributes:
        x: (n,), plain variables.
        residuals: (m,), without a graph of their own to keep; empty where x cannot be simulated.
        loss: Half their sum of squares; infinite where x cannot be simulated.
    """

    def __init__(self, x: torch.Tensor, leaf: torch.Tensor, residuals: torch.Tensor | None, *, strict: bool) -> None:
        """Holds what `fit_at` found.

        Args:
            x: (n,).
            leaf: A copy of x that requires gradients.
            residuals: (m,), of the leaf; None where x cannot be simulated.
            strict: Let `UnconvergedError` through.
        """
        self.x = x
        self.residuals = x.new_full((0,), torch.nan) if residuals is None else residuals
        self.loss = float("inf") if residuals is None else residuals.square().sum().item() / 2
        self._leaf, self._strict = leaf, strict
        self._gradient: torch.Tensor | None = None

    @property
    def gradient(self) -> torch.Tensor:
        """(n,): Jᵀr, known once `finite` was driven."""
        assert self._gradient is not None
        return self._gradient

    def finite(self) -> Steps[bool]:
        """Whether the loss is a number and so is its gradient, which a step that did not converge has none of."""
        if not np.isfinite(self.loss):
            return False
        if self._gradient is None:
            if not self.residuals.requires_grad:
                raise InputError("the residuals do not depend on x, so nothing can be fitted; check what they read")
            try:
                found = yield partial(torch.autograd.grad, self.residuals, self._leaf, self.residuals.detach())
            except UnconvergedError:
                if self._strict:
                    raise
                return False
            (self._gradient,) = found
        return bool(torch.isfinite(self._gradient).all())


def fit_at(view: PlainProblem, x: torch.Tensor, *, strict: bool = False) -> Steps[Fit]:
    """Simulates x.

    Args:
        view: What is fitted.
        x: (n,), plain variables.
        strict: Let `SimulationError` through, as at a start, where it is the user's to mend.
    """
    leaf = x.clone().requires_grad_()
    try:
        residuals = yield partial(view.problem.residuals, view.x(leaf))
    except SimulationError:
        if strict:
            raise
        residuals = None
    if residuals is not None and residuals.ndim != 1:
        raise InputError(f"the residuals have shape {tuple(residuals.shape)}; give a vector")
    return Fit(x, leaf, residuals, strict=strict)


def jacobian_by_seeds(
    view: PlainProblem, x: torch.Tensor, m: int, *, strict: bool = False
) -> Steps[torch.Tensor | None]:
    """J (m, n), exact: each residual in a world of its own is pulled back.

    Args:
        view: What is fitted.
        x: (n,).
        m: Number of residuals.
        strict: Raise where a step did not converge, instead of returning None.
    """
    copies = x.expand(m, -1).clone().requires_grad_()
    try:
        residuals = yield partial(view.problem.batched_residuals, view.x(copies))
        (rows,) = yield partial(torch.autograd.grad, residuals.diagonal().sum(), copies)
    except UnconvergedError:
        if strict:
            raise
        return None
    return rows


def jacobian_by_differences(
    view: PlainProblem, fit: Fit, difference: float, *, strict: bool = False
) -> Steps[torch.Tensor | None]:
    """J (m, n) by central differences; one-sided where a bound is in the way or one side cannot be simulated.

    Args:
        view: What is fitted.
        fit: The point.
        difference: Half the distance of the two points, as a share of max(1, |x|).
        strict: Raise where a column stays unknown, instead of returning None.

    Raises:
        SimulationError: Nothing beside the point can be simulated.
    """
    x, n = fit.x, len(fit.x)
    found = torch.full((len(fit.residuals), n), torch.nan, dtype=x.dtype)
    for share in _SHORTER:
        missing = ~torch.isfinite(found).all(0)
        if not missing.any():
            break
        moves = torch.diag(share * difference * x.abs().clamp_min(1.0))[missing]
        sides = torch.cat([project(view, x + moves), project(view, x - moves)])
        with torch.no_grad():
            residuals = yield from residuals_side_by_side(view.problem.batched_residuals, view.x(sides))
        if residuals is not None:
            found[:, missing] = _slopes(fit, sides, residuals, missing)
    if torch.isfinite(found).all():
        return found
    if not strict:
        return None
    raise SimulationError(
        f"residuals beside this point are not finite along {_named(view, found)}, so their derivatives are unknown; "
        "keep the start away from where the simulation fails, or bound the parameters"
    )


def _slopes(fit: Fit, sides: torch.Tensor, found: torch.Tensor, missing: torch.Tensor) -> torch.Tensor:
    """(m, k): columns of J from the residuals (2·k, m) on both sides, or from those of one side and the point's own."""
    k = len(sides) // 2
    usable = torch.isfinite(found).all(-1)
    own = fit.residuals.detach()
    residuals = torch.where(usable[:, None], found, own)
    places = torch.where(usable[:, None], sides, fit.x)
    distance = (places[:k] - places[k:])[:, missing].diagonal()
    change = residuals[:k] - residuals[k:]
    known = usable[:k] | usable[k:]
    slope = torch.where(distance[:, None] > 0, change / torch.where(distance > 0, distance, 1.0)[:, None], 0.0)
    return torch.where(known[:, None], slope, torch.nan).T


def _named(view: PlainProblem, found: torch.Tensor) -> str:
    unknown = (~torch.isfinite(found).all(0)).tolist()
    return ", ".join(name for name, u in zip(view.names, unknown, strict=True) if u)
