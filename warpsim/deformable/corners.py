"""λᵀ∇Ψ of elements, differentiated: copies of their corners in shared scratch, the adjoint of a kernel, and gathers.

Vertices gather what their corners received, so that no two threads add to one number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real, vec3
from warpsim.deformable.bend import bend_work
from warpsim.deformable.fold import fold_work
from warpsim.deformable.membrane import membrane_work
from warpsim.deformable.segment import segment_work
from warpsim.deformable.tetrahedron import tet_work

PARAMETERS: dict[str, tuple[wp.Kernel, tuple[str, ...]]] = {
    "membrane": (membrane_work, ("area", "shape", "mu", "lam", "viscosity")),
    "tetrahedra": (tet_work, ("volume", "shape", "mu", "lam", "viscosity")),
    "segments": (segment_work, ("length", "stiffness", "viscosity")),
    "bends": (bend_work, ("coefficient", "stiffness")),
    "folds": (fold_work, ("stiffness", "angle")),
}
"""Kind of element → the kernel of its λᵀ∇Ψ, and the parameters that it reads, in order."""
WITHOUT_START = ("bends", "folds")
"""Kinds whose energy reads the end of the step alone."""


@dataclass
class Corners:
    """Copies of what the elements of one kind read, with adjoints.

    Attributes:
        vertex: (n, corners).
        first: (vertices + 1,) where each vertex's corners start in `corner`.
        corner: Corners of all vertices, element · corners + corner.
        x, end, multiplier: (W, n, corners).
        h: (W, n) time step.
        work: (W, n).
    """

    vertex: wp.array
    first: wp.array
    corner: wp.array
    x: wp.array
    end: wp.array
    multiplier: wp.array
    h: wp.array
    work: wp.array


def make_corners(vertices: np.ndarray, count: int, worlds: int, device: wp.Device) -> Corners:
    """Room for the elements (n, corners) of one kind in a matter of `count` vertices."""
    n, corners = vertices.shape
    order = np.argsort(vertices.ravel(), kind="stable").astype(np.int32)
    first = np.searchsorted(vertices.ravel()[order], np.arange(count + 1)).astype(np.int32)

    def room() -> wp.array:
        return wp.zeros((worlds, n, corners), dtype=vec3, device=device, requires_grad=True)

    return Corners(
        wp.array(vertices, dtype=wp.int32, device=device),
        wp.array(first, dtype=wp.int32, device=device),
        wp.array(order, dtype=wp.int32, device=device),
        *(room() for _ in range(3)),
        *(wp.zeros((worlds, n), dtype=real, device=device, requires_grad=True) for _ in range(2)),
    )


@wp.kernel(enable_backward=False)
def corner_kernel(
    vertex: wp.array2d(dtype=wp.int32),
    time_step: wp.array(dtype=real),
    x: wp.array2d(dtype=vec3),
    end: wp.array2d(dtype=vec3),
    multiplier: wp.array2d(dtype=vec3),
    # out
    x_corner: wp.array3d(dtype=vec3),
    end_corner: wp.array3d(dtype=vec3),
    multiplier_corner: wp.array3d(dtype=vec3),
    h: wp.array2d(dtype=real),
    adj_x: wp.array3d(dtype=vec3),
    adj_end: wp.array3d(dtype=vec3),
    adj_multiplier: wp.array3d(dtype=vec3),
    adj_h: wp.array2d(dtype=real),
    adj_work: wp.array2d(dtype=real),
):
    """Copies corners, clears their adjoints and seeds θ̄ = −∂_θ(λᵀ∇Ψ)."""
    w, e = wp.tid()
    for c in range(vertex.shape[1]):
        i = vertex[e, c]
        x_corner[w, e, c] = x[w, i]
        end_corner[w, e, c] = end[w, i]
        multiplier_corner[w, e, c] = multiplier[w, i]
        adj_x[w, e, c] = vec3()
        adj_end[w, e, c] = vec3()
        adj_multiplier[w, e, c] = vec3()
    h[w, e] = time_step[w]
    adj_h[w, e] = real(0.0)
    adj_work[w, e] = real(-1.0)


@wp.kernel(enable_backward=False)
def gather_kernel(
    first: wp.array(dtype=wp.int32),
    corner: wp.array(dtype=wp.int32),
    adj_x: wp.array3d(dtype=vec3),
    adj_end: wp.array3d(dtype=vec3),
    # in and out
    by_start: wp.array2d(dtype=vec3),
    by_end: wp.array2d(dtype=vec3),
):
    """Sums the corners of each vertex."""
    w, i = wp.tid()
    corners = adj_end.shape[2]
    for k in range(first[i], first[i + 1]):
        e, c = corner[k] // corners, corner[k] % corners
        by_start[w, i] += adj_x[w, e, c]
        by_end[w, i] += adj_end[w, e, c]


@wp.kernel(enable_backward=False)
def step_sum_kernel(adj_h: wp.array2d(dtype=real), adj_time_step: wp.array(dtype=real)):
    """Sums the elements' shares in the time step, in their order."""
    w = natural(wp.tid())
    total = real(0.0)
    for e in range(adj_h.shape[1]):
        total += adj_h[w, e]
    adj_time_step[w] += total


def element_adjoint(model: Any, kind: str, c: Corners) -> None:
    """Runs the adjoint of a kind's λᵀ∇Ψ."""
    kernel, names = PARAMETERS[kind]
    corners = [c.end, c.multiplier] if kind in WITHOUT_START else [c.x, c.end, c.multiplier, c.h]
    inputs = [*corners, *(model.physical[f"{kind}.{name}"] for name in names)]
    wp.launch(
        kernel,
        dim=c.work.shape,
        inputs=inputs,
        outputs=[c.work],
        adj_inputs=[array.grad for array in inputs],
        adj_outputs=[c.work.grad],
        adjoint=True,
        device=model.device,
        record_tape=False,
    )
