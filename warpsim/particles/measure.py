"""What is read off a liquid's state."""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real, vec3


@wp.func
def _sum(w: int, x: wp.array2d(dtype=vec3)) -> vec3:
    total = vec3()
    for p in range(x.shape[1]):
        total += x[w, p]
    return total


@wp.kernel
def _center_kernel(x: wp.array2d(dtype=vec3), center: wp.array2d(dtype=vec3)):
    w = natural(wp.tid())
    center[w, 0] = _sum(w, x) / real(x.shape[1])


def measure_center(x: wp.array, center: wp.array) -> None:
    """Center of mass, (W, 1) m, of particles of equal mass at x, (W, n) m."""
    wp.launch(_center_kernel, dim=x.shape[0], inputs=[x], outputs=[center], device=x.device)
