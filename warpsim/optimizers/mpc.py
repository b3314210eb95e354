"""Receding-horizon control: iLQR solved again at each knot from the measured state, beginning with its last plan.

The plant is whatever gives states and takes controls: another simulator (with other parameters than the model), or a
robot. Controls reach it late by a known number of knots; the controller predicts, with its model and the controls still
on their way, the state at which its next control will act, and plans from there.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from warpsim.core.driving import drive
from warpsim.core.errors import InputError, SimulationError, UnconvergedWarning, whole_number
from warpsim.optimizers.control_problem import ControlProblem
from warpsim.optimizers.expansion import expand
from warpsim.optimizers.ilqr import ILQR
from warpsim.sim.simulator import Simulator

UNCONVERGED = ("keep", "raise")
"""What a controller does where its model cannot be linearized."""


@dataclass(frozen=True)
class Solve:
    """One call of the controller.

    Attributes:
        seconds: Wall time from state to control.
        before: Cost of the plan it began with; infinite where the model could not be simulated with it.
        after: Cost of the plan it made; the same where a step of the model failed to lower it.
        iterations: Of iLQR.
        trouble: Why the plan was kept as it was, or not improved further: a step of the model that did not converge has
            no derivatives. "": there was none.
    """

    seconds: float
    before: float
    after: float
    iterations: int
    trouble: str = ""


class RecedingHorizon:
    """Turns states into controls, one per knot.

    Attributes:
        problem: The model, the cost and the limits.
        plan: (N, nu): the latest plan, from the control to be sent next.
        solves: One entry per control.
    """

    def __init__(
        self,
        problem: ControlProblem,
        *,
        iterations: int = 1,
        delay: int = 0,
        method: ILQR | None = None,
        unconverged: str = "keep",
    ) -> None:
        """Sets the controller up.

        Args:
            problem: What is solved at each knot, over its horizon; its initial state is moved to the predicted one.
            iterations: Of iLQR per control: each linearizes, plans and simulates once.
            delay: Knots after which a control sent begins to act.
            method: iLQR's options.
            unconverged: What to do where a step of the model did not converge, and so has no derivatives to plan with:
                "keep" the last plan, warn, and plan again at the next knot; or "raise" `UnconvergedError`. A motion of
                the model that is not finite counts as one.
        """
        whole_number("iterations", iterations)
        whole_number("delay", delay, 0)
        if unconverged not in UNCONVERGED:
            raise InputError(f"unconverged={unconverged!r}; use one of {', '.join(map(repr, UNCONVERGED))}")
        self.problem = problem
        self.plan = problem.start.reshape(problem.knots, -1).clone()
        self.solves: list[Solve] = []
        self._iterations, self._method, self._unconverged = iterations, method or ILQR(), unconverged
        self._pending = [self.plan[0].clone() for _ in range(delay)]
        self._regularization, self._factor = self._method.regularization, 1.0

    @property
    def delay(self) -> int:
        """Knots after which a control sent begins to act."""
        return len(self._pending)

    def control(self, state: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """The control (nu,) to send now; it acts `delay` knots later.

        Args:
            state: As measured: q (nq,) or (1, nq), qd, and activation if there is any.
        """
        began = time.perf_counter()
        costs, trouble = self._plan_from(self._checked(state))
        chosen = self.plan[0].clone()
        self.plan = torch.cat([self.plan[1:], self.plan[-1:]])
        if self._pending:
            self._pending = [*self._pending[1:], chosen]
        self.solves.append(Solve(time.perf_counter() - began, costs[0], costs[-1], len(costs) - 1, trouble))
        return chosen

    def _checked(self, state: Mapping[str, torch.Tensor]) -> dict[str, Any]:
        """The measured state, by the fields and in the shapes of the problem's first one."""
        first: dict[str, Any] = {}
        for name, rest in self.problem.first.items():
            if name not in state:
                raise InputError(f"the measured state lacks {name!r}; it needs {', '.join(self.problem.first)}")
            value = torch.as_tensor(state[name]).detach()
            if value.numel() != rest.numel() or not value.isfinite().all():
                what = "is not finite" if value.numel() == rest.numel() else f"has shape {tuple(value.shape)}"
                raise InputError(f"{name!r} of the measured state {what}; needed: {tuple(rest.shape)}, finite")
            first[name] = value.reshape(rest.shape)
        return first

    def _plan_from(self, measured: Mapping[str, Any]) -> tuple[list[float], str]:
        """Costs of the plan as it was and after each iteration, and what kept it from being improved."""
        costs: list[float] = []
        begun = False
        try:
            self.problem.begin_at(self._predict(measured))
            begun = True
            self._improve_plan(costs)
        except SimulationError as error:
            if isinstance(error, InputError):  # of the caller's, not of the motion
                raise
            if self._unconverged == "raise":
                error.add_note(f'control {len(self.solves)}; unconverged="keep" goes on with the last plan')
                raise
            self._regularization, self._factor = self._method.regularization, 1.0
            self._tell(error)
            return costs or [self._cost() if begun else float("inf")], str(error)
        return costs, ""

    def _tell(self, error: SimulationError) -> None:
        """Warns where trouble begins, and where nothing is left of the last plan."""
        kept = next((k for k, solve in enumerate(reversed(self.solves)) if not solve.trouble), len(self.solves))
        if kept == 0:
            text = f"control {len(self.solves)} is taken from the last plan: {error}"
        elif kept == len(self.plan) - any(not solve.trouble for solve in self.solves):  # a good solve sent its first
            text = (
                f"control {len(self.solves)}: nothing is left of the last plan; its last control is repeated: {error}"
            )
        else:
            return
        warnings.warn(text, UnconvergedWarning, stacklevel=4)

    def _cost(self) -> float:
        """Of the plan as it is, without derivatives."""
        try:
            with torch.no_grad():
                return float(self.problem.loss(self.plan.flatten()))
        except SimulationError:
            return float("inf")

    def _improve_plan(self, costs: list[float]) -> None:
        """Improves the plan; appends its cost as it was, and after each iteration."""
        while len(costs) <= self._iterations:
            expansion = drive(expand(self.problem, self.plan.flatten()))
            if not costs:
                costs.append(expansion.loss)
            improving = self._method.improve(self.problem, expansion, self._regularization, self._factor)
            improved = drive(improving)
            if improved.controls is None or improved.loss is None:  # keep the plan, and forget how stiff this one was
                self._regularization, self._factor = self._method.regularization, 1.0
                costs.append(expansion.loss)
                return
            self._regularization, self._factor = improved.regularization, improved.factor
            self.plan = improved.controls
            costs.append(improved.loss)
            if improved.controls is expansion.controls:
                return

    def _predict(self, first: Mapping[str, Any]) -> Mapping[str, Any]:
        """The state at which the next control will act."""
        if not self._pending:
            return first
        sim, hold = self.problem.simulator(1), self.problem.hold
        with torch.no_grad():
            ahead = sim.rollout(controls=torch.stack(self._pending).repeat_interleave(hold, 0), outputs=(), start=first)
        return {name: ahead[name][-1] for name in first}


