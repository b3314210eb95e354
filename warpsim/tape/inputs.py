"""Inputs of every step: from arrays, or made segment by segment so that a long rollout needs no array of its length."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol, runtime_checkable

import warp as wp

from warpsim.core.errors import InputError, unknown_name
from warpsim.tape import frames
from warpsim.tape.program import Arrays, Program


@runtime_checkable
class InputProvider(Protocol):
    """Makes the inputs of any range of steps, always the same for the same step, and takes their adjoints.

    On several threads the calls come one at a time, each for a group of worlds.
    """

    def fill(self, start: int, worlds: range, inputs: Arrays) -> None:
        """Writes the inputs of steps `start` …: each array is (steps, worlds, …) and zero before."""

    def accumulate(self, start: int, worlds: range, adjoints: Arrays) -> None:
        """Takes the adjoints of those inputs, last range of steps first.

        For the same bits whatever the segment length, add steps one by one, last first, into the result.
        """


@runtime_checkable
class ResumableProvider(InputProvider, Protocol):
    """A provider whose sums over segments can be saved and restored; needed for a pass that survives being killed."""

    def sums(self, worlds: range) -> Mapping[str, wp.array]:
        """Views of all arrays that `accumulate` adds to, for these worlds."""


class Feed(Protocol):
    """The inputs of one group of worlds, as the sweep asks for them."""

    names: Collection[str]
    """Fields given as arrays, whose gradients are arrays too."""

    def fill(self, step: int, count: int, frame: int, inputs: frames.Blocks) -> None:
        """Writes the inputs of `count` steps from `step` on to frames `frame` …."""

    def collect(self, step: int, count: int, adjoints: frames.Blocks, gradients: frames.Blocks) -> None:
        """Takes the adjoints of `count` steps from `step` on, in frames 0 …; `gradients` are those of the `names`."""

    def sums(self) -> Mapping[str, wp.array]:
        """What accumulates over segments, apart from frames of gradients."""


class ArrayFeed:
    """Inputs from arrays over all steps; fields that were not given stay zero."""

    def __init__(self, values: frames.Blocks) -> None:
        """Takes (steps, worlds, …) blocks."""
        self._values = values
        self.names: Collection[str] = values.keys()

    def fill(self, step: int, count: int, frame: int, inputs: frames.Blocks) -> None:
        """Copies frames of the arrays."""
        for name, target in inputs.items():
            value = self._values.get(name)
            if value is not None:
                target.copy_from(frame, value, step, count)
            else:
                target.zero(frame, count)

    def collect(self, step: int, count: int, adjoints: frames.Blocks, gradients: frames.Blocks) -> None:
        """Copies frames to the gradients."""
        for name, block in gradients.items():
            block.copy_from(step, adjoints[name], 0, count)

    def sums(self) -> Mapping[str, wp.array]:
        """Nothing: each frame is written once."""
        return {}


_REMEMBERED = 64
"""Views of frames that are handed to a provider again as the same objects."""


class ProviderFeed:
    """Inputs from a provider."""

    names: Collection[str] = ()

    def __init__(self, provider: InputProvider, worlds: range, guard: Callable[[Callable], Callable]) -> None:
        """Names the worlds of this group; `guard` makes a function safe to be called from several threads."""
        self._provider = provider
        self._fill = guard(provider.fill)
        self._accumulate = guard(provider.accumulate)
        self._worlds = worlds
        self._views: dict[tuple[int, int, int], Arrays] = {}

    def fill(self, step: int, count: int, frame: int, inputs: frames.Blocks) -> None:
        """Lets the provider write into the slots, which are zero when it is called."""
        for block in inputs.values():
            block.zero(frame, count)
        self._fill(step, self._worlds, self._view(inputs, frame, count))

    def collect(self, step: int, count: int, adjoints: frames.Blocks, gradients: frames.Blocks) -> None:
        """Hands the adjoints to the provider."""
        self._accumulate(step, self._worlds, self._view(adjoints, 0, count))

    def _view(self, blocks: frames.Blocks, frame: int, count: int) -> Arrays:
        """Frames `frame` … of all blocks; the same objects for the same frames: a provider can recognize them."""
        key = (id(blocks), frame, count)
        if len(self._views) > _REMEMBERED:  # of a run that is advanced step by step
            self._views.clear()
        if key not in self._views:
            views = {name: block.array[frame : frame + count] for name, block in blocks.items()}
            self._views[key] = Arrays("input", views)
        return self._views[key]

    def sums(self) -> Mapping[str, wp.array]:
        """What the provider adds to."""
        if not isinstance(self._provider, ResumableProvider):
            raise InputError(
                f"{type(self._provider).__name__} has no `sums`, so its gradient cannot be saved and resumed"
            )
        return self._provider.sums(self._worlds)


def adopt_arrays(program: Program, inputs: Mapping[str, Any], steps: int) -> frames.Blocks:
    """Checks arrays given by a caller: (steps, worlds, …) each."""
    fields = {f.name: f for f in program.inputs}
    for name in inputs:
        if name not in fields:
            raise unknown_name("input", name, fields)
    return {
        name: frames.adopt(f"input {name!r}", value, fields[name], steps, program.device)
        for name, value in inputs.items()
    }
