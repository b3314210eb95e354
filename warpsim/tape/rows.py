"""Blocks of rows: one array per field whose leading axis counts steps, slots or checkpoints.

Copies between blocks move whole ranges of rows at once. On the CPU they go through NumPy views (1 µs a call, and the
copy runs outside the interpreter lock), elsewhere through `wp.copy`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import warp as wp

from warpsim.errors import InputError, unknown_name
from warpsim.tape.dtypes import is_real
from warpsim.tape.program import Arrays, Field


class Block:
    """An array of shape (rows, *field shape).

    Attributes:
        array: The array.
        host: Its NumPy view when it lies in host memory.
        real: Whether it holds floating-point numbers.
    """

    __slots__ = ("array", "host", "real")

    def __init__(self, array: wp.array, host: np.ndarray | None = None) -> None:
        """Wraps an array; `host` overrides the NumPy view made from it."""
        self.array = array
        self.real = is_real(array.dtype)
        self.host = host if host is not None or not array.device.is_cpu else array.numpy()

    @property
    def nbytes(self) -> int:
        """Bytes of the whole block."""
        return self.array.size * wp.types.type_size_in_bytes(self.array.dtype)

    def worlds(self, first: int, last: int) -> Block:
        """The same rows restricted to worlds `first` … `last` - 1."""
        if first == 0 and last == self.array.shape[1]:
            return self
        return Block(self.array[:, first:last], None if self.host is None else self.host[:, first:last])

    def copy_from(self, row: int, source: Block, source_row: int, count: int, stride: int = 1) -> None:
        """Copies `count` rows of `source`, `stride` apart, to rows `row` … of this block."""
        end = source_row + (count - 1) * stride + 1
        if self.host is not None and source.host is not None:
            self.host[row : row + count] = source.host[source_row:end:stride]
        elif count:
            wp.copy(self.array[row : row + count], source.array[source_row:end:stride])

    def repeat_from(self, row: int, source: Block, count: int) -> None:
        """Copies row 0 of `source` to `count` rows from `row` on."""
        if self.host is not None and source.host is not None:
            self.host[row : row + count] = source.host[:1]
            return
        for target in range(row, row + count):
            self.copy_from(target, source, 0, 1)

    def zero(self, row: int, count: int) -> None:
        """Sets `count` rows to zero."""
        if self.host is not None:
            self.host[row : row + count] = 0
        elif count:
            self.array[row : row + count].zero_()

    def read(self, row: int | slice) -> np.ndarray:
        """One row, or a range of rows, in host memory: a view on the CPU, a copy elsewhere."""
        return self.host[row] if self.host is not None else self.array[row].numpy()


Blocks = dict[str, Block]
"""Blocks by field name."""


def allocate(fields: Iterable[Field], rows: int, device: wp.Device, *, pinned: bool = False) -> Blocks:
    """Zeroed blocks of `rows` rows for each field."""
    return {f.name: Block(wp.zeros((rows, *f.shape), dtype=f.dtype, device=device, pinned=pinned)) for f in fields}


def differentiable(fields: Iterable[Field]) -> tuple[Field, ...]:
    """Those fields that have an adjoint."""
    return tuple(f for f in fields if f.differentiable)


def row_bytes(fields: Iterable[Field]) -> int:
    """Bytes of one row of all fields."""
    return sum(f.nbytes for f in fields)


def row_views(kind: str, blocks: Blocks, adjoints: Blocks, row: int) -> Arrays:
    """Row `row` of each block as the arrays handed to a step, with gradients where `adjoints` has the field."""
    views = {}
    for name, block in blocks.items():
        view = block.array[row]
        if name in adjoints:
            view.grad = adjoints[name].array[row]
        views[name] = view
    return Arrays(kind, views)


def adopt(what: str, value: Any, field: Field, rows: int | None, device: wp.Device) -> Block:
    """A block over the caller's data: the same memory when dtype, device and layout allow, a copy otherwise.

    Args:
        what: Named in errors, e.g. "input 'torque'".
        value: Warp array, NumPy array or anything NumPy reads.
        field: What one row must look like.
        rows: Number of rows, or None for the value of a single row without the leading axis.
        device: Where the block must live.
    """
    shape = field.shape if rows is None else (rows, *field.shape)
    if not isinstance(value, wp.array):
        value = wp.array(np.asarray(value), dtype=field.dtype, device=device, copy=False)
    if tuple(value.shape) != shape or not wp.types.types_equal(value.dtype, field.dtype):
        raise InputError(
            f"{what} has shape {tuple(value.shape)} of {wp.types.type_repr(value.dtype)}; needed: {shape} of "
            f"{wp.types.type_repr(field.dtype)}" + (", axis 0 the step, axis 1 the world" if rows is not None else "")
        )
    value = value.to(device).contiguous()
    return Block(value if rows is not None else value.reshape((1, *shape)))


def load_row(what: str, values: Mapping[str, Any], fields: Iterable[Field], blocks: Blocks, device: wp.Device) -> None:
    """Copies one full set of field values into row 0 of `blocks`; every field must be given.

    Args:
        what: Kind of the values for errors, e.g. "state".
        values: By field name; `None` values are not allowed.
        fields: All fields that must be there.
        blocks: Where the values go.
        device: Device of the program.
    """
    fields = tuple(fields)
    known = [f.name for f in fields]
    for name in values:
        if name not in known:
            raise unknown_name(what, name, known)
    for field in fields:
        if field.name not in values:
            raise InputError(f"{what} {field.name!r} is missing; give all of: {', '.join(known)}")
        source = adopt(f"{what} {field.name!r}", values[field.name], field, None, device)
        blocks[field.name].copy_from(0, source, 0, 1)
