"""Questions about Warp data types."""

from __future__ import annotations

from functools import cache
from typing import Any

import warp as wp


@cache
def scalar_type(dtype: Any) -> Any:
    """What a vector or matrix type is built of; a scalar type is its own."""
    return getattr(dtype, "_wp_scalar_type_", dtype)


@cache
def value_shape(dtype: Any) -> tuple[int, ...]:
    """The shape that NumPy gives one value of a Warp type."""
    return tuple(getattr(dtype, "_shape_", ()))


@cache
def is_real(dtype: Any) -> bool:
    """Whether a Warp type is built of floating-point numbers."""
    return wp.types.type_is_float(scalar_type(dtype))


def fill_any(array: wp.array, real: float, whole: int) -> None:
    """Fills an array: with `real` if it is of a floating-point type, with `whole` if of integers."""
    array.fill_(real if is_real(array.dtype) else whole)


def fill_real(array: wp.array, value: float) -> None:
    """Fills an array of a floating-point type; integers, which may serve as indices, are left alone."""
    if is_real(array.dtype):
        array.fill_(value)
