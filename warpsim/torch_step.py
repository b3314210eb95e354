"""A single step as a node of torch's graph, for loops written in Python with any torch code between steps.

A node keeps the state and the control it was given, and nothing else; its backward pass takes the step again. So a loop
costs the memory of its states, plus whatever the torch code between steps keeps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from warpsim.engine import Engine
from warpsim.tape import diagnostics
from warpsim.tape.rows import Packed
from warpsim.tape.segment import Segment
from warpsim.torch_exchange import on_torch_stream, to_torch
from warpsim.torch_parameters import Parameters, parameter_gradients


class SingleStep:
    """A slot of one step, with tensors over its memory."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self._state, self._reached = _row(segment.states, 0), _row(segment.states, 1)
        self._input, self._output = _row(segment.inputs, 0), _row(segment.outputs, 0)
        self._seeds: dict[str, torch.Tensor] = {}
        self._pulled: dict[str, torch.Tensor] = {}

    def forward(self, given: dict[str, torch.Tensor], *, recorded: bool) -> None:
        """Takes the step from copies of the given states and controls, by field."""
        for name, tensor in given.items():
            (self._state if name in self._state else self._input)[name].copy_(tensor)
        self.segment.forward(0, 1, recorded=recorded)

    def result(self, states: Sequence[str], outputs: Sequence[str]) -> tuple[torch.Tensor, ...]:
        """Copies of the state reached and of the outputs."""
        return (
            *(self._reached[name].clone() for name in states),
            *(self._output[name].clone() for name in outputs),
        )

    def backward(self, adjoints: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Adjoints of the given states and controls, for some of the results'; gradients of parameters are added to."""
        memory = self.segment.adjoints
        if not self._pulled:
            self._seeds = {**_row(memory.states, 1), **_row(memory.outputs, 0)}
            self._pulled = {**_row(memory.states, 0), **_row(memory.inputs, 0)}
        memory.zero()
        for name, tensor in adjoints.items():
            self._seeds[name].copy_(tensor)
        self.segment.backward(0, 1)
        return {name: tensor.clone() for name, tensor in self._pulled.items()}


def _row(packed: Packed, row: int) -> dict[str, torch.Tensor]:
    return {name: to_torch(block.array[row]) for name, block in packed.fields.items()}


@dataclass(frozen=True)
class StepCall:
    """Everything about a step but its tensors.

    Attributes:
        engine: What takes it.
        slot: Where it is taken.
        number: Steps since the reset, for error messages.
        state: All state fields, in the order of their tensors.
        controls: Controls given, in order.
        outputs: Outputs asked for.
        parameters: Parameters in force; their tensors come last.
    """

    engine: Engine
    slot: SingleStep
    number: int
    state: tuple[str, ...]
    controls: tuple[str, ...]
    outputs: tuple[str, ...]
    parameters: Parameters

    def exchanged(self, tensors: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
        """The tensors of states and controls by field."""
        names = (*self.state, *self.controls)
        return dict(zip(names, tensors[: len(names)], strict=True))


def take_step(call: StepCall, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The state reached, by field, then the outputs."""
    segment = call.slot.segment
    with on_torch_stream(call.engine.model.device):
        call.engine.load(call.parameters.values)
        call.slot.forward(call.exchanged(tensors), recorded=False)
        if not diagnostics.finite(segment.states.fields, 1):
            diagnostics.raise_for_state(segment, call.number, 1, 0)
        return call.slot.result(call.state, call.outputs)


class StepNode(torch.autograd.Function):
    """`apply(call, *tensors)` → the state reached, by field, then the outputs, (W, …) each.

    The tensors are all state fields, the controls and the parameters, in the order the call names them.
    """

    @staticmethod
    def forward(ctx: Any, call: StepCall, *tensors: torch.Tensor):
        """Takes the step."""
        made = take_step(call, tensors)
        ctx.call = call
        ctx.shapes = [tensor.shape for tensor in tensors]
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*call.exchanged(tensors).values())
        program = call.slot.segment.program
        carried = {f.name for f in (*program.state, *program.outputs) if not f.differentiable}
        results = zip((*call.state, *call.outputs), made, strict=True)
        ctx.mark_non_differentiable(*(tensor for name, tensor in results if name in carried))
        return made

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *adjoints: torch.Tensor | None):
        """Takes the step again and pulls adjoints of its results back to its tensors."""
        call: StepCall = ctx.call
        named = dict(zip((*call.state, *call.outputs), adjoints, strict=True))
        with on_torch_stream(call.engine.model.device):
            call.engine.load(call.parameters.values)
            call.engine.zero_parameter_gradients()
            call.slot.forward(call.exchanged(ctx.saved_tensors), recorded=True)
            pulled = call.slot.backward({name: a for name, a in named.items() if a is not None})
            shapes = ctx.shapes[len(call.state) + len(call.controls) :]
            pulled |= parameter_gradients(call.engine, dict(zip(call.parameters.tensors, shapes, strict=True)))
        names = (*call.state, *call.controls, *call.parameters.tensors)
        wanted = ctx.needs_input_grad[1:]
        return (None, *(pulled.get(name) if w else None for name, w in zip(names, wanted, strict=True)))


class Stepper:
    """Takes single steps of an engine, in the graph where anything requires a gradient."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._slots: dict[tuple[tuple[str, ...], tuple[str, ...]], SingleStep] = {}

    def advance(
        self,
        state: Mapping[str, torch.Tensor],
        controls: Mapping[str, torch.Tensor],
        parameters: Parameters,
        outputs: tuple[str, ...],
        number: int,
    ) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        """The state reached and the outputs, by name, (W, …) each.

        Args:
            state: All state fields.
            controls: By name; the others are held at their defaults.
            parameters: In force.
            outputs: To be shown.
            number: Of the step, for error messages.
        """
        parameters.prepare(self._engine)
        slot = self._slot(tuple(controls), outputs)
        call = StepCall(self._engine, slot, number, tuple(state), tuple(controls), outputs, parameters)
        tensors = (*state.values(), *controls.values(), *parameters.tensors.values())
        recorded = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        made = StepNode.apply(call, *tensors) if recorded else take_step(call, tensors)
        reached = dict(zip(state, made[: len(state)], strict=True))
        return reached, dict(zip(outputs, made[len(state) :], strict=True))

    def _slot(self, controls: tuple[str, ...], outputs: tuple[str, ...]) -> SingleStep:
        segment = self._engine.single_step(controls, outputs)
        slot = self._slots.get((controls, outputs))
        if (
            slot is None or slot.segment is not segment
        ):  # the engine makes new ones when more parameters carry gradients
            slot = self._slots[controls, outputs] = SingleStep(segment)
        return slot
