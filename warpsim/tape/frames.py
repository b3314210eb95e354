"""Blocks of frames: one array per field whose leading axis counts steps, slots or checkpoints.

Copies between blocks move whole ranges of frames at once. On the CPU they go through NumPy views (1 µs a call, and the
copy runs outside the interpreter lock), elsewhere through `wp.copy`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import warp as wp

from warpsim.core.errors import InputError, unknown_name
from warpsim.core.host_path import on_host
from warpsim.tape.dtypes import is_real, scalar_type, value_shape
from warpsim.tape.program import Arrays, Field


class Block:
    """An array of shape (frames, *field shape).

    Attributes:
        host: Its NumPy view when it lies in host memory.
        real: Whether it holds floating-point numbers.
    """

    __slots__ = ("_array", "_dtype", "host", "real")

    def __init__(self, array: wp.array, host: np.ndarray | None = None) -> None:
        """Wraps an array; `host` overrides the NumPy view made from it."""
        self._array: wp.array | None = array
        self._dtype = array.dtype
        self.real = is_real(array.dtype)
        self.host = host if host is not None or not on_host(array.device) else array.numpy()

    @classmethod
    def over(cls, host: np.ndarray, dtype: Any) -> Block:
        """A block over NumPy's memory on the CPU; Warp's array, which takes longer to make, follows if asked for."""
        block = cls.__new__(cls)
        block._array, block._dtype, block.real, block.host = None, dtype, is_real(dtype), host
        return block

    @property
    def array(self) -> wp.array:
        """The array."""
        if self._array is None:
            assert self.host is not None
            self._array = _array_over(self.host, self._dtype)
        return self._array

    @property
    def nbytes(self) -> int:
        """Bytes of the whole block."""
        return self.array.size * wp.types.type_size_in_bytes(self.array.dtype)

    def worlds(self, worlds: range) -> Block:
        """The same frames restricted to a range of worlds."""
        part = slice(worlds.start, worlds.stop)
        if self.host is not None:
            if worlds == range(self.host.shape[1]):
                return self
            if self._array is None:
                return Block.over(self.host[:, part], self._dtype)
            return Block(self._array[:, part], self.host[:, part])
        return self if worlds == range(self.array.shape[1]) else Block(self.array[:, part])

    def copy_from(self, frame: int, source: Block, source_frame: int, count: int, stride: int = 1) -> None:
        """Copies `count` frames of `source`, `stride` apart, to frames `frame` … of this block."""
        end = source_frame + (count - 1) * stride + 1
        if self.host is not None and source.host is not None:
            self.host[frame : frame + count] = source.host[source_frame:end:stride]
        elif count and self.array.size:  # Warp cannot slice an array without entries
            wp.copy(self.array[frame : frame + count], source.array[source_frame:end:stride])

    def repeat_from(self, frame: int, source: Block, count: int) -> None:
        """Copies frame 0 of `source` to `count` frames from `frame` on."""
        if self.host is not None and source.host is not None:
            self.host[frame : frame + count] = source.host[:1]
            return
        for target in range(frame, frame + count):
            self.copy_from(target, source, 0, 1)

    def zero(self, frame: int, count: int) -> None:
        """Sets `count` frames to zero."""
        if self.host is not None:
            self.host[frame : frame + count] = 0
        elif count and self.array.size:
            self.array[frame : frame + count].zero_()

    def read(self, frame: int | slice) -> np.ndarray:
        """One frame, or a range of frames, in host memory: a view on the CPU, a copy elsewhere."""
        if self.host is not None:
            return self.host[frame]
        return self.array[frame].numpy() if self.array.size else self.array.numpy()[frame]

    def write(self, frame: int, value: np.ndarray) -> None:
        """Sets one frame from host memory."""
        if self.host is not None:
            self.host[frame] = value
        elif self.array.size:
            self.array[frame].assign(value)


Blocks = dict[str, Block]
"""Blocks by field name."""

_FIELD_ALIGNMENT = 16
_ROW_ALIGNMENT = 64
"""Bytes: vector loads within a frame; cache lines between frames, but for frames of half a line or less."""


class Packed:
    """Frames of several fields side by side, so that a whole frame is copied, and all frames cleared, in one go.

    Attributes:
        fields: One block per field, each a view with the stride of a frame.
        data: The same frames as bytes, (frames, bytes per frame).
        numbers: The same frames as real numbers, zeros between the fields; None unless they lie in host memory and all
            fields are of one real type.
    """

    def __init__(self, fields: Iterable[Field], frames: int, memory: wp.array, offset: int = 0) -> None:
        """Lays the fields out in `memory`, an array of bytes, from `offset` on."""
        fields = tuple(fields)
        stride = packed_bytes(fields)
        self.data = Block(_view(memory, offset, (frames, stride), (stride, 1), wp.uint8))
        self.fields: Blocks = {}
        for field in fields:
            inner = _contiguous_strides(field)
            shape, strides = (frames, *field.shape), (stride, *inner)
            self.fields[field.name] = Block(_view(memory, offset, shape, strides, field.dtype))
            offset += _round_up(field.nbytes, _FIELD_ALIGNMENT)
        kinds = {scalar_type(field.dtype) for field in fields}
        self.numbers: np.ndarray | None = None
        if self.data.host is not None and len(kinds) == 1 and is_real(kind := kinds.pop()):
            self.numbers = self.data.host.view(wp.dtype_to_numpy(kind))

    @staticmethod
    def allocate(fields: Iterable[Field], frames: int, device: wp.Device, *, pinned: bool = False) -> Packed:
        """Zeroed frames."""
        fields = tuple(fields)
        shape = (max(frames, 1), max(packed_bytes(fields), 1))  # two axes: Warp counts each in 32 bits
        return Packed(fields, frames, wp.zeros(shape, dtype=wp.uint8, device=device, pinned=pinned))

    def copy_frame(self, frame: int, source: Packed, source_frame: int) -> None:
        """Copies one frame of all fields from frames of the same fields."""
        self.data.copy_from(frame, source.data, source_frame, 1)

    def checksum(self, frame: int, count: int, start: int = 0) -> int:
        """CRC-32 of `count` frames, continued from `start`."""
        return zlib.crc32(self.data.read(slice(frame, frame + count)).data, start)

    def views(self, kind: str, frame: int, adjoints: Packed | None = None) -> Arrays:
        """One frame as the arrays handed to a step, with gradients for the fields that `adjoints` has."""
        found = {}
        for name, block in self.fields.items():
            view = found[name] = block.array[frame]
            if adjoints is not None and name in adjoints.fields:
                view.grad = adjoints.fields[name].array[frame]
        return Arrays(kind, found)


def packed_bytes(fields: Iterable[Field]) -> int:
    """Bytes of one packed frame: whole cache lines, or a half or a quarter of one, so that small frames take little."""
    nbytes = sum(_round_up(field.nbytes, _FIELD_ALIGNMENT) for field in fields)
    return nbytes if nbytes <= _ROW_ALIGNMENT // 2 else _round_up(nbytes, _ROW_ALIGNMENT)


def _round_up(nbytes: int, alignment: int) -> int:
    return -(-nbytes // alignment) * alignment


def _contiguous_strides(field: Field) -> tuple[int, ...]:
    strides, step = [], wp.types.type_size_in_bytes(field.dtype)
    for extent in reversed(field.shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def _array_over(host: np.ndarray, dtype: Any) -> wp.array:
    """An array over NumPy's memory, in half the time that handing the NumPy array to Warp takes."""
    axes = host.ndim - len(value_shape(dtype))
    shape, strides = host.shape[:axes], host.strides[:axes]
    array = wp.array(ptr=host.ctypes.data, shape=shape, strides=strides, dtype=dtype, device="cpu")
    array._ref = host  # as in Warp's own views: keeps the memory alive
    return array


