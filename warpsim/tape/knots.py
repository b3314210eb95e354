"""Long inputs from few values: knots along a rollout, interpolated as steps need them, with their own gradient."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import warp as wp

from warpsim.core.errors import InputError
from warpsim.tape.program import Arrays

_REMEMBERED = 256
"""Recorded launches; a run that is advanced step by step has other frames at every call."""


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
        self._launches: dict[tuple[Any, ...], wp.Launch] = {}

    @staticmethod
    def count(steps: int, every: int, *, hold: bool = False) -> int:
        """How many knots a rollout of `steps` needs."""
        return (steps - 1) // every + (1 if hold else 2)

    def fill(self, start: int, worlds: range, inputs: Arrays) -> None:
        """Interpolates."""
        values = inputs[self.name]
        if self.count(start + values.shape[0], self.every, hold=self.hold) > self.knots.shape[0]:
            raise InputError(f"input {self.name!r} has too few knots for step {start + values.shape[0] - 1}")
        self._launch(_interpolate, [start], self.knots, worlds, values).launch()

    def accumulate(self, start: int, worlds: range, adjoints: Arrays) -> None:
        """Adds to `gradient`, step by step, last first."""
        values = adjoints[self.name]
        first, last = start // self.every, (start + values.shape[0] - 1) // self.every + (0 if self.hold else 1)
        launch = self._launch(_interpolate_adjoint, [start, first], self.gradient, worlds, values)
        launch.set_dim((last - first + 1, *values.shape[1:]))
        launch.launch()

    def _launch(
        self, kernel: wp.Kernel, numbers: list[int], knots: wp.array, worlds: range, values: wp.array
    ) -> wp.Launch:
        """A launch recorded once for each array of values, in which only `numbers` change: quicker than launching."""
        key = (kernel.key, knots.ptr, worlds, values.ptr, values.shape, values.strides)
        if len(self._launches) > _REMEMBERED:
            self._launches.clear()
        if key not in self._launches:
            self._launches[key] = wp.launch(
                kernel,
                dim=values.shape,
                inputs=[*numbers, self.every, self.hold, worlds.start, knots, values],
                device=values.device,
                record_cmd=True,
                record_tape=False,
            )
        for i, number in enumerate(numbers):
            self._launches[key].set_param_at_index(i, number)
        return self._launches[key]

    def sums(self, worlds: range) -> Mapping[str, wp.array]:
        """The gradient of the knots."""
        return {f"knots {self.name}": self.gradient[:, worlds.start : worlds.stop]}


@wp.func
def _position(step: int, every: int, like: Any):
    """How far `step` is from the knot before it, in units of their distance."""
    return type(like)(step % every) / type(like)(every)


@wp.kernel(enable_backward=False)
def _interpolate(
    start: int,
    every: int,
    hold: bool,
    first_world: int,
    knots: wp.array3d(dtype=Any),
    values: wp.array3d(dtype=Any),
):
    frame, w, i = wp.tid()
    j = (start + frame) // every
    value = knots[j, first_world + w, i]
    if not hold:
        t = _position(start + frame, every, value)
        value = (type(t)(1.0) - t) * value + t * knots[j + 1, first_world + w, i]
    values[frame, w, i] = value


@wp.kernel(enable_backward=False)
def _interpolate_adjoint(
    start: int,
    first_knot: int,
    every: int,
    hold: bool,
    first_world: int,
    gradient: wp.array3d(dtype=Any),
    adjoints: wp.array3d(dtype=Any),
):
    k, w, i = wp.tid()
    j = first_knot + k
    total = gradient[j, first_world + w, i]
    # frames of the steps between the knot before and the knot after, which are all that this knot reaches
    begin = wp.max((j - 1) * every - start, 0)
    end = wp.min((j + 1) * every - start, adjoints.shape[0])
    for back in range(end - begin):
        frame = end - 1 - back
        step = start + frame
        weight = type(total)(0.0)
        if step // every == j:
            weight = type(total)(1.0)
            if not hold:
                weight -= _position(step, every, total)
        elif step // every == j - 1 and not hold:
            weight = _position(step, every, total)
        if weight != type(total)(0.0):
            total += weight * adjoints[frame, w, i]
    gradient[j, first_world + w, i] = total


for _scalar in (wp.float32, wp.float64):  # known in advance, so that the module can be compiled before it is used
    wp.overload(_interpolate, {"knots": wp.array3d(dtype=_scalar), "values": wp.array3d(dtype=_scalar)})
    wp.overload(_interpolate_adjoint, {"gradient": wp.array3d(dtype=_scalar), "adjoints": wp.array3d(dtype=_scalar)})
