"""A few steps under one control as a node of torch's graph, for loops with any torch code between steps.

A node keeps the state and the control it was given, and nothing else; its backward pass takes the steps again. So a
loop costs the memory of its states, plus whatever the torch code between steps keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from warpsim.autograd.entry import recorded
from warpsim.autograd.exchange import on_torch_stream, to_torch
from warpsim.autograd.node import Adjoints, Made, Node
from warpsim.autograd.parameters import Parameters, parameter_gradients
from warpsim.engine.engine import Engine
from warpsim.tape import diagnostics
from warpsim.tape.convergence import Unsolved
from warpsim.tape.diagnostics import NonFiniteError
from warpsim.tape.frames import Packed
from warpsim.tape.segment import Adjoints as SlotAdjoints
from warpsim.tape.segment import Segment


class StepSlots:
    """Slots that take a few steps under one control, with tensors over their memory."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self._states, self._inputs, self._outputs = (
            _tensors(packed) for packed in (segment.states, segment.inputs, segment.outputs)
        )
        self._frames: dict[tuple[int, str, int], torch.Tensor] = {}
        self._seeds: dict[str, torch.Tensor] = {}
        self._pulled: dict[str, torch.Tensor] = {}

    def shapes(self, names: Sequence[str]) -> dict[str, torch.Size]:
        """Shapes (W, …) of state fields and controls."""
        return {name: (self._states if name in self._states else self._inputs)[name].shape[1:] for name in names}

    def forward(self, given: Mapping[str, torch.Tensor], count: int = 1, *, recorded: bool) -> None:
        """Takes `count` steps from copies of the given states and controls, (W, …) by field; controls are held."""
        for name, tensor in given.items():
            if name in self._states:
                self._frame(self._states, name, 0).copy_(tensor)
            else:
                (self._frame(self._inputs, name, 0) if count == 1 else self._inputs[name][:count]).copy_(tensor)
        self.segment.steps(0, count, recorded=recorded)()

    def reached(self, states: Sequence[str], outputs: Sequence[str], count: int = 1) -> tuple[torch.Tensor, ...]:
        """Copies of the state after `count` steps and of its outputs, (W, …) each."""
        return (
            *(self._frame(self._states, name, count).clone() for name in states),
            *(self._frame(self._outputs, name, count - 1).clone() for name in outputs),
        )

    def _frame(self, tensors: Mapping[str, torch.Tensor], name: str, frame: int) -> torch.Tensor:
        """One frame of a field, kept for the next time: making a view takes longer than copying a few numbers."""
        key = (id(tensors), name, frame)  # a state and an output may have the same name
        found = self._frames.get(key)
        if found is None:
            found = self._frames[key] = tensors[name][frame]
        return found

    def passed(self, states: Sequence[str], outputs: Sequence[str], count: int) -> tuple[torch.Tensor, ...]:
        """Copies of the states before that and of their outputs, (count − 1, W, …) each."""
        return (
            *(self._states[name][1:count].clone() for name in states),
            *(self._outputs[name][: count - 1].clone() for name in outputs),
        )

    def unsolved(self, count: int = 1, number: int = 0) -> Unsolved:
        """The solves of `count` recorded steps that did not converge; `number` is the first one's."""
        found, residuals = Unsolved(), self.segment.unsolved(count)
        if residuals is not None:
            found.note(residuals, number, 0)
        return found

    def backward(
        self, adjoints: Mapping[str, torch.Tensor], passed: Mapping[str, torch.Tensor] | None = None, count: int = 1
    ) -> dict[str, torch.Tensor]:
        """Adjoints of the given states and controls; gradients of parameters are added to.

        Args:
            adjoints: Of what `reached` returned, by field, (W, …) each; some may be missing.
            passed: Likewise of what `passed` returned, (count − 1, W, …) each.
            count: Steps taken by `forward`, recorded.
        """
        memory = self._prepared_adjoints()
        memory.zero()
        for name, tensor in adjoints.items():
            self._seeds[name][count - 1].copy_(tensor)
        for name, tensor in (passed or {}).items():
            self._seeds[name][: count - 1].copy_(tensor)
        self.segment.adjoint_steps(0, count)()
        return {
            name: tensor[:count].sum(0) if name in self._inputs else tensor.clone()
            for name, tensor in self._pulled.items()
        }

    def backward_each(
        self, field: str, covectors: Sequence[torch.Tensor], into: Mapping[str, Sequence[torch.Tensor]]
    ) -> None:
        """Pulls covectors of a state after one recorded step back, one after another.

        Args:
            field: Of the state.
            covectors: (W, …) each.
            into: For given states and controls, by name: tensors (W, …) that receive the adjoint of each covector.
        """
        memory = self._prepared_adjoints()
        seed = self._seeds[field][0]
        pulled = [(self._pulled[name][0] if name in self._inputs else self._pulled[name], into[name]) for name in into]
        pull = self.segment.adjoint_steps(0, 1)
        for k, covector in enumerate(covectors):
            memory.zero()
            seed.copy_(covector)
            pull()
            for tensor, frames in pulled:
                frames[k].copy_(tensor)

    def _prepared_adjoints(self) -> SlotAdjoints:
        """The adjoints' memory, with tensors over it."""
        memory = self.segment.adjoints
        if not self._pulled:
            seeded = {name: tensor[1:] for name, tensor in _tensors(memory.states).items()}
            self._seeds = {**seeded, **_tensors(memory.outputs)}
            self._pulled = {name: tensor[0] for name, tensor in _tensors(memory.states).items()}
            self._pulled |= _tensors(memory.inputs)
        return memory