def _view(memory: wp.array, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any) -> wp.array:
    view = wp.array(ptr=memory.ptr + offset, shape=shape, strides=strides, dtype=dtype, device=memory.device)
    view._ref = (
        memory  # as in Warp's own views: keeps the memory alive, and a captured graph knows one region, not many
    )
    return view


class BlockArrays(Arrays):
    """The arrays of blocks by field name, each made when first asked for: making one costs as much as a few steps."""

    def __init__(self, kind: str, blocks: Blocks, frame: int | None = None) -> None:
        """Names the group (`kind`, for error messages) and takes the blocks, or one frame of them."""
        super().__init__(kind, {})
        self._blocks = blocks
        self._frame = frame

    def __getitem__(self, name: str) -> wp.array:
        if name not in self._arrays and name in self._blocks:
            array = self._blocks[name].array
            self._arrays[name] = array if self._frame is None else array[self._frame]
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        return name in self._blocks

    def block(self, name: str) -> Block:
        """The block behind an array, for whoever needs no array of Warp's; one frame if the arrays are of one."""
        if name not in self._blocks:
            raise unknown_name(self._kind, name, self._blocks)
        return self._blocks[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._blocks)

    def __len__(self) -> int:
        return len(self._blocks)


def allocate(fields: Iterable[Field], frames: int, device: wp.Device) -> Blocks:
    """Zeroed contiguous blocks, one per field."""
    if not on_host(device):
        return {f.name: Block(wp.zeros((frames, *f.shape), dtype=f.dtype, device=device)) for f in fields}
    return {f.name: _allocate_on_host(f, frames) for f in fields}


