"""A problem in plain variables: values are linear in them and bounds are a box, whatever x is.

A change of variable that keeps a bound (an exponential, a sigmoid) swallows all slope near it: a Gauss–Newton step from
afar that ends there never comes back. In plain variables a component at a bound is held while it is pushed against it,
and let go when it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch

from warpsim.optimizers.problem import Problem


@dataclass(frozen=True)
class PlainVariables:
    """A change of variable, component by component.

    Attributes:
        lower: (n,): bounds of the plain variables, −inf where there are none.
        upper: (n,) likewise.
        of: x (n,) → plain variables (n,), monotone in each, differentiable.
        x: Plain variables (…, n) within the bounds → x (…, n), differentiable.
    """

    lower: torch.Tensor
    upper: torch.Tensor
    of: Callable[[torch.Tensor], torch.Tensor]
    x: Callable[[torch.Tensor], torch.Tensor]


@runtime_checkable
class HasPlainVariables(Protocol):
    """A problem whose x keeps bounds by changes of variable."""

    @property
    def plain(self) -> PlainVariables:
        """The way to plain variables and back."""
        ...


class PlainProblem:
    """A problem's plain variables, or x where there are no others.

    Attributes:
        problem: In x.
        lower: (n,): bounds.
        upper: (n,) likewise.
        names: (n,).
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._plain = problem.plain if isinstance(problem, HasPlainVariables) else None
        self.lower = problem.lower if self._plain is None else self._plain.lower
        self.upper = problem.upper if self._plain is None else self._plain.upper
        self.names: Sequence[str] = problem.names

    def of(self, x: torch.Tensor) -> torch.Tensor:
        """The plain variables (n,) of x (n,), within the bounds."""
        made = x if self._plain is None else self._plain.of(x)
        return torch.minimum(torch.maximum(made, self.lower), self.upper)

    def x(self, plain: torch.Tensor) -> torch.Tensor:
        """x (…, n) of plain variables (…, n)."""
        return plain if self._plain is None else self._plain.x(plain)

    def slope(self, x: torch.Tensor) -> torch.Tensor:
        """(n,): d plain / d x."""
        if self._plain is None:
            return torch.ones_like(x)
        leaf = x.detach().clone().requires_grad_()
        (slope,) = torch.autograd.grad(self._plain.of(leaf).sum(), leaf)
        return slope
