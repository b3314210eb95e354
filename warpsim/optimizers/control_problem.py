"""Choosing the controls of a trajectory: costs as residuals of states and controls, over a simulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from warpsim.core.driving import Steps, drive
from warpsim.core.errors import InputError, whole_number
from warpsim.optimizers.candidates import losses_side_by_side
from warpsim.rigid.model.tangent import difference
from warpsim.sim.simulator import Simulator
from warpsim.sim.trajectory import Observed, Trajectory

Running = Callable[[Observed, torch.Tensor], torch.Tensor]
"""States (knots, worlds, …) by name and controls (knots, worlds, nu) → residuals (knots, worlds, m)."""

Terminal = Callable[[Observed], torch.Tensor]
"""The last states (worlds, …) by name → residuals (worlds, m)."""


class ControlProblem:
    """Minimize ½·Σ‖running(xₖ, uₖ)‖² + ½·‖terminal(x_N)‖² over controls u₀ … u_N₋₁ within limits.

    It is a `Problem` whose x are the controls, knot by knot: any optimizer takes it, `ilqr` best. Knot k is the state
    at which control uₖ begins to act; it acts for `hold` steps.

    Attributes:
        sim: The model: one world, whose parameters in force are used.
        knots: N.
        hold: Steps per knot.
        start: (N·nu,): the controls a search begins with; may be set anew.
        lower: (N·nu,).
        upper: (N·nu,).
        outputs: What cost functions see besides the state.
    """

    def __init__(
        self,
        sim: Simulator,
        knots: int,
        *,
        running: Running,
        terminal: Terminal | None = None,
        lower: Any = None,
        upper: Any = None,
        start: Any = None,
        hold: int = 1,
        q: Any = None,
        qd: Any = None,
        activation: Any = None,
        outputs: Sequence[str] = (),
    ) -> None:
        """Sets the problem up.

        Args:
            sim: A simulator of one world.
            knots: N.
            running: Residuals of all knots at once; the first axis is the knot, so that costs may depend on time.
            terminal: Residuals of the state after the last step; None: no cost.
            lower: Least controls, (nu,) or (N, nu); None: none.
            upper: Greatest controls, likewise.
            start: First guess, (nu,) or (N, nu); None: zero, or the nearest within the limits.
            hold: Steps for which each control is held.
            q: Initial coordinates (nq,); None: those of the simulator's last reset.
            qd: Initial velocities (nv,), likewise.
            activation: Initial activations (na,), likewise.
            outputs: Names of outputs that the cost functions read, e.g. "body_position".
        """
        if sim.worlds != 1:
            raise InputError(f"the model has {sim.worlds} worlds; give a Simulator with worlds=1")
        whole_number("knots", knots)
        whole_number("hold", hold)
        self.sim, self.knots, self.hold, self.outputs = sim, knots, hold, tuple(outputs)
        self._running, self._terminal = running, terminal
        self.lower = self._controls("lower", lower, -torch.inf)
        self.upper = self._controls("upper", upper, torch.inf)
        guess = self._controls("start", start, 0.0)
        if not bool((self.lower <= self.upper).all()) or not bool(guess.isfinite().all()):
            raise InputError(f"lower={lower}, upper={upper}, start={start}: limits in their order and finite controls")
        self.start = torch.minimum(torch.maximum(guess, self.lower), self.upper)
        self._sims: dict[int, Simulator] = {}
        self._first: dict[str, torch.Tensor] = {}
        given = {"q": q, "qd": qd, "activation": activation}
        self.begin_at({name: value for name, value in given.items() if value is not None})

    @property
    def names(self) -> Sequence[str]:
        """(N·nu,)."""
        return [f"control {i} of knot {k}" for k in range(self.knots) for i in range(self.sim.control_size)]

    @property
    def steps(self) -> int:
        """Steps of the simulator from the first state to the last."""
        return self.knots * self.hold

    @property
    def first(self) -> Mapping[str, torch.Tensor]:
        """The initial state by field, (1, …) each: "q", "qd", and what else carries gradients."""
        return self._first

    def first_in(self, worlds: int) -> dict[str, Any]:
        """The initial state in several worlds, as the `start` of `rollout` and `reset`."""
        return {name: value.expand(worlds, *value.shape[1:]) for name, value in self._first.items()}

    def begin_at(self, state: Mapping[str, Any]) -> None:
        """Moves the initial state to given fields, (…) or (1, …); others stay at the simulator's last reset."""
        if not self._first or not set(self._first) <= set(state):
            with torch.no_grad():
                rest = self.sim.rollout(steps=1, start=state, outputs=())
            self._first = {name: value[0].clone() for name, value in rest.items()}
        for name, value in state.items():
            given = torch.as_tensor(value, dtype=torch.float64).detach()
            self._first[name] = given.reshape(self._first[name].shape).clone()

    def simulator(self, worlds: int) -> Simulator:
        """The model in that many worlds, made when first asked for."""
        if worlds not in self._sims:
            sim = self.sim
            self._sims[worlds] = Simulator(
                sim.scene,
                worlds=worlds,
                device=str(sim.model.device),
                controls=sim.control_names,
                outputs=self.outputs,
                unconverged=sim.unconverged,
            )
        made = self._sims[worlds]
        made.use_parameters_of(self.sim)
        return made

    def simulate(self, controls: torch.Tensor) -> Trajectory:
        """States (steps + 1, k, …) under controls (N, k, nu), differentiable; every `hold`-th frame is a knot."""
        sim = self.simulator(controls.shape[1])
        return sim.rollout(
            controls=controls.repeat_interleave(self.hold, 0), outputs=self.outputs, start=self.first_in(sim.worlds)
        )

    def knot_residuals(self, states: Observed, controls: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Residuals of the knots (N, k, m) and of the last state (k, m′).

        Args:
            states: At the knots and at the end, (N + 1, k, …).
            controls: (N, k, nu).
        """
        model = self.sim.model
        running = self._running(Observed(model, {name: value[:-1] for name, value in states.items()}), controls)
        if running.shape[:2] != controls.shape[:2]:
            raise InputError(
                f"running residuals have shape {tuple(running.shape)}; needed: {tuple(controls.shape[:2])} = (knots, "
                "worlds) first, then the residuals"
            )
        if self._terminal is None:
            return running, controls.new_zeros(controls.shape[1], 0)
        terminal = self._terminal(Observed(model, {name: value[-1] for name, value in states.items()}))
        if terminal.shape[:1] != controls.shape[1:2]:
            raise InputError(f"terminal residuals have shape {tuple(terminal.shape)}; the worlds must come first")
        return running, terminal

    def knots_of(self, trajectory: Mapping[str, torch.Tensor]) -> Observed:
        """The frames of a trajectory at the knots and at the end."""
        return Observed(self.sim.model, {name: value[:: self.hold] for name, value in trajectory.items()})

    def batched_residuals(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`."""
        return drive(self._residuals_of(x))

    def _residuals_of(self, x: torch.Tensor) -> Steps[torch.Tensor]:
        controls = x.unflatten(-1, (self.knots, -1)).transpose(0, 1)
        trajectory = yield partial(self.simulate, controls)
        running, terminal = self.knot_residuals(self.knots_of(trajectory), controls)
        return torch.cat([running.transpose(0, 1).flatten(1), terminal], -1)

    def residuals(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`."""
        return drive(self._residuals_of(x[None]))[0]

    def losses(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`."""
        return drive(losses_side_by_side(self._losses, x))

    def loss(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`."""
        return drive(self._losses(x[None]))[0]

    def _losses(self, x: torch.Tensor) -> Steps[torch.Tensor]:
        return (yield from self._residuals_of(x)).square().sum(-1) / 2

    def _controls(self, what: str, value: Any, default: float) -> torch.Tensor:
        """(N·nu,) from what a caller gave."""
        full = (self.knots, self.sim.control_size)
        given = torch.as_tensor(default if value is None else value, dtype=torch.float64).detach()
        if given.shape not in ((), full[1:], full):
            raise InputError(f"{what} has shape {tuple(given.shape)}; needed: {full[1:]} or {full}")
        return given.expand(full).flatten().clone()


def quadratic_cost(
    sim: Simulator,
    *,
    state: torch.Tensor,
    control: torch.Tensor,
    terminal: torch.Tensor | None = None,
    q: Any,
    qd: Any = None,
    u: Any = None,
) -> tuple[Running, Terminal]:
    """Running and terminal residuals of ½·(δᵀQδ + (u − u*)ᵀR(u − u*)) and ½·δᵀQ_fδ, δ the way from a goal.

    Args:
        sim: Whose states are compared.
        state: Q (2·nv, 2·nv), positive semidefinite, or its diagonal: for δ = (q ⊖ q*, qd − qd*) in the tangent space.
        control: R (nu, nu) or its diagonal.
        terminal: Q_f, like `state`; None: Q.
        q: The goal q* (nq,), or (knots + 1, nq) to track.
        qd: The goal qd*, likewise; None: at rest.
        u: Controls u* that cost nothing, (nu,) or (knots, nu); None: zero.
    """
    root, root_u = _root(state), _root(control)
    root_end = root if terminal is None else _root(terminal)
    goal_q = torch.as_tensor(q, dtype=torch.float64).reshape(-1, 1, sim.nq)
    goal_qd = torch.as_tensor(0.0 if qd is None else qd, dtype=torch.float64).expand(sim.nv).reshape(-1, 1, sim.nv)
    goal_u = torch.as_tensor(0.0 if u is None else u, dtype=torch.float64)
    layout = sim.model.layout

    def off(states: Observed, frames: slice) -> torch.Tensor:
        moved = difference(layout, states.q, goal_q[frames] if len(goal_q) > 1 else goal_q)
        return torch.cat([moved, states.qd - (goal_qd[frames] if len(goal_qd) > 1 else goal_qd)], -1)

    def running(states: Observed, controls: torch.Tensor) -> torch.Tensor:
        wanted = goal_u if goal_u.ndim < 2 else goal_u[:, None]
        return torch.cat([off(states, slice(None, -1)) @ root.T, (controls - wanted) @ root_u.T], -1)

    def at_end(states: Observed) -> torch.Tensor:
        last = Observed(sim.model, {name: value[None] for name, value in states.items()})
        return off(last, slice(-1, None))[0] @ root_end.T

    return running, at_end


def _root(weights: torch.Tensor) -> torch.Tensor:
    """F with FᵀF = weights (n, n) or its diagonal (n,)."""
    weights = torch.as_tensor(weights, dtype=torch.float64)
    if weights.ndim == 1:
        weights = torch.diag(weights)
    values, vectors = torch.linalg.eigh(weights)
    if values.min() < -1e-10 * values.abs().max():
        raise InputError(
            f"a weight matrix has the negative eigenvalue {values.min():g}; it must be positive semidefinite"
        )
    return values.clamp_min(0).sqrt()[:, None] * vectors.T