@dataclass(frozen=True)
class ClosedLoop:
    """A plant under control.

    Attributes:
        states: By name, (knots + 1, …).
        controls: (knots, nu): as they acted.
        solves: One entry per knot.
    """

    states: dict[str, torch.Tensor]
    controls: torch.Tensor
    solves: list[Solve]

    def latency(self) -> str:
        """Wall times per solve, in words."""
        times = torch.tensor([solve.seconds for solve in self.solves], dtype=torch.float64) * 1e3
        middle, late, worst = times.median(), times.quantile(0.95), times.max()
        return f"{len(times)} solves: median {middle:.1f} ms, 95 % within {late:.1f} ms, longest {worst:.1f} ms"

    def trouble(self) -> str:
        """How many knots went on with the last plan, and why the first of them did; "": none."""
        found = [(knot, solve.trouble) for knot, solve in enumerate(self.solves) if solve.trouble]
        if not found:
            return ""
        return f"{len(found)} of {len(self.solves)} knots kept the last plan, the first at {found[0][0]}: {found[0][1]}"


def run_closed_loop(plant: Simulator, controller: RecedingHorizon, knots: int) -> ClosedLoop:
    """Runs a simulated plant from its current state under a controller, its controls late by the controller's delay.

    Args:
        plant: One world, with the controls of the controller's model; its parameters may be others, and so may its time
            step, of which a control is to last a whole number.
        controller: What decides.
        knots: How many controls.
    """
    whole_number("knots", knots)
    if plant.worlds != 1 or plant.control_names != controller.problem.sim.control_names:
        raise InputError("the plant must be one world with the same controls as the controller's model")
    period = controller.problem.hold * controller.problem.sim.timestep
    steps = round(period / plant.timestep)
    if steps < 1 or abs(steps * plant.timestep - period) > 1e-6 * period:
        raise InputError(
            f"a control lasts {period:g} s, not a whole number of the plant's steps of {plant.timestep:g} s"
        )
    on_their_way = [controller.plan[0].clone() for _ in range(controller.delay)]
    names = tuple(controller.problem.first)
    seen, used = [{name: plant.state[name][0] for name in names}], []
    with torch.no_grad():
        for _ in range(knots):
            on_their_way.append(controller.control(seen[-1]))
            used.append(on_their_way.pop(0))
            for _ in range(steps):
                plant.step(used[-1], outputs=())
            seen.append({name: plant.state[name][0].clone() for name in names})
    states = {name: torch.stack([row[name] for row in seen]) for name in names}
    return ClosedLoop(states, torch.stack(used), controller.solves[-knots:])
