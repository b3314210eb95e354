"""Types that the elements share."""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real

mat22 = wp.types.matrix(shape=(2, 2), dtype=real)
vec4 = wp.types.vector(length=4, dtype=real)

FREE, FIXED, PINNED = wp.constant(0), wp.constant(1), wp.constant(2)
"""What moves a vertex: the equations of motion; nothing; a control that says where it is at the end of each step."""

CONVERGED, UNCONVERGED, SADDLE = wp.constant(0), wp.constant(1), wp.constant(2)
TANGLED, CROWDED = wp.constant(3), wp.constant(4)
SOLVED = (0, 3)
"""Codes of steps whose solution is one: they have gradients."""
STATUS_TEXT = {
    0: "converged",
    1: "stopped above the tolerance",
    2: "balanced at a saddle: the Hessian is not positive definite",
    3: "converged, and an edge passes through a face",
    4: "found more pairs near each other than there is room for",
}
