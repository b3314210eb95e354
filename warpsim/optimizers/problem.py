"""What every optimizer sees: a vector to choose within bounds, and the loss it gives; no simulator in sight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import torch

from warpsim.core.errors import InputError
from warpsim.optimizers.candidates import losses_one_by_one


class Problem(Protocol):
    """Minimize `loss(x)` over lower ≤ x ≤ upper.

    Values of x should be of about unit size, so that one step length suits all of them. Where x cannot be simulated,
    methods raise `SimulationError` and optimizers count the loss as infinite; in `losses` such a candidate's loss is
    infinite, while the others keep theirs.
    """

    @property
    def start(self) -> torch.Tensor:
        """(n,) float64: where the search begins, within the bounds."""
        ...

    @property
    def lower(self) -> torch.Tensor:
        """(n,): least values of x, −inf where there is none."""
        ...

    @property
    def upper(self) -> torch.Tensor:
        """(n,): greatest values of x, inf where there is none."""
        ...

    @property
    def names(self) -> Sequence[str]:
        """(n,): what each component of x is called in reports."""
        ...

    def loss(self, x: torch.Tensor) -> torch.Tensor:
        """Scalar loss at x (n,), differentiable by x."""
        ...

    def losses(self, x: torch.Tensor) -> torch.Tensor:
        """(k,) losses of k candidates x (k, n) at once, differentiable; over worlds where there is a simulator."""
        ...

    def residuals(self, x: torch.Tensor) -> torch.Tensor:
        """(m,) residuals at x (n,), differentiable: loss = ½·‖residuals‖², up to a constant.

        Raises:
            InputError: The objective is not a sum of squares; names the term that is not.
        """
        ...

    def batched_residuals(self, x: torch.Tensor) -> torch.Tensor:
        """(k, m) residuals of k candidates x (k, n) at once, differentiable."""
        ...


@runtime_checkable
class Shortens(Protocol):
    """A problem over time that can be cut off early, to be solved for a short horizon first."""

    def shortened(self, share: float) -> Problem | None:
        """The same choice of x judged by the first part of the time alone.

        Args:
            share: Of the time, between 0 and 1.

        Returns:
            A problem with those residuals that depend on this part alone; None where there are none.
        """
        ...


@runtime_checkable
class HasMetric(Protocol):
    """A problem that knows better than by the sum of squares how far apart two x are."""

    def steepest(self, gradient: torch.Tensor, held: torch.Tensor) -> torch.Tensor:
        """M⁻¹g (n,) of a gradient (n,), where M is the metric, a positive matrix: the direction of steepest ascent.

        Args:
            gradient: Zero where `held`.
            held: (n,) which components stay, at a bound; M is that of the others, or M⁻¹g might lead uphill.
        """
        ...


class FunctionProblem:
    """A problem made of torch functions of x.

    Attributes: `start`, `lower`, `upper` and `names`, as in `Problem`.
    """

    def __init__(
        self,
        start: torch.Tensor | Sequence[float],
        *,
        loss: Callable[[torch.Tensor], torch.Tensor] | None = None,
        residuals: Callable[[torch.Tensor], torch.Tensor] | None = None,
        lower: torch.Tensor | Sequence[float] | float | None = None,
        upper: torch.Tensor | Sequence[float] | float | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        """Takes functions of one candidate; many are evaluated one after the other.

        Args:
            start: (n,).
            loss: x (n,) → scalar; None: half the sum of the squares of the residuals.
            residuals: x (n,) → (m,); None: the loss is no sum of squares.
            lower: (n,) or one number; None: no lower bounds.
            upper: (n,) or one number; None: no upper bounds.
            names: (n,); None: x0, x1, …
        """
        if loss is None and residuals is None:
            raise InputError("a problem needs loss= or residuals=")
        self.start = torch.as_tensor(start, dtype=torch.float64).detach().clone()
        if self.start.ndim != 1:
            raise InputError(f"start has shape {tuple(self.start.shape)}; give a vector")
        self.lower = self._bound("lower", lower, -torch.inf)
        self.upper = self._bound("upper", upper, torch.inf)
        self.names = tuple(f"x{i}" for i in range(len(self.start))) if names is None else tuple(names)
        if len(self.names) != len(self.start):
            raise InputError(f"{len(self.names)} names for {len(self.start)} values")
        check_bounds(self, self.start)
        self._loss = loss
        self._residuals = residuals

    def loss(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`."""
        return self._loss(x) if self._loss is not None else self.residuals(x).square().sum() / 2

    def losses(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`."""
        return losses_one_by_one(self.loss, x)

    def residuals(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`."""
        if self._residuals is None:
            raise InputError("this problem's loss is no sum of squares: it was made without residuals=")
        return self._residuals(x)

    def batched_residuals(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`."""
        return torch.stack([self.residuals(row) for row in x])

    def _bound(self, name: str, value: torch.Tensor | Sequence[float] | float | None, default: float) -> torch.Tensor:
        given = torch.as_tensor(default if value is None else value, dtype=torch.float64).detach()
        if given.shape not in ((), self.start.shape):
            raise InputError(f"{name} has shape {tuple(given.shape)}; needed: {tuple(self.start.shape)} or one number")
        return given.expand(self.start.shape).clone()


def check_bounds(problem: Problem, start: torch.Tensor) -> None:
    """Raises `InputError` where a start or a bound is not a number, or the start is out of bounds."""
    low, high = problem.lower, problem.upper
    if start.shape != low.shape:
        raise InputError(f"the start has shape {tuple(start.shape)}; needed: {tuple(low.shape)}")
    if bool((low <= start).all()) and bool((start <= high).all()) and bool(torch.isfinite(start).all()):
        return
    for i, name in enumerate(problem.names):
        if not float(low[i]) <= float(high[i]):
            raise InputError(f"{name}: the lower bound {float(low[i]):g} is not below the upper, {float(high[i]):g}")
        if not float(low[i]) <= float(start[i]) <= float(high[i]) or not torch.isfinite(start[i]):
            raise InputError(
                f"{name} starts at {float(start[i]):g}, which is outside [{float(low[i]):g}, {float(high[i]):g}]; "
                "start within the bounds"
            )
