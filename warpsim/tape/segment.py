"""A segment: K slots, each one step recorded once on a `wp.Tape`, captured into graphs and replayed for ever.

Slot k reads state row k and input row k and writes state row k + 1 and output row k. Three kinds of graph exist, each
captured when first needed:

- *plain*: the forward steps alone; all slots share one set of intermediates;
- *recorded*: the forward steps whose intermediates stay in their slots for the adjoint;
- *backward*: for each slot, last first: clears the adjoints of the intermediates, then runs the slot's tape backwards.

A graph covers a run of slots. Lengths known in advance (a whole segment, the shorter last one) get one graph each; any
other run of slots is replayed slot by slot. A replay is one call however long the graph is, so few long graphs beat
many short ones. Without capture the same launches run eagerly, with the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import warp as wp

from warpsim.errors import InputError
from warpsim.tape import arena as arenas
from warpsim.tape import rows
from warpsim.tape.arena import Arena
from warpsim.tape.graph import Replay, capture
from warpsim.tape.program import ExplainingProgram, Program
from warpsim.tape.rows import Packed


@dataclass(frozen=True)
class Work:
    """One slot's intermediates: the memory and what the program made of it."""

    arena: Arena
    arrays: Any


class Adjoints:
    """Adjoints of a segment's states, inputs and outputs, in one piece of memory that is cleared in one go."""

    def __init__(self, program: Program, slots: int) -> None:
        """Allocates them for `slots` steps."""
        state, inputs, outputs = (
            rows.differentiable(fields) for fields in (program.state, program.inputs, program.outputs)
        )
        sizes = [
            (slots + 1) * rows.packed_bytes(state),
            slots * rows.packed_bytes(inputs),
            slots * rows.packed_bytes(outputs),
        ]
        memory = wp.zeros(max(sum(sizes), 1), dtype=wp.uint8, device=program.device)
        self.states = Packed(state, slots + 1, memory)
        self.inputs = Packed(inputs, slots, memory, sizes[0])
        self.outputs = Packed(outputs, slots, memory, sizes[0] + sizes[1])
        self._all = rows.Block(memory)

    def zero(self) -> None:
        """Clears all of them."""
        self._all.zero(0, self._all.array.shape[0])


