"""Adjoints on the way back: their size, clipping, and the place where numbers stop being finite."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
import warp as wp

from warpsim.core.errors import SimulationError
from warpsim.core.kernel_lock import KERNELS
from warpsim.core.stages import observe
from warpsim.tape import frames
from warpsim.tape.dtypes import is_real
from warpsim.tape.program import Arrays, Shortage
from warpsim.tape.segment import Segment


@dataclass(frozen=True)
class SegmentReport:
    """What a per-segment hook is told on the way back.

    Attributes:
        segment: Index of the segment just differentiated.
        start: Its first step.
        count: Its number of steps.
        worlds: The worlds it covers (all, unless they are split into groups).
        adjoint_norm: Norm of the adjoint of the state at `start`, over those worlds.
        adjoint: That adjoint by field, (worlds, …); a hook may change it in place.
    """

    segment: int
    start: int
    count: int
    worlds: range
    adjoint_norm: float
    adjoint: Arrays


class NonFiniteError(SimulationError):
    """Numbers that are no longer finite; names the step, the world, the array and the kernel.

    Attributes:
        step: The first state, or adjoint of a state, that is not finite; −1 if it was none.
        shortage: What the step lacked, if that was the reason.
        world: Where; −1 if it was no single one.
        run: From a forward pass: the `Run` as far as it came, `run.step` steps.
    """

    def __init__(self, message: str, step: int = -1, shortage: Shortage | None = None, world: int = -1) -> None:
        """Takes the message, and the step where there is one."""
        super().__init__(message)
        self.world = world
        self.step = step
        self.shortage = shortage
        self.run: Any = None


def norm(packed: frames.Packed, frame: int) -> float:
    """Euclidean norm of one frame over all fields and worlds."""
    if packed.numbers is not None:
        values = [packed.numbers[frame]]
    else:
        values = [block.read(frame).ravel() for block in packed.fields.values()]
    squares = sum(float(np.dot(value, value)) for value in values)
    if math.isfinite(squares):
        return math.sqrt(squares)
    largest = max(float(np.abs(value).max()) for value in values if value.size)
    return largest * math.sqrt(sum(float(np.square(value / largest).sum()) for value in values))


def clip(blocks: frames.Blocks, frame: int, largest: float) -> None:
    """Scales one frame, world by world, so that no world's norm exceeds `largest`."""
    squares: Any = 0.0
    for block in blocks.values():
        value = block.read(frame)
        squares = squares + np.square(value).reshape(value.shape[0], -1).sum(axis=1)
    scale = largest / np.maximum(np.sqrt(squares), largest)
    if np.all(scale == 1.0):
        return
    for block in blocks.values():
        value = block.read(frame)
        block.write(frame, value * scale.reshape(-1, *[1] * (value.ndim - 1)).astype(value.dtype))


def finite(packed: frames.Packed, frame: int | slice) -> bool:
    """Whether all real numbers in one frame, or in a range of frames, are finite."""
    if packed.numbers is not None:
        return _all_finite(packed.numbers[frame].ravel())
    return all(_all_finite(block.read(frame).ravel()) for block in packed.fields.values() if block.real)


_PIECE = 8192
"""Numbers per dot product: BLAS wakes its threads for longer ones, which costs more than the product."""


def _all_finite(value: np.ndarray) -> bool:
    # a dot product is the quickest way to touch all numbers; only if it overflows is a closer look needed
    pieces = (value[first : first + _PIECE] for first in range(0, len(value), _PIECE))
    return all(math.isfinite(np.dot(piece, piece)) or bool(np.isfinite(piece).all()) for piece in pieces)


def first_bad_state(segment: Segment, count: int) -> int:
    """The first of frames 0 … `count` of the states that is not finite, where one is known to be."""
    return next(frame for frame in range(count + 1) if _first_bad(segment.states.fields, frame) is not None)


def raise_for_state(segment: Segment, start: int, frame: int, first_world: int) -> NoReturn:
    """Raises for a non-finite state of a segment that has just been stepped.

    Args:
        segment: Holds finite states in its frames 0 … `frame` - 1.
        start: Step of slot 0.
        frame: The first that is not finite.
        first_world: World that comes first in this segment's arrays.
    """
    place = _first_bad(segment.states.fields, frame)
    assert place is not None
    name, world = place
    where = f"state {name!r} is not finite at step {start + frame}, world {first_world + world}"
    if frame == 0:
        raise NonFiniteError(where, start, world=first_world + world)
    with KERNELS:
        again = segment.one_slot()  # where no numbers of the failed step would accuse the first stage
        again.copy_slot(segment, frame - 1)
        blame = _blame_stage(again, 0)
        reason = again.explanation(0, world)
        shortage = _in_batch(again.shortage(0), first_world)
    told = f"{where}: {reason}" if reason else f"{where}{blame}"
    raise NonFiniteError(told, start + frame, shortage, first_world + world)


