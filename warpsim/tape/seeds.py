"""Seeds: the derivative of the objective by states and outputs, at every step, at some, or the same at all."""

from __future__ import annotations

import bisect
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import warp as wp

from warpsim.core.errors import InputError, unknown_name
from warpsim.tape import frames
from warpsim.tape.program import Field


@dataclass(frozen=True)
class EveryStep:
    """The same seed at every step, e.g. ones for a running cost."""

    value: Any


class Seed(Protocol):
    """The seeds of one field in one group of worlds."""

    def write(self, target: frames.Block, frame: int, step: int, count: int) -> None:
        """Writes the seeds of `count` steps from `step` on to the zeroed frames of `target` from `frame` on."""

    def worlds(self, worlds: range) -> Seed:
        """The same for a range of worlds."""

    def checksum(self) -> int:
        """CRC-32 of the seeds."""


@dataclass(frozen=True)
class _Dense:
    """A seed for each step."""

    block: frames.Block

    def write(self, target: frames.Block, frame: int, step: int, count: int) -> None:
        target.copy_from(frame, self.block, step, count)

    def worlds(self, worlds: range) -> Seed:
        return _Dense(self.block.worlds(worlds))

    def checksum(self) -> int:
        return zlib.crc32(self.block.array.numpy())


@dataclass(frozen=True)
class _Sparse:
    """Seeds at a few steps, in ascending order."""

    steps: list[int]
    blocks: list[frames.Block]

    def write(self, target: frames.Block, frame: int, step: int, count: int) -> None:
        first, last = bisect.bisect_left(self.steps, step), bisect.bisect_left(self.steps, step + count)
        for i in range(first, last):
            target.copy_from(frame + self.steps[i] - step, self.blocks[i], 0, 1)

    def worlds(self, worlds: range) -> Seed:
        return _Sparse(self.steps, [block.worlds(worlds) for block in self.blocks])

    def checksum(self) -> int:
        parts = (zlib.crc32(block.array.numpy()) for block in self.blocks)
        return zlib.crc32(repr((self.steps, list(parts))).encode())


@dataclass(frozen=True)
class _Constant:
    """The same seed at each step."""

    block: frames.Block

    def write(self, target: frames.Block, frame: int, step: int, count: int) -> None:
        target.repeat_from(frame, self.block, count)

    def worlds(self, worlds: range) -> Seed:
        return _Constant(self.block.worlds(worlds))

    def checksum(self) -> int:
        return zlib.crc32(self.block.array.numpy())


def adopt(
    kind: str, seeds: Mapping[str, Any] | None, fields: Iterable[Field], frame_count: int, device: wp.Device
) -> dict[str, Seed]:
    """Checks the seeds a caller gave and returns them by field.

    Args:
        kind: "state" or "output".
        seeds: By field name: a dense (frames, worlds, …) array, a mapping from step to a (worlds, …) array (negative
            steps count from the end), or `EveryStep` of a (worlds, …) array.
        fields: All fields of that kind.
        frame_count: Number of steps that have the field (N + 1 states, N outputs).
        device: Device of the program.
    """
    known = {f.name: f for f in fields}
    found: dict[str, Seed] = {}
    for name, value in (seeds or {}).items():
        if name not in known:
            raise unknown_name(kind, name, known)
        if not known[name].differentiable:
            raise InputError(f"{kind} {name!r} is not differentiable and cannot be seeded; it is only carried along")
        found[name] = _adopt_one(f"seed of {kind} {name!r}", value, known[name], frame_count, device)
    return found


def _adopt_one(what: str, value: Any, field: Field, frame_count: int, device: wp.Device) -> Seed:
    if isinstance(value, EveryStep):
        return _Constant(frames.adopt(what, value.value, field, None, device))
    if not isinstance(value, Mapping):
        return _Dense(frames.adopt(what, value, field, frame_count, device))
    by_step: dict[int, frames.Block] = {}
    for step, seed in value.items():
        index = int(step) + (frame_count if step < 0 else 0)
        if not 0 <= index < frame_count:
            raise InputError(f"{what}: step {step} is not within 0 … {frame_count - 1}")
        by_step[index] = frames.adopt(f"{what} at step {step}", seed, field, None, device)
    steps = sorted(by_step)
    return _Sparse(steps, [by_step[step] for step in steps])


def checksum(*groups: Mapping[str, Seed]) -> int:
    """CRC-32 of all seeds."""
    return zlib.crc32(repr([[(name, seed.checksum()) for name, seed in group.items()] for group in groups]).encode())
