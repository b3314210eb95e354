"""Iterative LQR with limits on the controls: a trajectory improved by the best linear feedback around itself.

Each iteration linearizes the steps (`Simulator.jacobians`, in the tangent space of 2·nv + na numbers), expands the cost
to second order with Gauss–Newton Hessians, and solves for the best change of the controls backwards in time, as a small
quadratic program within the limits at each knot (Tassa, Mansard and Todorov, "Control-limited differential dynamic
programming", 2014). Then several step lengths are simulated with the feedback at once, one world each, and the best is
kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

from warpsim.core.driving import Steps
from warpsim.core.errors import InputError, SimulationError, UnconvergedError
from warpsim.optimizers.box_qp import box_qp
from warpsim.optimizers.control_problem import ControlProblem
from warpsim.optimizers.expansion import Expansion, expand
from warpsim.optimizers.iterate import Iterate
from warpsim.optimizers.problem import Problem
from warpsim.optimizers.threads import one_torch_thread
from warpsim.sim.trajectory import Observed, Trajectory
from warpsim.tape.memory import Memory


class Feedback(NamedTuple):
    """How controls change: uₖ ← uₖ + length·changeₖ + gainₖ·(xₖ ⊖ x̄ₖ).

    Attributes:
        change: (N, nu).
        gain: (N, nu, n), zero where a limit holds a control.
        slope: What the cost changes by per unit of step length.
        bend: Twice what it changes by per square of step length.
    """

    change: np.ndarray
    gain: np.ndarray
    slope: float
    bend: float


@dataclass(frozen=True)
class TrajectoryPlan:
    """What `ilqr` knows besides the controls.

    Attributes:
        controls: (N, nu).
        states: At the knots and at the end: q (N + 1, 1, nq), qd, ….
        gains: (N, nu, n): the best linear feedback on the way off the plan, (q ⊖ q̄, qd − q̄d, activation − …); None
            where the last backward pass failed.
    """

    controls: torch.Tensor
    states: Observed
    gains: torch.Tensor | None


@dataclass(frozen=True)
class ILQR:
    """Options.

    Attributes:
        lengths: Step lengths simulated at once.
        regularization: At the start: added to the diagonal of the value function's Hessian.
        minimum_regularization: Below this it is zero.
        maximum_regularization: Above this the search has stalled.
        closed_loop: Simulate step lengths with the feedback acting on the states they reach, which holds unstable
            motions together; False: with the controls that the feedback gives on the linearized motion, which one
            rollout without a controller in it does, several times as fast. For short horizons and small changes.
    """

    lengths: tuple[float, ...] = (1.0, 0.6, 0.35, 0.2, 0.1, 0.05, 0.01, 0.001)
    regularization: float = 0.0
    minimum_regularization: float = 1e-6
    maximum_regularization: float = 1e10
    closed_loop: bool = True
    name = "ilqr"
    _last: list[tuple[ControlProblem, Expansion]] = field(default_factory=list, init=False, repr=False, compare=False)

    def begin(self, problem: Problem, x: torch.Tensor) -> Steps[Iterate]:
        """The iterate at a start (n,)."""
        made = _checked(problem)
        expansion = yield from self._expand(made, x)
        return self._iterate(made, expansion, 1, self.regularization, 1.0)

    def advance(self, problem: Problem, iterate: Iterate) -> Steps[Iterate]:
        """One backward pass and one line search, repeated with more regularization until the cost falls.

        Controls through steps that did not converge have no derivatives to go on from: others are taken.
        """
        made = _checked(problem)
        expansion = yield from self._expand(made, iterate.x)
        failed: list[UnconvergedError] = []

        def derivable(controls: torch.Tensor) -> Steps[bool]:
            try:
                yield from self._expand(made, controls.flatten())
            except UnconvergedError as error:
                failed.append(error)
                return False
            return True

        memory = iterate.memory
        improved = yield from self.improve(made, expansion, memory["regularization"], memory["factor"], derivable)
        counts: dict[str, Any] = {
            "evaluations": iterate.evaluations + improved.evaluations,
            "dropped": iterate.dropped + len(failed),
        }
        if improved.controls is None:
            why = f"the next controls cost less but have no derivatives: {failed[-1]}" if failed else improved.why
            return replace(iterate, **counts, finished=("stalled", why))
        if improved.controls is expansion.controls:
            return replace(iterate, **counts, finished=("converged", improved.why))
        reached = yield from self._expand(made, improved.controls.flatten())
        return replace(self._iterate(made, reached, 0, improved.regularization, improved.factor), **counts)

    def report(self, problem: Problem, iterate: Iterate) -> Steps[TrajectoryPlan]:
        """The plan and its feedback gains."""
        made = _checked(problem)
        expansion = yield from self._expand(made, iterate.x)
        feedback = backward_pass(made, expansion, iterate.memory["regularization"])
        gains = None if feedback is None else torch.from_numpy(feedback.gain)
        return TrajectoryPlan(expansion.controls, expansion.states, gains)

    def improve(
        self,
        problem: ControlProblem,
        expansion: Expansion,
        regularization: float,
        factor: float,
        accepts: Callable[[torch.Tensor], Steps[bool]] | None = None,
    ) -> Steps[Improved]:
        """Better controls than those the expansion is of; the same ones where none of any note exist.

        Args:
            problem: What is minimized.
            expansion: Around the present controls.
            regularization: Of the backward pass that is tried first.
            factor: By which it last changed.
            accepts: Whether controls (N, nu) that cost less can be used; None: all can.
        """
        evaluations, why = 0, "no step lowers the cost, however much it is regularized"
        while regularization <= self.maximum_regularization:
            feedback = backward_pass(problem, expansion, regularization)
            if feedback is not None:
                if -feedback.slope <= 1e-14 * abs(expansion.loss):
                    why = "the next step would lower the cost by less than rounding"
                    return Improved(expansion.controls, expansion.loss, regularization, factor, evaluations, why)
                evaluations += len(self.lengths)
                for controls, loss in (yield from self._line_search(problem, expansion, feedback)):
                    if accepts is None or (yield from accepts(controls)):
                        factor = min(factor / _FACTOR, 1 / _FACTOR)
                        stiff = regularization > self.minimum_regularization
                        regularization = regularization * factor if stiff else 0.0
                        return Improved(controls, loss, regularization, factor, evaluations)
            factor = max(factor * _FACTOR, _FACTOR)
            regularization = max(regularization * factor, self.minimum_regularization)
        return Improved(None, None, regularization, factor, evaluations, why)

    def _expand(self, problem: ControlProblem, x: torch.Tensor) -> Steps[Expansion]:
        """The expansion around controls; the latest is kept, since the iterate it made is the next to be improved."""
        if self._last and self._last[0][0] is problem and torch.equal(self._last[0][1].controls.flatten(), x):
            return self._last[0][1]
        self._last[:] = [(problem, (yield from expand(problem, x)))]
        return self._last[0][1]

    def _line_search(
        self, problem: ControlProblem, e: Expansion, feedback: Feedback
    ) -> Steps[list[tuple[torch.Tensor, float]]]:
        """Controls and costs of the step lengths that lower it by a fair share of what was promised, the best first."""
        lengths = torch.tensor(self.lengths, dtype=torch.float64)
        try:
            simulated = (_closed_loop if self.closed_loop else _open_loop)(problem, e, feedback, lengths)
            controls, losses = yield from simulated
        except SimulationError:
            return []
        promised = -(lengths * feedback.slope + lengths.square() * feedback.bend / 2)
        gains = e.loss - losses
        fair = (gains > 1e-4 * promised) & torch.isfinite(losses)
        order = torch.where(fair, gains, -torch.inf).argsort(descending=True, stable=True)[: int(fair.sum())]
        return [(controls[:, k], float(losses[k])) for k in order.tolist()]

    def _iterate(
        self, problem: ControlProblem, e: Expansion, evaluations: int, regularization: float, factor: float
    ) -> Iterate:
        memory = {"regularization": regularization, "factor": factor}
        return Iterate(e.controls.flatten(), e.loss, e.gradient_norm(problem), evaluations, memory)


_FACTOR = 1.6
"""The regularization's growth grows, and shrinks, by this (Tassa, Erez and Todorov, 2012, section II-F)."""


