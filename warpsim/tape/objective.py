"""Objectives as Warp kernels: a running cost added to a program's outputs, and a final cost of its last state.

Both may have parameters of their own (targets, weights), whose gradients accumulate like those of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import warp as wp

from warpsim.core.errors import InputError
from warpsim.tape import frames
from warpsim.tape.arena import Arena
from warpsim.tape.program import Arrays, Field, Program, SlotValues, SolvingProgram, SplittableProgram

RunningCostLauncher = Callable[[Arrays, Arrays, Arrays, Arrays, Arrays, wp.array], None]
"""Called as `launch(parameters, state, inputs, next_state, outputs, cost)`; adds to `cost`, (worlds,), zero before."""

FinalCostLauncher = Callable[[Arrays, Arrays, wp.array], None]
"""Called as `launch(parameters, state, cost)`; adds to `cost`, (worlds,), zero before."""


class RunningCost:
    """A program with one more output: what each step costs each world. Seed it with ones, or with weights over time."""

    def __init__(
        self,
        program: Program,
        launch: RunningCostLauncher,
        *,
        parameters: Mapping[str, wp.array] | None = None,
        name: str = "cost",
        dtype: Any = wp.float64,
    ) -> None:
        """Adds the cost.

        Args:
            program: What a step does.
            launch: Launches the kernels of the cost.
            parameters: Its own parameters, axis 0 the world.
            name: Name of the new output.
            dtype: Its type.
        """
        own = dict(parameters or {})
        for taken in own.keys() & program.parameters.keys():
            raise InputError(f"parameter {taken!r} of the cost is also one of the program; rename it")
        self.device, self.worlds = program.device, program.worlds
        self.state, self.inputs = program.state, program.inputs
        self.outputs = (*program.outputs, Field(name, (program.worlds,), dtype))
        self.parameters = {**program.parameters, **own}
        self._program, self._launch, self._own = program, launch, own
        self._name, self._dtype = name, dtype

    def make_work(self, arena: Arena) -> Any:
        """That of the program."""
        return self._program.make_work(arena)

    def step(
        self, state: Arrays, inputs: Arrays, work: Any, next_state: Arrays, outputs: Arrays, *, tape: wp.Tape | None
    ) -> None:
        """A step of the program, then its cost."""
        self._program.step(state, inputs, work, next_state, outputs, tape=tape)
        outputs[self._name].zero_()
        parameters = Arrays("parameter of the cost", self._own)
        self._launch(parameters, state, inputs, next_state, outputs, outputs[self._name])

    def unsolved(self, work: Any, values: SlotValues) -> np.ndarray | None:
        """That of the program."""
        return self._program.unsolved(work, values) if isinstance(self._program, SolvingProgram) else None

    def split(self, groups: int) -> list[RunningCost]:
        """Splits the program and the parameters of the cost alike."""
        if not isinstance(self._program, SplittableProgram):
            raise InputError(
                f"{type(self._program).__name__} has no `split`, so its worlds cannot be divided among threads"
            )
        found, first = [], 0
        for part in self._program.split(groups):
            own = {name: array[first : first + part.worlds] for name, array in self._own.items()}
            found.append(RunningCost(part, self._launch, parameters=own, name=self._name, dtype=self._dtype))
            first += part.worlds
        return found


def final_cost(
    program: Program,
    state: Mapping[str, Any],
    launch: FinalCostLauncher,
    *,
    parameters: Mapping[str, wp.array] | None = None,
    dtype: Any = wp.float64,
) -> tuple[np.ndarray, dict[str, wp.array]]:
    """Evaluates and differentiates a cost of the last state.

    Args:
        program: Whose state it is.
        state: All state fields, e.g. `run.state()`.
        launch: Launches the kernels of the cost.
        parameters: Its own parameters; their gradients are added to.
        dtype: Type of the cost.

    Returns:
        The cost of each world, and the derivative of their sum by the state: `state_seeds={name: {-1: seed}}`.
    """
    given = frames.adopt_frame("state", state, program.state, program.device)
    arrays = {}
    for field in program.state:
        arrays[field.name] = wp.clone(given[field.name].array[0], requires_grad=field.differentiable)
    cost = wp.zeros(program.worlds, dtype=dtype, device=program.device, requires_grad=True)
    tape = wp.Tape()
    with tape:
        launch(Arrays("parameter of the cost", parameters or {}), Arrays("state", arrays), cost)
    cost.grad.fill_(1.0)
    tape.backward()
    return cost.numpy(), {f.name: arrays[f.name].grad for f in frames.differentiable(program.state)}
