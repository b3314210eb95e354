"""Rigid-body simulation as a `Program` for the checkpointed tape: named states and inputs around `warpsim.step`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import warp as wp

from warpsim import step
from warpsim.errors import unknown_name
from warpsim.model.model import GROUPS, Model
from warpsim.model.state import (
    RungeKuttaWork,
    Work,
    control_fields,
    make_runge_kutta_work,
    make_scratch,
    make_work,
    state_fields,
)
from warpsim.tape.arena import Arena
from warpsim.tape.program import Arrays


class RigidProgram:
    """Steps of a model; controls that are not per-step inputs are held constant.

    Attributes:
        constants: Arrays of the held controls, (W, …), zero or the scene's drive targets; they may be written between
            rollouts.
    """

    def __init__(self, model: Model, *, controls: Sequence[str], constants: Mapping[str, wp.array] | None = None):
        """Chooses which controls a rollout varies.

        Args:
            model: What is stepped; its derived parameters must have been filled.
            controls: Names from `control_fields` that become per-step inputs.
            constants: Arrays for the others; allocated when not given.
        """
        fields = control_fields(model)
        for name in controls:
            if name not in fields:
                raise unknown_name("control", name, fields)
        self.model = model
        self.device = model.device
        self.worlds = model.worlds
        self.state = state_fields(model)
        self.inputs = tuple(fields[name] for name in controls)
        self.outputs = ()
        self.parameters = model.physical
        self.constants = dict(constants) if constants is not None else _held_controls(model, controls)
        self._scratch = make_scratch(model)

    def make_work(self, arena: Arena) -> Work | RungeKuttaWork:
        """Intermediates of one step."""
        make = make_runge_kutta_work if self.model.options.integrator == "rk4" else make_work
        return make(self.model, arena)

    def step(self, state: Arrays, inputs: Arrays, work, next_state: Arrays, outputs: Arrays, *, tape: wp.Tape | None):
        """One time step by the model's integrator."""
        control = Arrays("control", {**self.constants, **inputs})
        advance = step.runge_kutta if self.model.options.integrator == "rk4" else step.euler
        advance(self.model, state, control, work, self._scratch, next_state, tape)

    def split(self, groups: int) -> list[RigidProgram]:
        """Programs over contiguous ranges of worlds, sharing this one's parameter arrays."""
        edges = np.linspace(0, self.worlds, groups + 1).astype(int)
        names = [f.name for f in self.inputs]
        parts = []
        for first, last in zip(edges[:-1], edges[1:], strict=True):
            constants = {name: array[first:last] for name, array in self.constants.items()}
            part = world_range(self.model, int(first), int(last))
            parts.append(RigidProgram(part, controls=names, constants=constants))
        return parts


def _held_controls(model: Model, varied: Sequence[str]) -> dict[str, wp.array]:
    held = {}
    for name, f in control_fields(model).items():
        if name in varied:
            continue
        held[name] = wp.zeros(f.shape, dtype=f.dtype, device=model.device)
        targets = {"drive_target": model.default_target, "drive_velocity": model.default_target_velocity}
        if name in targets and targets[name].size:
            held[name].assign(np.ascontiguousarray(np.broadcast_to(targets[name], f.shape)))
    return held


def world_range(model: Model, first: int, last: int) -> Model:
    """The model of worlds first … last − 1, with views of the same parameters (and of their gradients)."""
    groups = {}
    for group in GROUPS:
        struct = getattr(model, group)
        part = struct._cls()
        for name in struct._cls.vars:
            setattr(part, name, getattr(struct, name)[first:last])
        groups[group] = part
    return replace(
        model,
        worlds=last - first,
        joint_force_range=model.joint_force_range[first:last],
        authored={name: array[first:last] for name, array in model.authored.items()},
        **groups,
    )