class Improved(NamedTuple):
    """What `ILQR.improve` found.

    Attributes:
        controls: (N, nu): better ones; those it was given where they are the best; None: it found none.
        loss: Their cost.
        regularization: For the next call.
        factor: For the next call.
        evaluations: Rollouts made.
        why: What ended the search, where `controls` are not better.
    """

    controls: torch.Tensor | None
    loss: float | None
    regularization: float
    factor: float
    evaluations: int
    why: str = ""


def _checked(problem: Problem) -> ControlProblem:
    if not isinstance(problem, ControlProblem):
        raise InputError(f"ilqr needs a ControlProblem, not a {type(problem).__name__}; use lbfgs or adam")
    return problem


def backward_pass(problem: ControlProblem, e: Expansion, regularization: float) -> Feedback | None:
    """The best change of the controls and its feedback; None where a Hessian is not positive definite."""
    knots, nu = problem.knots, problem.sim.control_size
    low, high = problem.lower.reshape(knots, nu).numpy(), problem.upper.reshape(knots, nu).numpy()
    controls = e.controls.numpy()
    change, gain = np.zeros((knots, nu)), np.zeros((knots, nu, e.a.shape[-1]))
    v, vv = e.last_x, e.last_xx
    slope = bend = 0.0
    guess = np.zeros(nu)
    for k in reversed(range(knots)):
        a, b = e.a[k], e.b[k]
        shifted = vv + regularization * np.eye(len(v))
        q_x, q_u = e.x[k] + a.T @ v, e.u[k] + b.T @ v
        q_xx, q_uu, q_ux = e.xx[k] + a.T @ vv @ a, e.uu[k] + b.T @ vv @ b, e.ux[k] + b.T @ vv @ a
        try:
            solved = box_qp(e.uu[k] + b.T @ shifted @ b, q_u, low[k] - controls[k], high[k] - controls[k], guess)
        except np.linalg.LinAlgError:
            return None
        guess = change[k] = solved.x
        if solved.free.any():
            right = (e.ux[k] + b.T @ shifted @ a)[solved.free]
            gain[k][solved.free] = -np.linalg.solve(solved.factor.T, np.linalg.solve(solved.factor, right))
        slope += float(q_u @ change[k])
        bend += float(change[k] @ q_uu @ change[k])
        v = q_x + gain[k].T @ (q_uu @ change[k] + q_u) + q_ux.T @ change[k]
        vv = q_xx + gain[k].T @ q_uu @ gain[k] + gain[k].T @ q_ux + q_ux.T @ gain[k]
        vv = (vv + vv.T) / 2
    return Feedback(change, gain, slope, bend) if np.isfinite(slope + bend) else None


