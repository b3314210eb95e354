"""Losses and gradients of a problem as numbers, with bounds taken into account."""

from __future__ import annotations

import math
from functools import partial
from typing import Protocol

import torch

from warpsim.core.driving import Steps
from warpsim.core.errors import InputError, SimulationError, UnconvergedError
from warpsim.optimizers.problem import Problem


class Evaluation:
    """A loss at a point, and its gradient when first asked for.

    Attributes:
        x: (n,).
        loss: At x; infinite where x could not be simulated.
    """

    def __init__(self, x: torch.Tensor, leaf: torch.Tensor, graph: torch.Tensor) -> None:
        """Holds what `evaluate` found.

        Args:
            x: (n,).
            leaf: A copy of x that requires gradients.
            graph: The loss, of the leaf.
        """
        self.x, self.loss = x, graph.item()
        self._leaf, self._graph = leaf, graph
        self._gradient: torch.Tensor | None = None

    @property
    def gradient(self) -> torch.Tensor:
        """(n,): known once `differentiate` or `finite` was driven."""
        assert self._gradient is not None
        return self._gradient

    def differentiate(self) -> Steps[torch.Tensor]:
        """(n,): the gradient, computed once."""
        if self._gradient is None:
            if not self._graph.requires_grad:
                raise InputError("the loss does not depend on x, so nothing can be optimized; check what it reads")
            (self._gradient,) = yield partial(torch.autograd.grad, self._graph, self._leaf)
        return self._gradient

    def finite(self) -> Steps[bool]:
        """Whether the loss is a number and so is its gradient, which a step that did not converge has none of."""
        if not math.isfinite(self.loss):
            return False
        try:
            return bool(torch.isfinite((yield from self.differentiate())).all())
        except UnconvergedError:
            return False


def evaluate(problem: Problem, x: torch.Tensor, *, strict: bool = False) -> Steps[Evaluation]:
    """Computes a loss.

    Args:
        problem: What is evaluated.
        x: (n,).
        strict: Let `SimulationError` through, as at a start, where it is the user's to mend.
    """
    x = x.detach()
    leaf = x.clone().requires_grad_()
    try:
        graph = yield partial(problem.loss, leaf)
    except SimulationError:
        if strict:
            raise
        graph = leaf.new_full((), torch.inf)
    if graph.shape != ():
        raise InputError(f"the loss has shape {tuple(graph.shape)}; it must be one number")
    return Evaluation(x, leaf, graph)


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
    return torch.where(blocked(problem, x, gradient), 0.0, gradient)


def blocked(problem: Bounded, x: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    """(n,) which components stand at a bound that the descent would cross."""
    return ((x <= problem.lower) & (gradient > 0)) | ((x >= problem.upper) & (gradient < 0))


def norm(gradient: torch.Tensor) -> float:
    """Largest component."""
    return gradient.abs().max().item() if gradient.numel() else 0.0