def _tensors(packed: Packed) -> dict[str, torch.Tensor]:
    """Tensors over packed frames, (frames, W, …) by field."""
    return {name: to_torch(block.array) for name, block in packed.fields.items()}


@dataclass(frozen=True)
class StepCall:
    """Everything about a few steps but their tensors.

    Attributes:
        engine: What takes them.
        slots: Where they are taken.
        number: Steps since the reset, for error messages.
        count: How many, all under the same control.
        state: All state fields, in the order of their tensors.
        kept: Those of them whose states on the way are kept, if `count` is more than 1.
        controls: Controls given, in order.
        outputs: Outputs asked for.
        parameters: Parameters in force; their tensors come last.
    """

    engine: Engine
    slots: StepSlots
    number: int
    count: int
    state: tuple[str, ...]
    kept: tuple[str, ...]
    controls: tuple[str, ...]
    outputs: tuple[str, ...]
    parameters: Parameters

    @property
    def made(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Fields of the results at the end, and of those on the way."""
        return (*self.state, *self.outputs), (*self.kept, *self.outputs) if self.count > 1 else ()

    def exchanged(self, tensors: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
        """The tensors of states and controls by field."""
        names = (*self.state, *self.controls)
        return dict(zip(names, tensors[: len(names)], strict=True))

    def forward(self, tensors: Sequence[torch.Tensor]) -> Made:
        """What `take_steps` returns; tensors are all state fields, the controls and the parameters, in order."""
        made = take_steps(self, tensors)
        program = self.slots.segment.program
        carried = {f.name for f in (*program.state, *program.outputs) if not f.differentiable}
        names = (*self.made[0], *self.made[1])
        return Made(
            made,
            read_again=tuple(self.exchanged(tensors).values()),
            reports=tuple(t for name, t in zip(names, made, strict=True) if name in carried),
        )

    def backward(
        self, made: Made, tensors: Sequence[torch.Tensor], shapes: Sequence[torch.Size], adjoints: Adjoints
    ) -> list[torch.Tensor | None]:
        """Takes the steps again and pulls adjoints of their results back to their tensors."""
        engine, slots = self.engine, self.slots
        reached, passed = self.made
        at_end = {n: a for n, a in zip(reached, adjoints, strict=False) if a is not None}
        on_the_way = {n: a for n, a in zip(passed, adjoints[len(reached) :], strict=True) if a is not None}
        with engine.turn, on_torch_stream(engine.model.device):
            engine.load(self.parameters.values)
            engine.zero_parameter_gradients()
            given = self.exchanged(tensors)
            if engine.model.softened_backward:  # the adjoint sees more contacts than the steps did
                slots = record_steps(engine, slots, given, self.count, lambda k, w: (self.number + k + 1, w))
            else:
                slots.forward(given, self.count, recorded=True)
            slots.unsolved(self.count, self.number).settle(engine.unconverged)
            pulled = slots.backward(at_end, on_the_way, self.count)
            of_parameters = shapes[len(self.state) + len(self.controls) :]
            pulled |= parameter_gradients(engine, dict(zip(self.parameters.tensors, of_parameters, strict=True)))
        return [pulled.get(name) for name in (*self.state, *self.controls, *self.parameters.tensors)]


def take_steps(call: StepCall, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Results at the end, (W, …) each, and on the way, (count − 1, W, …) each, in the order of `StepCall.made`.

    The caller has the engine's turn.
    """
    segment = call.slots.segment
    with on_torch_stream(call.engine.model.device):
        call.engine.load(call.parameters.values)
        call.slots.forward(call.exchanged(tensors), call.count, recorded=False)
        if not diagnostics.finite(segment.states, slice(1, call.count + 1)):
            diagnostics.raise_for_state(segment, call.number, diagnostics.first_bad_state(segment, call.count), 0)
        reached = call.slots.reached(call.state, call.outputs, call.count)
        return reached if call.count == 1 else (*reached, *call.slots.passed(call.kept, call.outputs, call.count))


def record_steps(
    engine: Engine,
    slots: StepSlots,
    given: Mapping[str, torch.Tensor],
    count: int,
    where: Callable[[int, int], tuple[int, int]],
) -> StepSlots:
    """Takes steps for their adjoints; where contacts, or softened ones that only adjoints see, lack places, with more.

    Args:
        engine: What takes them.
        slots: Where.
        given: States and controls, as in `StepSlots.forward`.
        count: How many.
        where: Turns a slot and a world into the step that is reached and the world, for error messages.

    Returns:
        The slots in which they were taken: those given, unless there had to be more places.
    """
    while True:
        slots.forward(given, count, recorded=True)
        segment = slots.segment
        found = [(slot, segment.shortage(slot)) for slot in range(count)]
        lacking = next(((slot, shortage) for slot, shortage in found if shortage is not None), None)
        if lacking is None:
            return slots
        slot, shortage = lacking
        step, world = where(slot, shortage.world)
        reason = segment.explanation(slot, shortage.world)
        engine.make_room(NonFiniteError(f"step {step}, world {world}: {reason}", step, replace(shortage, world=world)))
        controls, outputs = ([f.name for f in fields] for fields in (segment.program.inputs, segment.program.outputs))
        slots = StepSlots(engine.step_segment(tuple(controls), tuple(outputs), segment.slots))


@dataclass(frozen=True)
class Advanced:
    """What a few steps made, by name.

    Attributes:
        state: All state fields at the end, (W, …) each.
        outputs: Outputs at the end, (W, …) each.
        frames: Fields that are kept and outputs after each step, (count, W, …) each.
    """

    state: dict[str, torch.Tensor]
    outputs: dict[str, torch.Tensor]
    frames: dict[str, torch.Tensor]


class Stepper:
    """Takes steps of an engine, in the graph where anything requires a gradient."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._slots: dict[tuple[tuple[str, ...], tuple[str, ...], int], StepSlots] = {}

    def advance(
        self,
        state: Mapping[str, torch.Tensor],
        controls: Mapping[str, torch.Tensor],
        parameters: Parameters,
        outputs: tuple[str, ...],
        number: int,
        *,
        count: int = 1,
        slots: int = 1,
        kept: tuple[str, ...] = (),
    ) -> Advanced:
        """Takes `count` steps under one control.

        Args:
            state: All state fields.
            controls: By name; the others are held at their defaults.
            parameters: In force.
            outputs: To be shown.
            number: Of the first step, for error messages.
            count: How many, at most `slots`.
            slots: Places for steps; calls with the same number share them.
            kept: State fields to be kept after each step.
        """
        with self._engine.turn:
            parameters.prepare(self._engine)
            call = StepCall(
                self._engine,
                self._find(tuple(controls), outputs, slots),
                number,
                count,
                tuple(state),
                kept,
                tuple(controls),
                outputs,
                parameters,
            )
            tensors = (*state.values(), *controls.values(), *parameters.tensors.values())
            differentiated = recorded(tensors)
            if differentiated:
                self._engine.check_differentiable()
            try:
                made = Node.apply(call, *tensors) if differentiated else take_steps(call, tensors)
            except NonFiniteError as error:
                self._engine.make_room(error)
                return self.advance(state, controls, parameters, outputs, number, count=count, slots=slots, kept=kept)
        reached, passed = call.made
        at_end = dict(zip(reached, made, strict=False))
        frames = {name: at_end[name].unsqueeze(0) for name in (*kept, *outputs)} if kept or count > 1 else {}
        for name, tensor in zip(passed, made[len(reached) :], strict=True):
            frames[name] = torch.cat([tensor, frames[name]])
        return Advanced({n: at_end[n] for n in state}, {n: at_end[n] for n in outputs}, frames)

    def _find(self, controls: tuple[str, ...], outputs: tuple[str, ...], slots: int) -> StepSlots:
        segment = self._engine.step_segment(controls, outputs, slots)
        found = self._slots.get((controls, outputs, slots))
        # the engine makes new segments when more parameters carry gradients
        if found is None or found.segment is not segment:
            found = self._slots[controls, outputs, slots] = StepSlots(segment)
        return found
