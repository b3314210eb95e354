"""A trajectory to first order and its cost to second, knot by knot: what iLQR's backward pass reads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from warpsim.core.driving import Steps
from warpsim.optimizers.control_problem import ControlProblem
from warpsim.optimizers.evaluation import free_gradient, norm
from warpsim.optimizers.threads import one_torch_thread
from warpsim.sim.trajectory import Observed, Trajectory


@dataclass(frozen=True)
class Expansion:
    """xₖ₊₁ ≈ aₖ·xₖ + bₖ·uₖ and the cost's derivatives; x in the tangent space of n = 2·nv + na numbers.

    Attributes:
        controls: (N, nu).
        states: At the knots and at the end, (N + 1, 1, …).
        loss: The cost.
        a: (N, n, n).
        b: (N, n, nu).
        x: (N, n): derivative of knot k's cost by the state, like `u`, `xx`, `uu`, `ux`; Hessians are Gauss–Newton's.
        u: (N, nu).
        xx: (N, n, n).
        uu: (N, nu, nu).
        ux: (N, nu, n).
        last_x: (n,): of the terminal cost.
        last_xx: (n, n).
    """

    controls: torch.Tensor
    states: Observed
    loss: float
    a: np.ndarray
    b: np.ndarray
    x: np.ndarray
    u: np.ndarray
    xx: np.ndarray
    uu: np.ndarray
    ux: np.ndarray
    last_x: np.ndarray
    last_xx: np.ndarray

    def gradient_norm(self, problem: ControlProblem) -> float:
        """Largest component of the cost's derivative by the controls that no limit blocks."""
        gradient = np.zeros_like(self.u)
        adjoint = self.last_x
        for k in reversed(range(len(self.u))):
            gradient[k] = self.u[k] + self.b[k].T @ adjoint
            adjoint = self.x[k] + self.a[k].T @ adjoint
        return norm(free_gradient(problem, self.controls.flatten(), torch.from_numpy(gradient).flatten()))


def expand(problem: ControlProblem, x: torch.Tensor) -> Steps[Expansion]:
    """Simulates controls x (N·nu,) and expands around the trajectory."""
    controls = x.detach().reshape(problem.knots, 1, -1)
    with one_torch_thread():
        with torch.no_grad():
            trajectory = yield partial(problem.simulate, controls)
        a, b = yield partial(_transitions, problem, trajectory, controls)
        states = problem.knots_of(trajectory)
        derivatives = yield partial(_residual_jacobians, problem, states, controls)
    r_x, r_u, end_x, running, terminal = derivatives
    rx_t, ru_t = r_x.transpose(0, 2, 1), r_u.transpose(0, 2, 1)
    return Expansion(
        controls=controls[:, 0],
        states=states,
        loss=float((running**2).sum() + (terminal**2).sum()) / 2,
        a=a,
        b=b,
        x=(rx_t @ running[..., None])[..., 0],
        u=(ru_t @ running[..., None])[..., 0],
        xx=rx_t @ r_x,
        uu=ru_t @ r_u,
        ux=ru_t @ r_x,
        last_x=end_x.T @ terminal,
        last_xx=end_x.T @ end_x,
    )


def _transitions(
    problem: ControlProblem, trajectory: Trajectory, controls: torch.Tensor
) -> tuple[np.ndarray, np.ndarray]:
    """A and B from knot to knot: those of the steps in between, multiplied up."""
    held = controls.repeat_interleave(problem.hold, 0)
    steps = problem.simulator(1).jacobians(trajectory, held)
    a_step, b_step = (m[:, 0].unflatten(0, (problem.knots, problem.hold)).numpy() for m in steps)
    a, b = a_step[:, 0], b_step[:, 0]
    for i in range(1, problem.hold):
        a, b = a_step[:, i] @ a, a_step[:, i] @ b + b_step[:, i]
    return a, b


def _residual_jacobians(problem: ControlProblem, states: Observed, controls: torch.Tensor) -> tuple[np.ndarray, ...]:
    """∂running/∂x (N, m, n), ∂running/∂u (N, m, nu), ∂terminal/∂x (m′, n), and the residuals themselves.

    The states are copied into as many worlds as there are residuals, and residual i is differentiated in world i; so
    one backward pass gives all of them.
    """
    at = {name: states[name].detach() for name in (*problem.first, *problem.outputs)}
    with torch.no_grad():
        running, terminal = problem.knot_residuals(Observed(problem.sim.model, at), controls)
    m, end = running.shape[-1], terminal.shape[-1]
    copies = max(m, end)
    leaves = {n: at[n].expand(-1, copies, *at[n].shape[2:]).clone().requires_grad_() for n in problem.first}
    u = controls.expand(-1, copies, -1).clone().requires_grad_()
    with torch.enable_grad():
        seen = _observed(problem, leaves) if problem.outputs else leaves
        of_knots, of_end = problem.knot_residuals(Observed(problem.sim.model, seen), u)
        by_knots = _pull(of_knots[:, :m].diagonal(dim1=1, dim2=2).sum(), (*leaves.values(), u))
        by_end = _pull(of_end[:end].diagonal().sum(), tuple(leaves.values()))
    r_x = _tangent(problem, at, by_knots[:-1])[:-1, :m]
    end_x = _tangent(problem, at, by_end)[-1, :end]
    return tuple(t.numpy() for t in (r_x, by_knots[-1][:, :m], end_x, running[:, 0], terminal[0]))


def _observed(problem: ControlProblem, leaves: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """States (frames, copies, …) with their outputs: each becomes a world, whose outputs torch can differentiate."""
    shape = next(iter(leaves.values())).shape[:2]
    given: dict[str, Any] = {name: leaf.flatten(0, 1) for name, leaf in leaves.items()}
    outputs = problem.simulator(shape.numel()).reset(start=given)
    return {**leaves, **{name: outputs[name].unflatten(0, shape) for name in problem.outputs}}


def _pull(value: torch.Tensor, leaves: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """Derivatives of a number; zero by what it does not depend on."""
    if not value.requires_grad:
        return tuple(torch.zeros_like(leaf) for leaf in leaves)
    return torch.autograd.grad(value, leaves, retain_graph=True, allow_unused=True, materialize_grads=True)


def _tangent(problem: ControlProblem, at: dict[str, torch.Tensor], by_state: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """Covectors on state fields as covectors on the tangent space at states `at`, (N + 1, copies, n)."""
    fields = {f.name: f for f in problem.sim.compiled.state}
    parts = [
        fields[name].manifold.pull(at[name][:, 0].flatten(1), by.flatten(2))
        for name, by in zip(problem.first, by_state, strict=True)
    ]
    return torch.cat(parts, -1)
