"""How long each stage of a step takes: stages captured one by one, replayed in order, and timed.

`print(time_stages(program, state, inputs))` writes a line such as "step.dynamics.mass_matrix 3.1 µs" for each stage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

import numpy as np
import warp as wp

from warpsim.core.errors import InputError, unknown_name
from warpsim.core.kernel_lock import KERNELS
from warpsim.core.stages import observe
from warpsim.tape import arena as arenas
from warpsim.tape.active import recording
from warpsim.tape.graph import Replay, capture
from warpsim.tape.program import Arrays, Field, Program

ADJOINT = ".adjoint"
"""Ends the names of backward stages."""


class StageTimes(dict[str, float]):
    """Stage name → µs of one call, in the order of the step; a stage called several times counts them all."""

    @property
    def total(self) -> float:
        """Sum over the stages, µs."""
        return sum(self.values())

    def __str__(self) -> str:
        width = max(map(len, [*self, "total"]))
        rows = [*self.items(), ("total", self.total)]
        return "\n".join(f"{name:<{width}} {time:9.2f} µs" for name, time in rows)


@dataclass(frozen=True)
class _Recording:
    """One call of a stage: its graph, and the launches it left on the tape."""

    name: str
    replay: Replay
    launches: slice


def time_stages(
    program: Program,
    state: Mapping[str, Any],
    inputs: Mapping[str, Any] | None = None,
    *,
    adjoint: bool = False,
    repeats: int = 200,
) -> StageTimes:
    """Times the stages of one step.

    Every stage is captured into a graph of its own; the time of replaying almost nothing is taken off. The least of all
    repeats counts, which leaves out what other processes do to it.

    Args:
        program: What steps; its stages are host functions marked by `warpsim.core.stages.stage`.
        state: All state fields, (worlds, …) or one value for all worlds.
        inputs: Input fields likewise; those left out are zero.
        adjoint: Time the recorded step and, as "….adjoint", the way back.
        repeats: How often all stages are replayed.
    """
    if repeats < 1:
        raise InputError(f"repeats={repeats}; at least 1 is needed")
    byte = wp.zeros(1, dtype=wp.uint8, device=program.device)
    nothing = capture(program.device, byte.zero_)
    with KERNELS:
        recordings, alive = _record(program, state, inputs or {}, adjoint)
    least = np.full(len(recordings), np.inf)
    idle = np.inf
    for _ in range(repeats):
        idle = min(idle, _microseconds(nothing, program.device))
        for i, recorded in enumerate(recordings):
            least[i] = min(least[i], _microseconds(recorded.replay, program.device))
    times = StageTimes()
    for recorded, time in zip(recordings, least, strict=True):
        times[recorded.name] = times.get(recorded.name, 0.0) + max(float(time) - idle, 0.0)
    del alive  # a graph does not keep the arrays it works on
    return times


def _microseconds(replay: Replay, device: wp.Device) -> float:
    wp.synchronize_device(device)
    start = perf_counter_ns()
    replay()
    wp.synchronize_device(device)
    return (perf_counter_ns() - start) / 1000.0


def _record(
    program: Program, state: Mapping[str, Any], inputs: Mapping[str, Any], adjoint: bool
) -> tuple[list[_Recording], tuple[Any, ...]]:
    """Captures every stage of one step, and what has to stay alive for as long as the graphs do."""
    arena = arenas.Arenas(program.device, arenas.measure(program), 1, gradients=adjoint)[0]
    work = program.make_work(arena)
    before = _arrays("state", program.state, state, program, required=True, gradients=adjoint)
    given = _arrays("input", program.inputs, inputs, program, required=False, gradients=adjoint)
    after = _arrays("state", program.state, {}, program, required=False, gradients=adjoint)
    outputs = _arrays("output", program.outputs, {}, program, required=False, gradients=adjoint)
    tape = wp.Tape() if adjoint else None
    found: list[_Recording] = []

    def record(name: str, run: Callable[[], None]) -> None:
        first = len(tape.launches) if tape else 0
        replay = capture(program.device, run)
        found.append(_Recording(f"step.{name}", replay, slice(first, len(tape.launches) if tape else 0)))

    with observe(record), recording(tape):
        program.step(before, given, work, after, outputs, tape=tape)
    if tape is not None:
        found += _record_adjoints(tape, found, program.device)
    return found, (arena, work, before, given, after, outputs, tape)


def _record_adjoints(tape: wp.Tape, forward: list[_Recording], device: wp.Device) -> list[_Recording]:
    """Captures the way back by stages; an adjoint recorded between stages goes by the function that recorded it."""
    owner = {i: recorded.name for recorded in forward for i in range(*recorded.launches.indices(len(tape.launches)))}
    found: list[_Recording] = []
    last = len(tape.launches)
    while last > 0:
        name = owner.get(last - 1) or _recorder(tape.launches[last - 1])
        first = last - 1
        while first > 0 and owner.get(first - 1) == name:
            first -= 1
        part = wp.Tape()
        part.launches = tape.launches[first:last]
        found.append(_Recording(name + ADJOINT, capture(device, part.backward), slice(first, last)))
        last = first
    return found


def _recorder(launch: Any) -> str:
    """Name of what put a launch on the tape: a kernel, or the function a recorded adjoint was defined in."""
    if not callable(launch):
        return f"step.{launch[0].key}"
    return ".".join([*launch.__module__.split(".")[1:], launch.__qualname__.split(".")[0]])


def _arrays(
    kind: str,
    fields: tuple[Field, ...],
    values: Mapping[str, Any],
    program: Program,
    *,
    required: bool,
    gradients: bool,
) -> Arrays:
    known = {f.name: f for f in fields}
    for name in values:
        if name not in known:
            raise unknown_name(kind, name, known)
    arrays = {}
    for name, f in known.items():
        if required and name not in values:
            raise InputError(f"{kind} {name!r} is missing; give an array of shape {f.shape}")
        array = wp.zeros(f.shape, dtype=f.dtype, device=program.device, requires_grad=gradients and f.differentiable)
        if name in values:
            value = values[name]
            numbers = value.numpy() if isinstance(value, wp.array) else np.asarray(value)
            array.assign(np.ascontiguousarray(np.broadcast_to(numbers, array.numpy().shape), array.numpy().dtype))
        arrays[name] = array
    return Arrays(kind, arrays)
