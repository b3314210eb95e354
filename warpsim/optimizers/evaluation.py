"""Losses and gradients of a problem as numbers, with bounds taken into account."""

from __future__ import annotations

import math
from typing import Protocol

import torch

from warpsim.core.errors import InputError, SimulationError, UnconvergedError
from warpsim.optimizers.problem import Problem


class Evaluation:
    """A loss at a point, and its gradient when first asked for.

    Attributes:
        x: (n,).
        loss: At x; infinite where x could not be simulated.
    """

    def __init__(self, problem: Problem, x: torch.Tensor, *, strict: bool = False) -> None:
        """Computes the loss.

        Args:
            problem: What is evaluated.
            x: (n,).
            strict: Let `SimulationError` through, as at a start, where it is the user's to mend.
        """
        self.x = x.detach()
        self._leaf = self.x.clone().requires_grad_()
        self._gradient: torch.Tensor | None = None
        try:
            self._graph = problem.loss(self._leaf)
        except SimulationError:
            if strict:
                raise
            self._graph = self._leaf.new_full((), torch.inf)
        if self._graph.shape != ():
            raise InputError(f"the loss has shape {tuple(self._graph.shape)}; it must be one number")
        self.loss = self._graph.item()

    @property
    def gradient(self) -> torch.Tensor:
        """(n,)."""
        if self._gradient is None:
            if not self._graph.requires_grad:
                raise InputError("the loss does not depend on x, so nothing can be optimized; check what it reads")
            (self._gradient,) = torch.autograd.grad(self._graph, self._leaf)
        return self._gradient

    @property
    def finite(self) -> bool:
        """Whether the loss is a number and so is its gradient, which a step that did not converge has none of."""
        try:
            return math.isfinite(self.loss) and bool(torch.isfinite(self.gradient).all())
        except UnconvergedError:
            return False


class Bounded(Protocol):
    """What has a box; see `Problem`."""

    @property
    def lower(self) -> torch.Tensor:
        """(n,)."""
        ...

    @property
    def upper(self) -> torch.Tensor:
        """(n,)."""
        ...


def project(problem: Bounded, x: torch.Tensor) -> torch.Tensor:
    """The nearest point within the bounds."""
    return torch.minimum(torch.maximum(x, problem.lower), problem.upper)


def free_gradient(problem: Bounded, x: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    """The gradient without components at a bound that the descent would cross; zero at a constrained optimum."""
    blocked = ((x <= problem.lower) & (gradient > 0)) | ((x >= problem.upper) & (gradient < 0))
    return torch.where(blocked, 0.0, gradient)


def norm(gradient: torch.Tensor) -> float:
    """Largest component."""
    return gradient.abs().max().item() if gradient.numel() else 0.0
