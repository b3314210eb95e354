"""A segment: K slots, each one step recorded once on a `wp.Tape`, captured into graphs and replayed for ever.

Slot k reads frame k of the states and inputs and writes frame k + 1 of the states and k of the outputs. Three kinds of
graph exist, each captured when first needed:

- *plain*: the forward steps alone; all slots share one set of intermediates;
- *recorded*: the forward steps whose intermediates stay in their slots for the adjoint;
- *backward*: for each slot, last first: clears the adjoints of the intermediates, then runs the slot's tape backwards.

Without capture the same launches run eagerly, with the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from warpsim.core.errors import InputError
from warpsim.tape import arena as arenas
from warpsim.tape import frames
from warpsim.tape.active import recording
from warpsim.tape.arena import Arena, ArenaSize
from warpsim.tape.crew import Crew
from warpsim.tape.frames import Block, Packed
from warpsim.tape.graph import Replay, SlotGraph, SlotStep, capture_slots, eager_slots
from warpsim.tape.program import BoundedProgram, ExplainingProgram, Program, Shortage, SolvingProgram


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
            frames.differentiable(fields) for fields in (program.state, program.inputs, program.outputs)
        )
        sizes = [
            (slots + 1) * frames.packed_bytes(state),
            slots * frames.packed_bytes(inputs),
            slots * frames.packed_bytes(outputs),
        ]
        memory = wp.zeros(max(sum(sizes), 1), dtype=wp.uint8, device=program.device)
        self.states = Packed(state, slots + 1, memory)
        self.inputs = Packed(inputs, slots, memory, sizes[0])
        self.outputs = Packed(outputs, slots, memory, sizes[0] + sizes[1])
        self._all = frames.Block(memory)

    def zero(self) -> None:
        """Clears all of them."""
        self._all.zero(0, self._all.array.shape[0])

    def vanish(self) -> bool:
        """Whether all of them are zero; False where they are not in host memory, which is not fetched for that."""
        return self._all.host is not None and not self._all.host.any()


class Segment:
    """The slots of one program and the frames of states, inputs and outputs they work on."""

    def __init__(
        self,
        program: Program,
        slots: int,
        *,
        lengths: Iterable[int] = (),
        capture: bool = True,
        like: Segment | None = None,
        crew: Crew | None = None,
    ) -> None:
        """Allocates the frames of all slots; intermediates and adjoints follow when first needed.

        Args:
            program: What a slot runs.
            slots: K, the most steps a segment can have.
            lengths: Numbers of steps, counted from slot 0, that will often be replayed; K always is one.
            capture: Whether to capture graphs at all; False runs every launch eagerly.
            like: As many slots of the same program over as many other worlds, from which graphs are made faster.
            crew: Threads that share the divided launches of a captured step.
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
        self._like = like
        self._crew = crew
        self._size: ArenaSize = arenas.measure(program) if like is None else like._size
        self._plain_work: list[Work] = []
        self._recorded_arenas: Sequence[Arena] = ()
        self._recorded_work: dict[int, Work] = {}  # by slot, of those that were captured or stepped eagerly
        self._bounded = program if isinstance(program, BoundedProgram) else None
        self._solving = program if isinstance(program, SolvingProgram) else None
        self._over: dict[tuple[int, int], Block] = {}  # views of a slot-0 array in that many slots
        self._tapes: dict[int, wp.Tape] = {}
        self._plain: SlotGraph | None = None
        self._recorded: SlotGraph | None = None
        self._backward: SlotGraph | None = None

    @property
    def adjoints(self) -> Adjoints:
        """Adjoints of the frames, made when first asked for (never within a capture, which would clear them again)."""
        if self._adjoints is None:
            self._adjoints = Adjoints(self.program, self.slots)
        return self._adjoints

    def prepare(self, first: int, count: int, *, recorded: bool) -> None:
        """Captures what `count` slots from `first` on need: plain steps, or taped steps and their adjoints.

        Capture must happen on one thread; replay may happen on any.
        """
        if not recorded:
            if self._plain is None:
                self._allocate_plain()
                known = [self._like._plain] if self._like else []
                (self._plain,) = self._graphs({self._plain_step: range(self.slots)}, known)
            self._plain.prepare(first, count)
            return
        if self._recorded is None or self._backward is None:
            self._allocate_recorded()
            slots = range(self.slots)
            known = [self._like._recorded, self._like._backward] if self._like else []
            self._recorded, self._backward = self._graphs(
                {self._recorded_step: slots, self._backward_step: slots[::-1]}, known
            )
        self._recorded.prepare(first, count)
        self._backward.prepare(first, count)
        if self.capture:  # the graphs hold all that the tapes knew
            self._tapes.clear()

    def steps(self, first: int, count: int, *, recorded: bool) -> Replay:
        """What steps `count` slots from `first` on; if `recorded`, their intermediates stay for `adjoint_steps`."""
        self.prepare(first, count, recorded=recorded)
        graph = self._recorded if recorded else self._plain
        assert graph is not None
        return partial(graph.run, first, count)

    def adjoint_steps(self, first: int, count: int) -> Replay:
        """What runs the adjoints of slots `first` + `count` - 1 … `first`, which must have been stepped `recorded`.

        Adjoints of state k + 1 and output k go in; those of state k and input k are added to.
        """
        self.prepare(first, count, recorded=True)
        assert self._backward is not None
        return partial(self._backward.run, first, count)

    def one_slot(self) -> Segment:
        """A segment of one slot that runs the same program eagerly, to look at a slot without touching this one's."""
        return Segment(self.program, 1, capture=False)

    def copy_slot(self, source: Segment, slot: int) -> None:
        """Makes slot 0 what a slot of another segment is: its state, inputs and adjoints."""
        self.states.copy_frame(0, source.states, slot)
        self.inputs.copy_frame(0, source.inputs, slot)
        if source._adjoints is not None:
            for mine, theirs in ((0, slot), (1, slot + 1)):
                self.adjoints.states.copy_frame(mine, source.adjoints.states, theirs)
            self.adjoints.inputs.copy_frame(0, source.adjoints.inputs, slot)
            self.adjoints.outputs.copy_frame(0, source.adjoints.outputs, slot)

    def eager_tape(self, slot: int) -> wp.Tape:
        """Steps one slot eagerly, clears the adjoints of its intermediates, and returns its tape for inspection."""
        self._allocate_recorded()
        self._recorded_step(slot)
        self._recorded_arenas[slot].zero_adjoints()
        return self._tape(slot)

    def explanation(self, slot: int, world: int) -> str | None:
        """What the program itself says of a failed slot that was stepped eagerly, if it has an `explain`."""
        if not isinstance(self.program, ExplainingProgram):
            return None
        return self.program.explain(self._work_of(slot).arrays, world)

    def shortage(self, slot: int) -> Shortage | None:
        """What a slot that was stepped `recorded` lacked, if its program can lack anything."""
        return None if self._bounded is None else self._bounded.shortage(self._work_of(slot).arrays)

    def unsolved(self, count: int) -> np.ndarray | None:
        """(count, worlds) residuals of solves that did not converge in recorded slots 0 … `count` - 1, else 0.

        Nothing is computed for it: the slots' intermediates lie at equal distances, and each holds its solver's report.
        """
        if self._solving is None:
            return None
        return self._solving.unsolved(self._work_of(0).arrays, lambda array: self._over_slots(array, count))

    def _over_slots(self, array: wp.array, count: int) -> np.ndarray:
        """Values, in the first `count` recorded slots, of one of slot 0's intermediates."""
        key = (array.ptr, count)
        if key not in self._over:
            shape, strides = (count, *array.shape), (self._size.slot, *array.strides)
            view = wp.array(ptr=array.ptr, dtype=array.dtype, shape=shape, strides=strides, device=array.device)
            self._over[key] = Block(view)
        return self._over[key].read(slice(None))

    def finite_work(self, slot: int) -> bool:
        """Whether all real intermediates of a recorded slot are finite."""
        return self._work_of(slot).arena.finite()

    def fill_work(self, slot: int, value: float) -> None:
        """Fills all real intermediates of a slot, to find out whether a step reads what it has not written."""
        self._allocate_plain()
        self._allocate_recorded()
        for work in (*self._plain_work, self._work_of(slot)):
            work.arena.fill(value)

    def _allocate_plain(self) -> None:
        if not self._plain_work:
            arenas_made = arenas.Arenas(self.program.device, self._size, 1, gradients=False)
            self._plain_work = [Work(arena, self.program.make_work(arena)) for arena in arenas_made]

    def _allocate_recorded(self) -> None:
        if not self._recorded_arenas:
            self.adjoints  # noqa: B018  makes them before the capture
            self._recorded_arenas = arenas.Arenas(self.program.device, self._size, self.slots, gradients=True)

    def _work_of(self, slot: int) -> Work:
        """The intermediates of a recorded slot, whose arrays are made when first asked for."""
        if slot not in self._recorded_work:
            arena = self._recorded_arenas[slot]
            self._recorded_work[slot] = Work(arena, self.program.make_work(arena))
        return self._recorded_work[slot]

    def _graphs(self, steps: dict[SlotStep, range], like: Sequence[SlotGraph | None]) -> tuple[SlotGraph, ...]:
        """What replays each of the steps for any slots, in the order of the range; `like` what, where that is known."""
        if not self.capture:
            return eager_slots(steps)
        known = [graph for graph in like if graph is not None]
        return capture_slots(
            self.program.device,
            steps,
            lengths=self._lengths,
            like=known if len(known) == len(steps) else (),
            crew=self._crew,
        )

    def _plain_step(self, slot: int) -> None:
        self._step(slot, self._plain_work[0], None)

    def _recorded_step(self, slot: int) -> None:
        tape = self._tapes[slot] = wp.Tape()
        with recording(tape):
            self._step(slot, self._work_of(slot), tape)

    def _tape(self, slot: int) -> wp.Tape:
        if slot not in self._tapes:
            raise InputError(f"slot {slot} has not been stepped with `recorded`, so it has no adjoint")
        return self._tapes[slot]

    def _backward_step(self, slot: int) -> None:
        self._recorded_arenas[slot].zero_adjoints()
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
