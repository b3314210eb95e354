"""The state a simulator stands in: reset, stepped, shown, and where rollouts start from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from warpsim.autograd.observe import observe_state
from warpsim.autograd.step import Stepper
from warpsim.autograd.watched import Watched, check_unchanged, watch
from warpsim.engine.engine import Engine
from warpsim.sim.attributes.attribute import Attribute
from warpsim.sim.initial_state import InitialState, StateTensors
from warpsim.sim.parameter_input import InForce
from warpsim.sim.parameters_in_force import ParametersInForce
from warpsim.sim.sensor_noise import SensorNoise
from warpsim.sim.start import Start
from warpsim.sim.trajectory import Observed


class CurrentState:
    """The current state, which `reset` sets and `step` advances; rollouts leave it alone.

    Attributes:
        initial: Makes states.
        stepper: Takes single steps.
        values: All fields, (W, …) each.
        reset_to: What the last reset gave.
        steps: Taken since the last full reset.
    """

    def __init__(
        self, engine: Engine, initial: InitialState, parameters: ParametersInForce, noise: SensorNoise
    ) -> None:
        """The scene's own initial state."""
        self._engine = engine
        self._parameters = parameters
        self._noise = noise
        self.initial = initial
        self.stepper = Stepper(engine)
        self.values: StateTensors = initial.state()
        self.reset_to: StateTensors = {}
        self._reset_with: Watched = {}
        self.steps = 0

    def reset(self, worlds: Any, start: Start, outputs: tuple[str, ...]) -> Observed:
        """Sets the state in some worlds, None: in all; arguments as in `Simulator.reset`."""
        used = self._parameters.current
        used.check()
        fresh = self.initial.begin(start, used.start)
        self.initial.check_finite(fresh, worlds)
        watched = watch(start.fields)
        if worlds is None:
            given = fresh if start.state is not None or start.noisy else start.fields
            self.reset_to = {name: fresh[name] for name in self.initial.differentiable if name in given}
            self.values, self.steps = fresh, 0
            self._reset_with = watched
        else:
            merged = self.initial.merge(worlds, fresh, self.first(used, Start()))
            self.reset_to = {name: merged[name] for name in self.initial.differentiable}
            self.values = self.initial.merge(worlds, fresh, self.values)
            self._reset_with = {**self._reset_with, **watched}
        return self.show(self.values, self.observe(self.values, used, outputs))

    def step(self, controls: Mapping[str, torch.Tensor], outputs: tuple[str, ...]) -> Observed:
        """Advances the state by one time step under controls by name; the state reached and its outputs."""
        used = self._parameters.current
        used.check()
        made = self.stepper.advance(self.values, controls, used.parameters, outputs, self.steps)
        self.values = _copies(made.state)  # what was made is the caller's
        self.steps += 1
        return Observed(self._engine.model, {**made.state, **self._noise.add_one(made.outputs, self.steps - 1)})

    def first(
        self,
        used: InForce,
        start: Start,
        parameters: Mapping[str | Attribute, Any] | None = None,
        controls: Sequence[str] = (),
    ) -> StateTensors:
        """The state a rollout starts from.

        That is what `start` gives, else the last reset's, else what attributes give, else the scene's.

        Args:
            used: Parameters of the rollout.
            start: What the caller wants.
            parameters: Of this call alone.
            controls: Names of those that are given.

        Raises:
            InputError: A parameter of this call cannot matter, since all it feeds is given otherwise.
        """
        check_heard = self._parameters.input.check_heard
        if start.state is not None:
            check_heard(parameters, controls, self.initial.differentiable)
            return self.initial.begin(start)
        check_heard(parameters, controls, {*self.reset_to, *start.fields})
        check_unchanged(self._reset_with, "`reset`", self.reset_to.keys() - start.fields.keys())
        return self.initial.begin(start, {**used.start, **self.reset_to})

    def observe(self, state: StateTensors, used: InForce, outputs: tuple[str, ...]) -> dict[str, torch.Tensor]:
        """Outputs of a state, (W, …) each."""
        used.parameters.prepare(self._engine)
        return observe_state(self._engine, used.parameters, state, outputs)

    def show(self, state: Mapping[str, torch.Tensor], outputs: Mapping[str, torch.Tensor]) -> Observed:
        """What callers see. The state is a copy: whatever they do to it, the next step starts from our own."""
        return Observed(self._engine.model, {**_copies(state), **outputs})


def _copies(tensors: Mapping[str, torch.Tensor]) -> StateTensors:
    return {name: tensor.clone() for name, tensor in tensors.items()}
