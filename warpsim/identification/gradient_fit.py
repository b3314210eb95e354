"""Adam and L-BFGS on the exact gradient of a fit's loss."""

from __future__ import annotations

from typing import Any

import torch

from warpsim.identification.gauss_newton import GaussNewton, Setting
from warpsim.optimizers.minimize import minimize
from warpsim.optimizers.problem import FunctionProblem

METHODS = ("adam", "lbfgs")
_RATE = 0.3


def loss_of(solver: GaussNewton, setting: Setting, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    """The loss at x (n,) and z (R, k), differentiable."""
    return solver.losses(x[None], z[None], solver.residuals(x[None], z[None], setting), setting)[0]


def descend(solver: GaussNewton, setting: Setting, method: str) -> None:
    """Moves a solver's x and z downhill.

    Args:
        solver: Where to begin, and what is left where the search ends.
        setting: The stage.
        method: One of `METHODS`.
    """
    n, shape = len(solver.x), solver.z.shape
    lower = torch.cat([torch.tensor(solver.lower), solver.own_lower.repeat(shape[0])])
    upper = torch.cat([torch.tensor(solver.upper), solver.own_upper.repeat(shape[0])])
    start = torch.cat([solver.x, solver.z.flatten()])
    size = max(abs(float(loss_of(solver, setting, solver.x, solver.z).detach())), 1e-300)

    def loss(v: torch.Tensor) -> torch.Tensor:
        return loss_of(solver, setting, v[:n], v[n:].reshape(shape)) / size

    problem = FunctionProblem(start, loss=loss, lower=lower, upper=upper)
    options: dict[str, Any] = {"rate": _RATE} if method == "adam" else {}
    found = minimize(problem, method, iterations=setting.iterations, change=setting.tolerance, patience=3, **options)
    solver.x, solver.z = found.x[:n].detach().clone(), found.x[n:].reshape(shape).detach().clone()