class Segment:
    """The slots of one program and the rows of states, inputs and outputs they work on."""

    def __init__(self, program: Program, slots: int, *, lengths: Iterable[int] = (), capture: bool = True) -> None:
        """Allocates the rows of all slots; intermediates and adjoints follow when first needed.

        Args:
            program: What a slot runs.
            slots: K, the most steps a segment can have.
            lengths: Numbers of steps, counted from slot 0, that will be replayed as one graph; K always is.
            capture: Whether to capture graphs at all; False runs every launch eagerly.
        """
        self.program = program
        self.slots = slots
        self.capture = capture
        device = program.device
        self.states = Packed.allocate(program.state, slots + 1, device)
        self.inputs = Packed.allocate(program.inputs, slots, device)
        self.outputs = Packed.allocate(program.outputs, slots, device)
        self._adjoints: Adjoints | None = None
        self._lengths = {*lengths, slots}
        self._size = arenas.measure(program)
        self._plain_work: list[Work] = []
        self._recorded_work: list[Work] = []
        self._tapes: list[wp.Tape | None] = [None] * slots
        self._plain: dict[range, Replay] = {}
        self._recorded: dict[range, Replay] = {}
        self._backward: dict[range, Replay] = {}

    @property
    def adjoints(self) -> Adjoints:
        """Adjoints of the rows, made when first asked for (never within a capture, which would clear them again)."""
        if self._adjoints is None:
            self._adjoints = Adjoints(self.program, self.slots)
        return self._adjoints

    def prepare(self, first: int, count: int, *, recorded: bool) -> None:
        """Captures what `count` slots from `first` on need: plain steps, or taped steps and their adjoints.

        Capture must happen on one thread; replay may happen on any.
        """
        if recorded:
            self._allocate_recorded()
        else:
            self._allocate_plain()
        for chunk in self._chunks(first, count):
            if recorded and chunk not in self._backward:
                self._recorded[chunk] = self._replay(self._recorded_step, chunk)
                self._backward[chunk] = self._replay(self._backward_step, chunk[::-1])
                if self.capture:  # the graphs hold all that the tapes knew
                    self._tapes = [None] * self.slots
            elif not recorded and chunk not in self._plain:
                self._plain[chunk] = self._replay(self._plain_step, chunk)

    def forward(self, first: int, count: int, *, recorded: bool) -> None:
        """Steps `count` slots from `first` on; if `recorded`, their intermediates stay for `backward`."""
        self.prepare(first, count, recorded=recorded)
        replays = self._recorded if recorded else self._plain
        for chunk in self._chunks(first, count):
            replays[chunk]()

    def backward(self, first: int, count: int) -> None:
        """Runs the adjoints of slots `first` + `count` - 1 … `first`, which must have been stepped `recorded`.

        State adjoint row k + 1 and output adjoint row k go in; state adjoint row k and input adjoint row k are added
        to.
        """
        self.prepare(first, count, recorded=True)
        for chunk in reversed(self._chunks(first, count)):
            self._backward[chunk]()

    def eager_tape(self, slot: int) -> wp.Tape:
        """Steps one slot eagerly, clears the adjoints of its intermediates, and returns its tape for inspection."""
        self._allocate_recorded()
        self._recorded_step(slot)
        self._recorded_work[slot].arena.zero_adjoints()
        return self._tape(slot)

    def explanation(self, slot: int, world: int) -> str | None:
        """What the program itself says of a failed slot that was stepped eagerly, if it has an `explain`."""
        if not isinstance(self.program, ExplainingProgram):
            return None
        return self.program.explain(self._recorded_work[slot].arrays, world)

    def finite_work(self, slot: int) -> bool:
        """Whether all real intermediates of a recorded slot are finite."""
        return self._recorded_work[slot].arena.finite()

    def fill_work(self, value: float) -> None:
        """Fills all real intermediates, to find out whether a step reads what it has not written."""
        self._allocate_plain()
        self._allocate_recorded()
        for work in (*self._plain_work, *self._recorded_work):
            work.arena.fill(value)

    def _chunks(self, first: int, count: int) -> list[range]:
        if first == 0 and count in self._lengths:
            return [range(count)]
        return [range(slot, slot + 1) for slot in range(first, first + count)]

    def _allocate_plain(self) -> None:
        if not self._plain_work:
            self._plain_work = self._make_work(1, gradients=False)

    def _allocate_recorded(self) -> None:
        if not self._recorded_work:
            self.adjoints  # noqa: B018  makes them before the capture
            self._recorded_work = self._make_work(self.slots, gradients=True)

    def _make_work(self, slots: int, *, gradients: bool) -> list[Work]:
        made = arenas.allocate(self.program.device, self._size, slots, gradients=gradients)
        return [Work(arena, self.program.make_work(arena)) for arena in made]

    def _replay(self, step: Callable[[int], None], chunk: range) -> Replay:
        """The act of running `step` for each slot of `chunk` again: a captured graph, or the calls themselves."""
        if not self.capture:
            return partial(_each, step, chunk)
        return capture(self.program.device, partial(_each, step, chunk))

    def _plain_step(self, slot: int) -> None:
        self._step(slot, self._plain_work[0], None)

    def _recorded_step(self, slot: int) -> None:
        tape = self._tapes[slot] = wp.Tape()
        with tape:
            self._step(slot, self._recorded_work[slot], tape)

    def _tape(self, slot: int) -> wp.Tape:
        tape = self._tapes[slot]
        if tape is None:
            raise InputError(f"slot {slot} has not been stepped with `recorded`, so it has no adjoint")
        return tape

    def _backward_step(self, slot: int) -> None:
        self._recorded_work[slot].arena.zero_adjoints()
        self._tape(slot).backward()

    def _step(self, slot: int, work: Work, tape: wp.Tape | None) -> None:
        by_state, by_input, by_output = (None, None, None)
        if tape is not None:
            by_state, by_input, by_output = self.adjoints.states, self.adjoints.inputs, self.adjoints.outputs
        work.arena.zero_accumulators()
        self.program.step(
            self.states.views("state", slot, by_state),
            self.inputs.views("input", slot, by_input),
            work.arrays,
            self.states.views("state", slot + 1, by_state),
            self.outputs.views("output", slot, by_output),
            tape=tape,
        )


def _each(step: Callable[[int], None], chunk: range) -> None:
    for slot in chunk:
        step(slot)