def raise_for_adjoint(segment: Segment, start: int, count: int, first_world: int) -> None:
    """Raises for the first non-finite adjoint of a segment: a seed, or the first one met going backwards.

    Args:
        segment: Holds the segment's recorded steps, and its seeds, written again.
        start: Step of slot 0.
        count: Steps in the segment.
        first_world: World that comes first in this segment's arrays.
    """
    adjoints = segment.adjoints
    _raise_for_seed(segment, start, count, first_world)
    before = segment.one_slot()  # the last slot on the way back, as it was before its adjoint ran
    for slot in reversed(range(count)):
        before.copy_slot(segment, slot)
        segment.adjoint_steps(slot, 1)()
        for kind, packed in (("state", adjoints.states), ("input", adjoints.inputs)):
            place = _first_bad(packed.fields, slot)
            if place is not None:
                name, world = place
                with KERNELS:
                    tape = before.eager_tape(0)
                    shortage, reason = before.shortage(0), before.explanation(0, world)
                    if reason is None:
                        reason = "clip adjoints, shorten the horizon, or seed and inspect that step"
                        reason = f"{_blame(_guilty_launch(reversed(tape.launches), forward=False))}; {reason}"
                    else:
                        reason = f": {reason}"
                raise NonFiniteError(
                    f"the adjoint of {kind} {name!r} is not finite at step {start + slot}, world {first_world + world}"
                    f"{reason}",
                    start + slot,
                    _in_batch(shortage, first_world),
                    first_world + world,
                )


def _in_batch(shortage: Shortage | None, first_world: int) -> Shortage | None:
    """The same, with the world counted in the whole batch."""
    return None if shortage is None else replace(shortage, world=first_world + shortage.world)


def _raise_for_seed(segment: Segment, start: int, count: int, first_world: int) -> None:
    """Raises if what the caller's loss hands to the states and outputs of a segment is not finite."""
    for kind, packed, slots in (
        ("state", segment.adjoints.states, count + 1),
        ("output", segment.adjoints.outputs, count),
    ):
        for slot in range(slots):
            place = _first_bad(packed.fields, slot)
            if place is not None:
                name, world = place
                raise NonFiniteError(
                    f"the derivative of the loss by {kind} {name!r} at step {start + slot}, world "
                    f"{first_world + world}, is not finite before any step is differentiated; look at the loss itself "
                    "(a square root or a norm at zero?)",
                    start + slot,
                )


def _blame_stage(segment: Segment, slot: int) -> str:
    """Steps a slot again, eagerly, and names the first stage, or else kernel, after which numbers are not finite."""
    guilty: list[str] = []

    def watch(name: str, run: Callable[[], None]) -> None:
        run()
        if not guilty and not segment.finite_work(slot):
            guilty.append(name)

    with observe(watch):
        tape = segment.eager_tape(slot)
    if guilty:
        return f" (first seen in stage {guilty[0]!r})"
    return _blame(_guilty_launch(tape.launches, forward=True))


def _blame(kernel: str | None) -> str:
    return f" (first seen in kernel {kernel!r})" if kernel else ""


def _first_bad(blocks: frames.Blocks, frame: int) -> tuple[str, int] | None:
    for name, block in blocks.items():
        if not block.real:
            continue
        bad = ~np.isfinite(block.read(frame))
        if bad.any():
            return name, int(np.argwhere(bad)[0][0])
    return None


def _guilty_launch(launches: Iterable[Any], *, forward: bool) -> str | None:
    """Name of the first kernel that produced a non-finite number; backwards, each adjoint is run on the way."""
    guilty = None
    for launch in launches:
        single = wp.Tape()
        single.launches = [launch]
        if not forward:
            single.backward()
        if guilty is not None:
            continue
        arrays = () if callable(launch) else (launch[4] if forward else launch[3])
        values = [a if forward else a.grad for a in arrays if isinstance(a, wp.array)]
        if any(is_real(v.dtype) and not np.isfinite(v.numpy()).all() for v in values if v is not None):
            guilty = launch[0].key
    return guilty
