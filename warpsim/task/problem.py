"""`TaskProblem`: a task on a simulator as the `Problem` that optimizers see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from warpsim.core.driving import Steps, drive
from warpsim.core.errors import InputError, TaskError, WarpsimError
from warpsim.objective import Condition, Cost, Episode, Term, Verdict
from warpsim.objective.success import control_range
from warpsim.optimizers.candidates import losses_side_by_side
from warpsim.optimizers.plain_problem import PlainVariables
from warpsim.optimizers.variables import Variable, Variables
from warpsim.sim.attributes.attribute import Attribute
from warpsim.sim.simulator import Simulator
from warpsim.sim.trajectory import CONTACT_OUTPUTS, Trajectory
from warpsim.tape.memory import Memory, MemoryLike
from warpsim.task.bound_controls import BoundControl, FeedbackPolicy, bind, resting
from warpsim.task.controls import Feedback
from warpsim.task.task import Task, VariableSpec, step_count
from warpsim.task.transmission import Transmission

ALWAYS = ("body_position", "body_rotation", "body_velocity")
"""Outputs of every rollout that is shown: what an animation is made of, besides contacts where there can be any."""
_ROUNDING = 1e-6
"""Share of a bound's size within which a value is on it: attributes are often of single precision."""
_WITHIN = 1e-3
"""Share of the room between bounds, or of one bound's size, at which a search begins whose start is on a bound."""


@dataclass(frozen=True)
class Choice:
    """What the optimizer has chosen for each of W worlds, in the units of its places in the file.

    Attributes:
        attributes: Values in USD units by handle, (W, …) or for all worlds alike.
        controls: (W, coefficients, n) values of each control, SI.
        duration: (W,) s.
    """

    attributes: Mapping[Attribute, torch.Tensor]
    controls: tuple[torch.Tensor, ...]
    duration: torch.Tensor


