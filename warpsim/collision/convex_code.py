"""The code of a contact between convex shapes: how they touch, and by which feature of each.

Hulls number their features by the thousands (`convex_feature`), so that the code of a pair takes 62 of 64 bits.
"""

from __future__ import annotations

import warp as wp

_FEATURE = wp.constant(wp.int64((1 << 30) - 1))
"""Mask of one feature's bits: hulls may have 3.5e8 vertices, edges or faces, more than memory holds."""


PRISM_FEATURES = wp.constant(32)
"""Room for the features of one prism of a height field, which stand at 32 times its number."""


@wp.func
def contact_code(type: int, first: int, second: int) -> wp.int64:
    """Type (2 bits), feature of the first shape (30), of the second (30)."""
    return wp.int64(type) | (wp.int64(first) << wp.int64(2)) | (wp.int64(second) << wp.int64(32))


@wp.func
def contact_type(code: wp.int64) -> int:
    """How the two touch; see `narrow_convex`."""
    return int(code & wp.int64(3))


@wp.func
def first_feature(code: wp.int64) -> int:
    """Feature of the pair's first shape."""
    return int((code >> wp.int64(2)) & _FEATURE)


@wp.func
def second_feature(code: wp.int64) -> int:
    """Feature of the pair's second shape."""
    return int((code >> wp.int64(32)) & _FEATURE)
