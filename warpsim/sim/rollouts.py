"""Rollouts of a simulator: what a caller wants as one call of the engine, and what comes back as a trajectory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from warpsim.autograd.exchange import to_torch, to_warp, torch_device, zeros
from warpsim.autograd.rollout import RolloutCall
from warpsim.core.errors import InputError
from warpsim.engine.engine import Engine, ParameterValues, RolloutSpec
from warpsim.rigid.step.program import held_controls
from warpsim.sim.controls import ControlLayout, Controls
from warpsim.sim.current_state import CurrentState
from warpsim.sim.initial_state import StateTensors
from warpsim.sim.parameter_input import CONTROLLED, InForce
from warpsim.sim.parameters_in_force import ParametersInForce, timestep_of
from warpsim.sim.sensor_noise import SensorNoise
from warpsim.sim.trajectory import Source, Trajectory
from warpsim.tape.memory import Memory


class Rollouts:
    """Makes calls of an engine and trajectories of their results."""

    def __init__(
        self,
        engine: Engine,
        layout: ControlLayout,
        state: CurrentState,
        parameters: ParametersInForce,
        noise: SensorNoise,
        source: Source,
    ) -> None:
        """Puts the parts together.

        Args:
            engine: What runs.
            layout: The controls a caller may give.
            state: Where rollouts start.
            parameters: In force.
            noise: Of measurements.
            source: What trajectories say they are of.
        """
        self._engine = engine
        self._layout = layout
        self._state = state
        self._parameters = parameters
        self._noise = noise
        self._source = source

    def call(self, spec: RolloutSpec, first: StateTensors, used: InForce, **more: Any) -> RolloutCall:
        """A rollout, ready to run.

        Args:
            spec: Which tape.
            first: The state it starts from.
            used: Its parameters.
            **more: `keep_every`, `progress`, `clip`, `weights` of `RolloutCall`, and `fixed`, which are added.
        """
        initial = self._state.initial
        varied = initial.differentiable
        fixed = {n: to_warp(t, initial.dtypes[n]) for n, t in first.items() if n not in varied}
        every = more.get("keep_every", 1)

        def show(made: dict[str, torch.Tensor]) -> Trajectory:
            steps = range(-1, spec.steps, every)[: len(next(iter(made.values())))]
            return self.trajectory(self._noise.add(made, steps), used, every)

        more["fixed"] = {**fixed, **more.get("fixed", {})}
        return RolloutCall(self._engine, spec, varied, used.parameters, show=show, **more)

    def trajectory(self, made: Mapping[str, torch.Tensor], used: InForce, every: int = 1) -> Trajectory:
        """What callers get of frames that are `every` steps apart."""
        return Trajectory(self._engine.model, self._source, made, every * timestep_of(used), used)

    def still(self, state: StateTensors) -> Trajectory:
        """A state as a trajectory of one frame, with the poses of its bodies."""
        used = self._parameters.current
        shown = {**state, **self._state.observe(state, used, ("body_position", "body_rotation"))}
        made = {name: tensor[None] for name, tensor in shown.items()}
        return Trajectory(self._engine.model, self._source, made, 0.0)

    def all_controls(self, steps: int, controls: Controls | None = None) -> dict[str, torch.Tensor]:
        """Every control of a rollout by name, (steps, W, …) each; those that are not given as they are by default."""
        given = {} if controls is None else self._layout.split(controls, steps)
        return {**self.default_controls(steps), **given}

    def default_controls(self, steps: int, values: ParameterValues | None = None) -> dict[str, torch.Tensor]:
        """What controls are when none are given, for all steps, with given parameters; None: those in force."""
        values = self._parameters.current.parameters.values if values is None else values
        compiled = self._engine.compiled
        held = {name: to_torch(array) for name, array in held_controls(compiled.model).items()}
        held |= {name: to_torch(values[parameter]) for name, parameter in CONTROLLED.items()}
        device = torch_device(compiled.device)
        held |= {name: zeros(f, device) for name, f in compiled.controls.items() if name not in held}
        return {name: held[name].expand(steps, *held[name].shape).clone() for name in self._layout.names}


def check_clip(clip: float | None, memory: Memory) -> None:
    """Raises if a clip has no places to act at."""
    if clip is None:
        return
    if not isinstance(clip, (int, float)) or not 0.0 < clip < math.inf:
        raise InputError(f"clip={clip!r}; give a finite number above 0")
    if memory.segment is None:
        raise InputError(f"clip={clip:g} acts between segments; say with memory=Memory(segment=…) after how many steps")
