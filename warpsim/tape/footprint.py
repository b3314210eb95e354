"""What one step of a program costs in bytes, measured without running it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

import warp as wp

from warpsim.core.host_path import on_host
from warpsim.tape import arena as arenas
from warpsim.tape import frames
from warpsim.tape.active import recording
from warpsim.tape.arena import Arena
from warpsim.tape.calls import Recording
from warpsim.tape.frames import Packed
from warpsim.tape.graph import SAMPLES
from warpsim.tape.program import Program

GRAPH_BYTES = 600_000
"""Fixed cost of one set of captured graphs (plain, recorded, backward) and of the memory in passing around them."""

LAUNCH_BYTES = 22_000
"""Cost of one taped launch of a captured slot: in the three graphs, on the tape meanwhile, and in Python objects."""

TRIALS = 3
"""Segments of one slot in which the first step of the first group of worlds is tried against the rules of a program."""

SEGMENT_BYTES = 12
"""A checksum and a norm."""

SNAPSHOT_BYTES = 32
"""Which segment's start it is, in which frame; and room for lists to grow."""


@dataclass(frozen=True)
class Footprint:
    """Bytes per step of the whole batch of worlds (and the number of launches, and of groups of worlds).

    Attributes:
        state: One state.
        state_adjoint: Its differentiable part.
        exchange: Inputs and outputs of one step.
        exchange_adjoint: Their differentiable part.
        work: Intermediates of one step.
        work_adjoint: Their adjoints.
        launches: Kernel launches of one recorded step, over all groups.
        groups: Groups of worlds with graphs of their own.
        tables: Those whose graphs are tables, made from a few captured slots.
    """

    state: int
    state_adjoint: int
    exchange: int
    exchange_adjoint: int
    work: int
    work_adjoint: int
    launches: int
    groups: int = 1
    tables: int = 1

    @property
    def slot(self) -> int:
        """Bytes that replaying a slot forward and backward touches: K of these should fit the cache."""
        return self.state + self.state_adjoint + self.exchange + self.exchange_adjoint + self.work

    def memory(self, slots: int, last: int, segments: int, snapshots: int, in_memory: int) -> dict[str, int]:
        """Bytes by kind.

        Args:
            slots: K.
            last: Steps of shorter segments, or 0; without tables they have graphs of their own.
            segments: Number of segments.
            snapshots: Number of segment starts that are kept.
            in_memory: States kept in memory.
        """
        graphs = self.groups * GRAPH_BYTES
        if self.tables:
            graphs += self.launches * LAUNCH_BYTES * min(slots, SAMPLES)
        else:
            graphs += self.groups * GRAPH_BYTES * bool(last) + self.launches * LAUNCH_BYTES * (slots + last)
        return {
            "slot states": (slots + 1) * (self.state + self.state_adjoint),
            "slot inputs and outputs": slots * (self.exchange + self.exchange_adjoint),
            "intermediates": (slots + 1) * self.work + self.work_adjoint,
            "graphs (estimate)": graphs,
            "trial step": TRIALS * (2 * self.work + self.work_adjoint) // max(self.groups, 1),
            "bookkeeping": self.groups * (segments * SEGMENT_BYTES + snapshots * SNAPSHOT_BYTES),
            "checkpoints": in_memory * self.state,
        }


def measure(programs: Iterable[Program]) -> Footprint:
    """Adds up what one step of all groups of worlds of a program needs; those of as many worlds need the same."""
    known: dict[int, Footprint] = {}
    parts = []
    for program in programs:
        if program.worlds not in known:
            known[program.worlds] = _measure_one(program)
        parts.append(known[program.worlds])
    return Footprint(**{f.name: sum(getattr(part, f.name) for part in parts) for f in fields(Footprint)})


def _measure_one(program: Program) -> Footprint:
    size = arenas.measure(program)
    launches, tables = _look_at_step(program)
    exchanged = (program.inputs, program.outputs)
    return Footprint(
        state=frames.packed_bytes(program.state),
        state_adjoint=frames.packed_bytes(frames.differentiable(program.state)),
        exchange=sum(frames.packed_bytes(group) for group in exchanged),
        exchange_adjoint=sum(frames.packed_bytes(frames.differentiable(group)) for group in exchanged),
        work=size.slot,
        work_adjoint=size.adjoints,
        launches=launches,
        tables=int(tables),
    )


def _look_at_step(program: Program) -> tuple[int, bool]:
    """Number of taped launches, and whether tables can replay them; found by capturing one step, which runs nothing."""
    states = Packed.allocate(program.state, 2, program.device)
    inputs = Packed.allocate(program.inputs, 1, program.device)
    outputs = Packed.allocate(program.outputs, 1, program.device)
    by_state, by_input, by_output = (
        Packed.allocate(frames.differentiable(fields), 2, program.device)
        for fields in (program.state, program.inputs, program.outputs)
    )
    work = program.make_work(Arena(program.device, arenas.ArenaSize(), None, None))
    tape = wp.Tape()

    def step() -> None:
        with recording(tape):
            program.step(
                states.views("state", 0, by_state),
                inputs.views("input", 0, by_input),
                work,
                states.views("state", 1, by_state),
                outputs.views("output", 0, by_output),
                tape=tape,
            )

    tables = on_host(program.device) and Recording().capture(program.device, step)
    if not on_host(program.device):
        with wp.ScopedCapture(device=program.device):
            step()
    return len(tape.launches), tables
