"""Inputs of every step: from arrays, or made segment by segment so that a long rollout needs no array of its length."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol, runtime_checkable

import warp as wp

from warpsim.errors import InputError, unknown_name
from warpsim.tape import rows
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

    def fill(self, step: int, count: int, row: int, inputs: rows.Blocks) -> None:
        """Writes the inputs of `count` steps from `step` on to rows `row` …."""

    def collect(self, step: int, count: int, adjoints: rows.Blocks, gradients: rows.Blocks) -> None:
        """Takes the adjoints of `count` steps from `step` on, in rows 0 …; `gradients` are (steps, …) for the `names`."""

    def sums(self) -> Mapping[str, wp.array]:
        """What accumulates over segments, apart from rows of gradients."""


class ArrayFeed:
    """Inputs from arrays over all steps; fields that were not given stay zero."""

    def __init__(self, values: rows.Blocks) -> None:
        """Takes (steps, worlds, …) blocks."""
        self._values = values
        self.names: Collection[str] = values.keys()

    def fill(self, step: int, count: int, row: int, inputs: rows.Blocks) -> None:
        """Copies rows of the arrays."""
        for name, target in inputs.items():
            if name in self._values:
                target.copy_from(row, self._values[name], step, count)
            else:
                target.zero(row, count)

    def collect(self, step: int, count: int, adjoints: rows.Blocks, gradients: rows.Blocks) -> None:
        """Copies rows to the gradients."""
        for name, block in gradients.items():
            block.copy_from(step, adjoints[name], 0, count)

    def sums(self) -> Mapping[str, wp.array]:
        """Nothing: each row is written once."""
        return {}


class ProviderFeed:
    """Inputs from a provider."""

    names: Collection[str] = ()

    def __init__(self, provider: InputProvider, worlds: range, guard: Callable[[Callable], Callable]) -> None:
        """Names the worlds of this group; `guard` makes a function safe to be called from several threads."""
        self._provider = provider
        self._fill = guard(provider.fill)
        self._accumulate = guard(provider.accumulate)
        self._worlds = worlds

    def fill(self, step: int, count: int, row: int, inputs: rows.Blocks) -> None:
        """Lets the provider write into the slots, which are zero when it is called."""
        for block in inputs.values():
            block.zero(row, count)
        views = {name: block.array[row : row + count] for name, block in inputs.items()}
        self._fill(step, self._worlds, Arrays("input", views))

    def collect(self, step: int, count: int, adjoints: rows.Blocks, gradients: rows.Blocks) -> None:
        """Hands the adjoints to the provider."""
        views = {name: block.array[:count] for name, block in adjoints.items()}
        self._accumulate(step, self._worlds, Arrays("input", views))

    def sums(self) -> Mapping[str, wp.array]:
        """What the provider adds to."""
        if not isinstance(self._provider, ResumableProvider):
            raise InputError(
                f"{type(self._provider).__name__} has no `sums`, so its gradient cannot be saved and resumed"
            )
        return self._provider.sums(self._worlds)


def adopt_arrays(program: Program, inputs: Mapping[str, Any], steps: int) -> rows.Blocks:
    """Checks arrays given by a caller: (steps, worlds, …) each."""
    fields = {f.name: f for f in program.inputs}
    for name in inputs:
        if name not in fields:
            raise unknown_name("input", name, fields)
    return {
        name: rows.adopt(f"input {name!r}", value, fields[name], steps, program.device)
        for name, value in inputs.items()
    }


class KnotInputs:
    """One input interpolated between knots `every` steps apart, linearly or held; all other inputs are zero.

    Attributes:
        knots: (knots, worlds, …) values; knot j is the value at step j·every.
        gradient: Same shape; adjoints are added to it.
    """

    def __init__(self, name: str, knots: wp.array, every: int, *, hold: bool = False) -> None:
        """Makes an input from few values.

        Args:
            name: The input field.
            knots: (knots, worlds, columns) array of a scalar type.
            every: Steps between knots.
            hold: Keep each knot's value until the next, instead of interpolating.
        """
        if knots.ndim != 3 or every < 1:
            raise InputError(f"knots of input {name!r} must be (knots, worlds, columns), at least one step apart")
        self.name = name
        self.knots = knots
        self.every = every
        self.hold = hold
        self.gradient = wp.zeros_like(knots, requires_grad=False)

    @staticmethod
    def count(steps: int, every: int, *, hold: bool = False) -> int:
        """How many knots a rollout of `steps` needs."""
        return (steps - 1) // every + (1 if hold else 2)

    def fill(self, start: int, worlds: range, inputs: Arrays) -> None:
        """Interpolates."""
        values = inputs[self.name]
        if self.count(start + values.shape[0], self.every, hold=self.hold) > self.knots.shape[0]:
            raise InputError(f"input {self.name!r} has too few knots for step {start + values.shape[0] - 1}")
        wp.launch(
            _interpolate,
            dim=values.shape,
            inputs=[self.knots, self.every, self.hold, start, worlds.start],
            outputs=[values],
            device=values.device,
            record_tape=False,
        )

    def accumulate(self, start: int, worlds: range, adjoints: Arrays) -> None:
        """Adds to `gradient`, step by step, last first."""
        values = adjoints[self.name]
        first, last = start // self.every, (start + values.shape[0] - 1) // self.every + (0 if self.hold else 1)
        wp.launch(
            _interpolate_adjoint,
            dim=(last - first + 1, *values.shape[1:]),
            inputs=[self.every, self.hold, start, worlds.start, first, values],
            outputs=[self.gradient],
            device=values.device,
            record_tape=False,
        )

    def sums(self, worlds: range) -> Mapping[str, wp.array]:
        """The gradient of the knots."""
        return {f"knots {self.name}": self.gradient[:, worlds.start : worlds.stop]}


@wp.func
def _position(step: int, every: int, like: Any):
    """How far `step` is from the knot before it, in units of their distance."""
    return type(like)(step % every) / type(like)(every)


@wp.kernel(enable_backward=False)
def _interpolate(
    knots: wp.array3d(dtype=Any), every: int, hold: bool, start: int, first_world: int, values: wp.array3d(dtype=Any)
):
    row, w, i = wp.tid()
    j = (start + row) // every
    value = knots[j, first_world + w, i]
    if not hold:
        t = _position(start + row, every, value)
        value = (type(t)(1.0) - t) * value + t * knots[j + 1, first_world + w, i]
    values[row, w, i] = value


@wp.kernel(enable_backward=False)
def _interpolate_adjoint(
    every: int,
    hold: bool,
    start: int,
    first_world: int,
    first_knot: int,
    adjoints: wp.array3d(dtype=Any),
    gradient: wp.array3d(dtype=Any),
):
    k, w, i = wp.tid()
    j = first_knot + k
    total = gradient[j, first_world + w, i]
    for back in range(adjoints.shape[0]):
        row = adjoints.shape[0] - 1 - back
        step = start + row
        weight = type(total)(0.0)
        if step // every == j:
            weight = type(total)(1.0)
            if not hold:
                weight -= _position(step, every, total)
        elif step // every == j - 1 and not hold:
            weight = _position(step, every, total)
        if weight != type(total)(0.0):
            total += weight * adjoints[row, w, i]
    gradient[j, first_world + w, i] = total