def _closed_loop(
    problem: ControlProblem, e: Expansion, feedback: Feedback, lengths: torch.Tensor
) -> Steps[tuple[torch.Tensor, torch.Tensor]]:
    """Controls (N, k, nu) and losses (k,) of k step lengths, simulated with the feedback."""
    sim = problem.simulator(len(lengths))
    nu, fields = sim.control_size, {f.name: f for f in sim.compiled.state}
    low, high = (bound.reshape(-1, nu) for bound in (problem.lower, problem.upper))
    change, gain = torch.from_numpy(feedback.change), torch.from_numpy(feedback.gain).transpose(1, 2)
    used: list[torch.Tensor] = []

    def policy(state: Observed) -> torch.Tensor:
        k = len(used)
        off = [
            fields[name].manifold.difference(state[name].flatten(1), e.states[name][k].flatten(1))
            for name in problem.first
        ]
        wanted = e.controls[k] + lengths[:, None] * change[k] + torch.cat(off, -1) @ gain[k]
        used.append(torch.minimum(torch.maximum(wanted, low[k]), high[k]))
        return used[-1]

    with torch.no_grad(), one_torch_thread():
        steps = problem.steps
        trajectory = yield partial(
            sim.rollout_policy,
            policy,
            steps,
            hold=problem.hold,
            memory=Memory(segment=steps),
            outputs=problem.outputs,
            start=problem.first_in(sim.worlds),
        )
        controls = torch.stack(used)
        return controls, _losses(problem, trajectory, controls)


def _open_loop(
    problem: ControlProblem, e: Expansion, feedback: Feedback, lengths: torch.Tensor
) -> Steps[tuple[torch.Tensor, torch.Tensor]]:
    """Controls (N, k, nu) and losses (k,) of k step lengths, with the feedback on the linearized motion."""
    nominal, nu = e.controls.numpy(), e.controls.shape[-1]
    low, high = (bound.reshape(-1, nu).numpy() - nominal for bound in (problem.lower, problem.upper))
    share = lengths.numpy()[:, None]
    off, changes = np.zeros((len(lengths), e.a.shape[-1])), np.empty((len(nominal), len(lengths), nu))
    for k in range(len(nominal)):
        changes[k] = np.clip(share * feedback.change[k] + off @ feedback.gain[k].T, low[k], high[k])
        off = off @ e.a[k].T + changes[k] @ e.b[k].T
    controls = torch.from_numpy(nominal[:, None] + changes)
    with torch.no_grad(), one_torch_thread():
        return controls, _losses(problem, (yield partial(problem.simulate, controls)), controls)


def _losses(problem: ControlProblem, trajectory: Trajectory, controls: torch.Tensor) -> torch.Tensor:
    """Costs (k,) of motions (steps + 1, k, …) under controls (N, k, nu)."""
    running, terminal = problem.knot_residuals(problem.knots_of(trajectory), controls)
    return (running.square().sum((0, 2)) + terminal.square().sum(-1)) / 2
