"""Indices of arrays in kernels."""

from __future__ import annotations

import warp as wp

_SIGNLESS = wp.constant(0x7FFFFFFF)


@wp.func
def natural(i: int) -> int:
    """i, which is not negative, in a way that the compiler sees.

    Warp counts negative indices from the end of an array: a comparison, the loading of a shape and an addition for each
    index of each access, which the compiler leaves out where it knows the sign.
    """
    return i & _SIGNLESS