class TaskProblem:
    """A task as a problem: x holds the variables, then the values of controls, then the duration if that varies.

    Attributes:
        sim: One world of the scene.
        task: What is wanted.
        steps: Number of time steps.
        times: (steps + 1,) s, nominal.
        variables: The attributes that vary; None: there are none.
        controls: Bound to the scene.
        start: (n,) float64: the authored values.
        lower: (n,) bounds of x.
        upper: (n,) likewise.
        names: (n,) what each number is.
        watch: Is told x (W, n) and episode of each loss; None: nobody.
    """

    def __init__(
        self,
        sim: Simulator,
        task: Task,
        *,
        memory: MemoryLike = None,
        transmission: Transmission | None = None,
    ) -> None:
        """Binds a task to a simulator.

        Args:
            sim: Of the file the task was read from, with the channels of the task's controls among its controls.
            task: What is wanted.
            memory: Of differentiated rollouts; None: the task's.
            transmission: What becomes of controls on their way, for rollouts that are not differentiated; None: they
                arrive as they were given.

        Raises:
            TaskError: Something the task names does not exist or cannot vary; the message begins with its prim.
        """
        self.sim, self.task, self._transmission = sim, task, transmission
        self._memory = task.memory if memory is None else memory
        self.steps = task.steps or step_count(task, sim.timestep)
        self.times = sim.timestep * np.arange(self.steps + 1)
        self._nominal = float(self.times[-1])
        for part in (*task.terms, *task.conditions):
            _check(part, sim, self.times, task)
        self.variables = _variables(sim, task)
        self.controls = tuple(bind(control, sim, self.times[:-1], self._nominal) for control in task.controls)
        self._feedback = [FeedbackPolicy(c, sim) for c in self.controls if isinstance(c.control, Feedback)]
        self._layout()
        self._simulators = {sim.worlds: sim}
        self.watch: Callable[[torch.Tensor, Episode], None] | None = None
        self._bound_adjoints(sim)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles: what it was made from."""
        return partial(TaskProblem, memory=self._memory, transmission=self._transmission), (self.sim, self.task)

    def _layout(self) -> None:
        """Start, bounds and names of x."""
        none = torch.zeros(0, dtype=torch.float64)
        parts: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor, list[str]]] = []
        if self.variables is not None:
            v = self.variables
            parts.append((v.start(), v.lower, v.upper, v.names))
        for c in self.controls:
            scaled = [torch.as_tensor((side / c.scale).ravel()) for side in (c.start, c.lower, c.upper)]
            parts.append((scaled[0], scaled[1], scaled[2], c.names))
        if self.task.duration_range is not None:
            low, high = (torch.tensor([side / self._nominal], dtype=torch.float64) for side in self.task.duration_range)
            parts.append((torch.ones(1), low, high, [f"{self.task.name}.duration"]))
        self._sizes = [len(part[0]) for part in parts]
        sides = ([part[0] for part in parts], [part[1] for part in parts], [part[2] for part in parts])
        start, self.lower, self.upper = (torch.cat([none, *(array.double() for array in side)]) for side in sides)
        self.start = torch.minimum(torch.maximum(start, self.lower), self.upper)
        self.names: Sequence[str] = tuple(name for part in parts for name in part[3])

    @property
    def plain(self) -> PlainVariables:
        """As in `HasPlainVariables`: of the attributes; the rest of x is plain."""
        if self.variables is None:
            return PlainVariables(self.lower, self.upper, lambda x: x, lambda plain: plain)
        first, size = self.variables.plain, self.variables.size
        return PlainVariables(
            torch.cat([first.lower, self.lower[size:]]),
            torch.cat([first.upper, self.upper[size:]]),
            lambda x: torch.cat([first.of(x[..., :size]), x[..., size:]], -1),
            lambda plain: torch.cat([first.x(plain[..., :size]), plain[..., size:]], -1),
        )

    def steepest(self, gradient: torch.Tensor, held: torch.Tensor) -> torch.Tensor:
        """As in `HasMetric`."""
        parts, first = list(torch.split(gradient, self._sizes)), int(self.variables is not None)
        stay = torch.split(held, self._sizes)
        for k, control in enumerate(self.controls, first):
            parts[k] = control.steepest(parts[k], stay[k])
        return torch.cat(parts)

    def loss(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`."""
        return drive(self._losses(x[None]))[0]

    def losses(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`: each candidate in a world of its own."""
        return drive(losses_side_by_side(self._losses, x))

    def _losses(self, x: torch.Tensor) -> Steps[torch.Tensor]:
        episode = yield from self.simulating(self.choice(x))
        if self.watch is not None:
            self.watch(x, episode)
        return self.total(episode)

    def residuals(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`."""
        return drive(self._residuals(x[None]))[0]

    def batched_residuals(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`."""
        return drive(self._residuals(x))

    def _residuals(self, x: torch.Tensor) -> Steps[torch.Tensor]:
        for term in self._weighted():
            if isinstance(term, Cost):
                raise InputError(f"{term.title} is no sum of squares, which this method needs; choose another method")
        episode = yield from self.simulating(self.choice(x))
        return torch.cat([term.residuals(episode) for term in self._weighted()], -1)

    def total(self, episode: Episode) -> torch.Tensor:
        """(W,) the objective of an episode."""
        return torch.stack([term.loss(episode) for term in self._weighted()]).sum(0)

    def term_losses(self, episode: Episode, world: int = 0) -> dict[str, float]:
        """Each term's share of the objective."""
        return {term.title: float(term.loss(episode)[world].detach()) for term in self._weighted()}

    def judge(self, episode: Episode, world: int = 0) -> list[Verdict]:
        """Verdicts on all conditions of success."""
        return [verdict for condition in self.task.conditions for verdict in condition.judge(episode, world)]

    def choice(self, x: torch.Tensor) -> Choice:
        """What x (W, n) stands for, differentiable."""
        if x.ndim != 2 or x.shape[1] != len(self.start):
            raise InputError(f"x has shape {tuple(x.shape)}; needed: (worlds, {len(self.start)})")
        parts = list(torch.split(x, self._sizes, dim=-1))
        attributes = self.variables.values(parts.pop(0)) if self.variables is not None else {}
        controls = tuple(
            part.reshape(-1, *c.start.shape) * torch.as_tensor(c.scale)
            for part, c in zip(parts, self.controls, strict=False)
        )
        duration = parts[-1][:, 0] * self._nominal if self.task.duration_range else self._fixed_duration(len(x))
        return Choice(attributes, controls, duration)

    def authored(self) -> Choice:
        """What the file says: no attribute is overridden, so that the loss is that of the file to the last digit."""
        controls = tuple(torch.as_tensor(c.start)[None] for c in self.controls)
        return Choice({}, controls, self._fixed_duration(1))

    def _fixed_duration(self, worlds: int) -> torch.Tensor:
        duration = self.task.duration if self.task.duration_range else self._nominal
        return torch.full((worlds,), duration, dtype=torch.float64)

    def episode(self, choice: Choice, *, shown: bool = False, outputs: Sequence[str] = ()) -> Episode:
        """Simulates a choice.

        Args:
            choice: For W worlds.
            shown: Ask also for the outputs an animation is made of.
            outputs: Ask also for these.
        """
        return drive(self.simulating(choice, shown=shown, outputs=outputs))

    def simulating(self, choice: Choice, *, shown: bool = False, outputs: Sequence[str] = ()) -> Steps[Episode]:
        """`episode` as part of a larger search, which asks for its rollout."""
        worlds = len(choice.duration)
        sim = self._simulator(worlds)
        parts: list[Term | Condition] = [*self._weighted(), *self.task.conditions]
        always = (*ALWAYS, *(CONTACT_OUTPUTS if sim.model.max_contacts else ())) if shown else ()
        wanted = tuple(dict.fromkeys([*(name for part in parts for name in part.outputs), *always, *outputs]))
        parameters: dict[Any, Any] = dict(choice.attributes)
        if self.task.duration_range:
            parameters["world.timestep"] = self.timestep(choice)
        if self._feedback:
            trajectory, signals = yield from self._closed_loop(sim, choice, parameters, wanted)
        else:
            signals = [
                self._sent(sim, c, c.signal(values)) for c, values in zip(self.controls, choice.controls, strict=True)
            ]
            trajectory = yield partial(
                sim.rollout,
                steps=self.steps,
                controls=self._inputs(sim, signals) or None,
                parameters=parameters,
                outputs=wanted,
                memory=self._memory,
            )
        inputs = self._inputs(sim, signals)
        named = {c.control.name: signal for c, signal in zip(self.controls, signals, strict=True)}
        return Episode(sim, trajectory, named, inputs, self.times, choice.duration, parameters)

    def timestep(self, choice: Choice) -> torch.Tensor:
        """(W,) s per step, where the duration varies."""
        return (choice.duration / self.steps).to(self.sim.torch_dtype)

    def _closed_loop(
        self, sim: Simulator, choice: Choice, parameters: dict[Any, Any], outputs: Sequence[str]
    ) -> Steps[tuple[Trajectory, list[torch.Tensor]]]:
        """The trajectory under feedback, and the signal (steps, W, n) of the control."""
        (bound,), (policy,), (gains,) = self.controls, self._feedback, choice.controls
        given: list[torch.Tensor] = []

        def act(state: Any) -> torch.Tensor:
            signal = policy.signal(gains, state)
            if self._transmission is not None:
                given.append(signal)
                signal = self._sent(sim, bound, torch.stack(given))[-1]
            return self._spread(sim, bound, signal)

        # a transmission remembers what was sent, so the controller must be asked once, not again on the way back
        segment = None if self._transmission is None else self.steps
        looped = partial(sim.rollout_policy, act, self.steps, memory=Memory(segment=segment))
        trajectory = yield partial(looped, parameters=parameters, outputs=outputs)
        signal = policy.signal(gains, trajectory)[:-1]
        return trajectory, [self._sent(sim, bound, signal)]

    def _sent(self, sim: Simulator, bound: BoundControl, signal: torch.Tensor) -> torch.Tensor:
        """(steps, W, n) as it arrives."""
        if self._transmission is None:
            return signal
        places = list(bound.places)
        limits = np.stack([side[places] for side in control_range(sim, bound.channel)])
        return self._transmission.sent(signal, limits, resting(sim, bound.channel)[places])

    def _inputs(self, sim: Simulator, signals: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
        """By channel, (steps, W, size): what nobody drives stays as it rests."""
        inputs: dict[str, torch.Tensor] = {}
        for bound, signal in zip(self.controls, signals, strict=True):
            before = inputs.get(bound.channel)
            if before is None:
                rest = resting(sim, bound.channel)
                rest[[place for other in self.controls if other.channel == bound.channel for place in other.places]] = 0
                before = torch.as_tensor(rest, dtype=signal.dtype).expand(*signal.shape[:2], -1)
            spread = torch.zeros_like(before).index_copy(-1, torch.tensor(bound.places), signal)
            inputs[bound.channel] = before + spread
        return inputs

    @staticmethod
    def _spread(sim: Simulator, bound: BoundControl, signal: torch.Tensor) -> torch.Tensor:
        """(W, control_size) from the signal (W, n) of one control."""
        rest = torch.as_tensor(resting(sim, bound.channel), dtype=signal.dtype).expand(len(signal), -1)
        first = sim.control_slice(bound.channel).start
        whole = torch.zeros(len(signal), sim.control_size, dtype=signal.dtype)
        whole[:, sim.control_slice(bound.channel)] = rest
        return whole.index_copy(-1, torch.tensor([first + place for place in bound.places]), signal)

    def _weighted(self) -> list[Term]:
        return [term for term in self.task.terms if term.weight]

    def _simulator(self, worlds: int) -> Simulator:
        if worlds not in self._simulators:
            self._simulators[worlds] = self.sim.with_worlds(worlds)
            self._bound_adjoints(self._simulators[worlds])
        return self._simulators[worlds]

    @property
    def in_closed_loop(self) -> bool:
        """Whether a controller computes its signal from the state."""
        return bool(self._feedback)

    @property
    def bias(self) -> str | None:
        """What makes gradients inexact on purpose, in words; None: they are exact."""
        bound = self.task.adjoint_bound
        return f"biased gradient: the adjoint of each particle is bounded by {bound:g}" if bound > 0.0 else None

    def _bound_adjoints(self, sim: Simulator) -> None:
        bounded = [matter.bound_adjoints(self.task.adjoint_bound) for matter in sim.compiled.matters]
        if self.bias is not None and not any(bounded):
            raise TaskError(f"{self.task.name}: adjointBound is for liquids, and the scene has none; remove it")


def _check(part: Any, sim: Simulator, times: np.ndarray, task: Task) -> None:
    """Makes sure that a term or condition fits the scene and the duration."""
    name = getattr(part, "name", "") or getattr(getattr(part, "term", None), "name", "") or task.name
    try:
        part.check(sim)
        when = getattr(part, "when", None)
        if when is not None:
            when.frames(times)
        for output in part.outputs:
            if output not in (*sim.output_names, *sim.state_names):
                raise InputError(f"the simulator has no output {output!r}")
    except WarpsimError as error:
        raise error if str(error).startswith(name) else TaskError(f"{name}: {error}") from error


def _variables(sim: Simulator, task: Task) -> Variables | None:
    if not task.variables:
        return None
    made = [_variable(sim, spec) for spec in task.variables]
    try:
        return Variables(made)
    except InputError as error:
        raise TaskError(f"{task.name}: {error}") from error


def _off_bounds(numbers: np.ndarray, spec: VariableSpec) -> np.ndarray:
    """A value to begin at: the authored one, or where that is on a bound, as results often are, a little within it."""
    sides = ((spec.lower, -np.inf), (spec.upper, np.inf))
    try:
        low, high = (np.broadcast_to(none if s is None else _broadcast(s), numbers.shape) for s, none in sides)
    except ValueError:  # of the wrong shape, which the variable says
        return numbers
    low = np.maximum(low, 0.0) if spec.positive else low
    both = np.isfinite(low) & np.isfinite(high)
    moved = numbers
    for bound, inward in ((low, 1.0), (high, -1.0)):
        size = np.maximum(np.abs(np.where(np.isfinite(bound), bound, 1.0)), 1.0)
        room = np.where(both, np.where(both, high, 1.0) - np.where(both, low, 0.0), size)
        on_it = np.isfinite(bound) & (np.abs(numbers - bound) <= _ROUNDING * size)
        moved = np.where(on_it, bound + inward * _WITHIN * room, moved)
    return moved


def _variable(sim: Simulator, spec: VariableSpec) -> Variable:
    try:
        handles = [sim.attribute(path) for path in spec.attributes]
        bounded = spec.lower is not None or spec.upper is not None or spec.positive
        size = float(np.abs(handles[0].numbers).max(initial=0.0))
        return Variable(
            handles,
            lower=_broadcast(spec.lower),
            upper=_broadcast(spec.upper),
            positive=spec.positive,
            scale=spec.scale or (1.0 if bounded or size == 0.0 else size),
            start=_off_bounds(np.mean([handle.numbers for handle in handles], axis=0), spec) if bounded else None,
            components=spec.components,
        )
    except InputError as error:
        raise TaskError(f"{spec.name or spec.attributes[0]}: {error}") from error


def _broadcast(values: Sequence[float] | None) -> Any:
    if values is None:
        return None
    return values[0] if len(values) == 1 else np.asarray(values, dtype=float)
