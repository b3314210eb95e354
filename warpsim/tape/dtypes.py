"""Questions about Warp data types."""

from __future__ import annotations

from typing import Any

import warp as wp


def is_real(dtype: Any) -> bool:
    """Whether a Warp type is built of floating-point numbers."""
    return wp.types.type_is_float(getattr(dtype, "_wp_scalar_type_", dtype))


def fill_real(array: wp.array, value: float) -> None:
    """Fills an array of a floating-point type; integers, which may serve as indices, are left alone."""
    if is_real(array.dtype):
        array.fill_(value)