def _allocate_on_host(field: Field, frames: int) -> Block:
    kind = wp.dtype_to_numpy(scalar_type(field.dtype))
    return Block.over(np.zeros((frames, *field.shape, *value_shape(field.dtype)), kind), field.dtype)


def worlds_of(blocks: Blocks, worlds: range) -> Blocks:
    """The blocks restricted to a range of worlds."""
    return {name: block.worlds(worlds) for name, block in blocks.items()}


def differentiable(fields: Iterable[Field]) -> tuple[Field, ...]:
    """Those fields that have an adjoint."""
    return tuple(f for f in fields if f.differentiable)


def adopt(what: str, value: Any, field: Field, frames: int | None, device: wp.Device) -> Block:
    """A block over the caller's data: the same memory when dtype, device and layout allow, a copy otherwise.

    Args:
        what: Named in errors, e.g. "input 'torque'".
        value: Warp array, NumPy array or anything NumPy reads.
        field: What one frame must look like.
        frames: Number of frames, or None for the value of a single frame without the leading axis.
        device: Where the block must live.
    """
    shape = field.shape if frames is None else (frames, *field.shape)
    if not isinstance(value, wp.array):
        numbers = np.asarray(value)
        if not np.can_cast(numbers.dtype, np.float64, "same_kind"):
            raise InputError(f"{what} holds {numbers.dtype}; give real numbers")
        full, kind = shape + value_shape(field.dtype), wp.dtype_to_numpy(scalar_type(field.dtype))
        if not is_real(field.dtype):
            numbers = _whole(what, numbers, np.dtype(kind))
        if on_host(device) and numbers.shape == full and numbers.dtype == kind and numbers.flags.c_contiguous:
            return Block.over(numbers if frames is not None else numbers[None], field.dtype)
        value = wp.array(numbers, dtype=field.dtype, device=device, copy=not on_host(device))
    if tuple(value.shape) != shape or not wp.types.types_equal(value.dtype, field.dtype):
        raise InputError(
            f"{what} has shape {tuple(value.shape)} of {wp.types.type_repr(value.dtype)}; needed: {shape} of "
            f"{wp.types.type_repr(field.dtype)}" + (", axis 0 the step, axis 1 the world" if frames is not None else "")
        )
    value = value.to(device).contiguous()
    return Block(value if frames is not None else value.reshape((1, *shape)))


def _whole(what: str, numbers: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Numbers for a field of integers, unchanged in value."""
    with np.errstate(invalid="ignore"):
        whole = numbers.astype(kind, copy=False)
    if not np.array_equal(whole, numbers):
        raise InputError(f"{what} holds numbers that are not {kind} integers; round them, or use a smaller range")
    return whole


def adopt_target(what: str, value: Any, field: Field, frames: int, device: wp.Device) -> Block:
    """A block over an array of the caller's that is to be written; raises if that would need a copy."""
    block = adopt(what, value, field, frames, device)
    given = value.ptr if isinstance(value, wp.array) else np.asarray(value).ctypes.data
    if (block.array.ptr if block.host is None else block.host.ctypes.data) != given:
        raise InputError(f"{what} cannot be written in place; give a contiguous array of the right type on {device}")
    return block


def adopt_frame(what: str, values: Mapping[str, Any], fields: Iterable[Field], device: wp.Device) -> Blocks:
    """Checks one full set of field values, (worlds, …) each, and returns them as blocks of one frame.

    Args:
        what: Kind of the values for errors, e.g. "state".
        values: By field name; every field must be given.
        fields: All fields that must be there.
        device: Device of the program.
    """
    fields = tuple(fields)
    known = [f.name for f in fields]
    for name in values:
        if name not in known:
            raise unknown_name(what, name, known)
    for name in known:
        if name not in values:
            raise InputError(f"{what} {name!r} is missing; give all of: {', '.join(known)}")
    return {f.name: adopt(f"{what} {f.name!r}", values[f.name], f, None, device) for f in fields}
