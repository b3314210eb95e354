"""Memory of one step's intermediates: values in one block per slot, adjoints in one block shared by all slots.

The backward pass visits one slot at a time and needs the adjoints of its intermediates only during that visit. So all
slots share one block of adjoints: it stays in the cache, and one memset clears it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from warpsim.core.errors import InputError
from warpsim.tape.dtypes import fill_real, is_real

_ARRAY_ALIGNMENT = 16
"""Bytes; whole vector loads. Arrays of a small robot are shorter than a cache line, and may share one: one thread works
on a slot at a time, and what it touches has to come from memory or the outer cache again for every slot."""

_SLOT_ALIGNMENT = 64
"""Bytes; a cache line."""


def _aligned(nbytes: int, alignment: int = _ARRAY_ALIGNMENT) -> int:
    return -(-nbytes // alignment) * alignment


@dataclass
class ArenaSize:
    """Bytes of one slot: `accumulators` lie first within `values`; `adjoints` are shared by all slots."""

    accumulators: int = 0
    values: int = 0
    adjoints: int = 0

    @property
    def slot(self) -> int:
        """Bytes from one slot's values to the next one's."""
        return _aligned(self.values, _SLOT_ALIGNMENT)


class Arena:
    """Hands out the arrays of one slot's intermediates."""

    def __init__(
        self, device: wp.Device, size: ArenaSize, values: wp.array | None, adjoints: wp.array | None, offset: int = 0
    ) -> None:
        """Opens one slot's share of the blocks; used by the engine, see `measure` and `Arenas`.

        Args:
            device: Where the blocks live.
            size: What all `array` calls will ask for in total, or an empty size that is counted up when measuring.
            values: Block of bytes, None when measuring.
            adjoints: Block of bytes shared by all slots, None for arrays without gradients.
            offset: Start of this slot in `values`, bytes.
        """
        self.device = device
        self.size = size
        self._values = values
        self._adjoints = adjoints
        self._accumulator_cursor = offset
        self._value_cursor = offset + size.accumulators
        self._adjoint_cursor = 0
        self._accumulator_end = offset + size.accumulators
        self._value_end = offset + size.values
        self._views: list[wp.array] = []

    def array(
        self, shape: int | tuple[int, ...], dtype: Any, *, differentiable: bool = True, accumulator: bool = False
    ) -> wp.array:
        """One array of intermediates.

        Args:
            shape: Its shape.
            dtype: Its Warp data type.
            differentiable: Whether it gets a gradient when the step is recorded. Adjoints are zero when the backward
                pass of a step begins.
            accumulator: Whether its value is zeroed before each step (for `+=` in kernels).
        """
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        nbytes = _aligned(math.prod(shape) * wp.types.type_size_in_bytes(dtype))
        if self._values is None:
            return self._measured(shape, dtype, nbytes, differentiable, accumulator)
        gradient = None
        if differentiable and self._adjoints is not None:
            gradient = self._view(self._adjoints, self._adjoint_cursor, shape, dtype)
            self._adjoint_cursor += nbytes
        if accumulator:
            start, self._accumulator_cursor = self._accumulator_cursor, self._accumulator_cursor + nbytes
        else:
            start, self._value_cursor = self._value_cursor, self._value_cursor + nbytes
        too_many = self._accumulator_cursor > self._accumulator_end or self._value_cursor > self._value_end
        if too_many or self._adjoint_cursor > self.size.adjoints:
            raise InputError(
                "make_work asked for more than it did the first time; it must ask for the same arrays always"
            )
        self._views.append(self._view(self._values, start, shape, dtype, gradient))
        return self._views[-1]

    def _measured(
        self, shape: tuple[int, ...], dtype: Any, nbytes: int, differentiable: bool, accumulator: bool
    ) -> wp.array:
        self.size.values += nbytes
        self.size.accumulators += nbytes if accumulator else 0
        self.size.adjoints += nbytes if differentiable else 0
        return wp.zeros(shape, dtype=dtype, device=self.device, requires_grad=differentiable)

    def _view(
        self, block: wp.array, start: int, shape: tuple[int, ...], dtype: Any, gradient: wp.array | None = None
    ) -> wp.array:
        view = wp.array(ptr=block.ptr + start, shape=shape, dtype=dtype, device=self.device, grad=gradient)
        view._ref = (
            block  # as in Warp's own views: keeps the memory alive, and a captured graph knows one region, not many
        )
        return view

    def fill(self, value: float) -> None:
        """Fills all values of a floating-point type, to find out who reads them before writing."""
        for view in self._views:
            fill_real(view, value)

    def finite(self) -> bool:
        """Whether all values of a floating-point type are finite."""
        return all(np.isfinite(view.numpy()).all() for view in self._views if is_real(view.dtype))

    def zero_accumulators(self) -> None:
        """Clears all accumulators of this slot, one memset."""
        if self.size.accumulators and self._values is not None:
            start = self._accumulator_end - self.size.accumulators
            self._values[start : self._accumulator_end].zero_()

    def zero_adjoints(self) -> None:
        """Clears the adjoints of all intermediates, one memset."""
        if self._adjoints is not None and self.size.adjoints:
            self._adjoints.zero_()


def measure(program: Any) -> ArenaSize:
    """What one step's intermediates need, found by asking `program.make_work` once."""
    size = ArenaSize()
    program.make_work(Arena(program.device, size, None, None))
    return size


class Arenas(Sequence[Arena]):
    """The arenas of some slots, each opened when asked for, with nothing handed out yet."""

    def __init__(self, device: wp.Device, size: ArenaSize, slots: int, *, gradients: bool) -> None:
        """Allocates one block of values and (if `gradients`) one of adjoints that all slots share."""
        self._device, self._size, self._slots = device, size, slots
        self._values = wp.zeros(max(slots * size.slot, 1), dtype=wp.uint8, device=device)
        self._adjoints = wp.zeros(max(size.adjoints, 1), dtype=wp.uint8, device=device) if gradients else None

    def __len__(self) -> int:
        return self._slots

    def __getitem__(self, slot: Any) -> Any:  # one slot; slices are not needed
        place = range(self._slots)[slot] * self._size.slot
        return Arena(self._device, self._size, self._values, self._adjoints, place)
