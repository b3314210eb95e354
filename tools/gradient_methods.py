"""Gradient error and memory against solver iterations: unrolled PGS, unrolled Newton, the implicit adjoint.

    python tools/gradient_methods.py docs/images/gradient_methods.png

A stack of ten unit masses on a floor, each contact a soft unilateral row, as in the simulator. The loss is a random
form of the accelerations; the gradient is by the applied forces. Memory is what autograd keeps for the backward pass.
Truth is the implicit gradient at a solution converged to rounding. Float64.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch

COUNT, STIFFNESS = 10, 50.0
ITERATIONS = (1, 2, 3, 5, 8, 12, 20, 40, 80, 160, 320)

torch.manual_seed(0)
WEIGHTS = torch.randn(COUNT, dtype=torch.float64)
FORCES = -9.81 * torch.ones(COUNT, dtype=torch.float64) + 0.3 * torch.randn(COUNT, dtype=torch.float64)
JACOBIAN = torch.eye(COUNT, dtype=torch.float64) - torch.diag(torch.ones(COUNT - 1, dtype=torch.float64), -1)
REFERENCE = 0.1 * torch.randn(COUNT, dtype=torch.float64)


def pgs(tau: torch.Tensor, iterations: int) -> torch.Tensor:
    """Projected Gauss–Seidel on the dual: f ≥ 0 row by row."""
    dual = JACOBIAN @ JACOBIAN.T + torch.eye(COUNT, dtype=torch.float64) / STIFFNESS
    free = JACOBIAN @ tau - REFERENCE
    force = [torch.zeros((), dtype=torch.float64) for _ in range(COUNT)]
    for _ in range(iterations):
        for i in range(COUNT):
            others = sum((dual[i, j] * force[j] for j in range(COUNT) if j != i), free[i])
            force[i] = torch.clamp(-others / dual[i, i], min=0.0)
    return tau + JACOBIAN.T @ torch.stack(force)


def newton(tau: torch.Tensor, iterations: int) -> torch.Tensor:
    """Newton on the primal, full steps."""
    a = tau
    for _ in range(iterations):
        y = JACOBIAN @ a - REFERENCE
        active = (y < 0).to(y) * STIFFNESS
        gradient = a - tau + JACOBIAN.T @ (active * y)
        hessian = torch.eye(COUNT, dtype=torch.float64) + JACOBIAN.T @ (active[:, None] * JACOBIAN)
        a = a - torch.linalg.solve(hessian, gradient)
    return a


def implicit(tau: torch.Tensor, iterations: int) -> torch.Tensor:
    """Newton off the tape; on it one step with the solution and its Hessian held fixed, whose derivative is exact."""
    with torch.no_grad():
        a = newton(tau, iterations)
        y = JACOBIAN @ a - REFERENCE
        active = (y < 0).to(y) * STIFFNESS
        hessian = torch.eye(COUNT, dtype=torch.float64) + JACOBIAN.T @ (active[:, None] * JACOBIAN)
    return a - torch.linalg.solve(hessian, a - tau + JACOBIAN.T @ (active * y))


def measure(method: Callable[[torch.Tensor, int], torch.Tensor], iterations: int) -> tuple[torch.Tensor, int]:
    """The gradient, and the bytes kept for it."""
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
        return tensor

    tau = FORCES.clone().requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = WEIGHTS @ method(tau, iterations)
        total = sum(kept.values())
        (gradient,) = torch.autograd.grad(loss, tau)
    return gradient, total


def main() -> None:
    """Measures, prints a table, draws."""
    exact, _ = measure(implicit, 50)
    methods = {"unrolled PGS": pgs, "unrolled Newton": newton, "implicit (ours)": implicit}
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
    for name, method in methods.items():
        found = [measure(method, k) for k in ITERATIONS]
        errors = [max(float((g - exact).norm() / exact.norm()), 1e-16) for g, _ in found]
        memory = [bytes_ / 1024 for _, bytes_ in found]
        left.loglog(ITERATIONS, errors, marker="o", label=name)
        right.loglog(ITERATIONS, memory, marker="o", label=name)
        for k, error, kilobytes in zip(ITERATIONS, errors, memory, strict=True):
            print(f"| {name} | {k} | {error:.1e} | {kilobytes:.1f} |")
    left.set(xlabel="solver iterations", ylabel="relative error of the gradient")
    right.set(xlabel="solver iterations", ylabel="kept for the backward pass, kB")
    left.legend()
    figure.tight_layout()
    if len(sys.argv) > 1:
        figure.savefig(Path(sys.argv[1]), dpi=110)


if __name__ == "__main__":
    main()
