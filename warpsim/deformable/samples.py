"""Where a matter touches shapes: its vertices, and fixed points within faces, each a constant mean of three corners.

The sample of a vertex has that vertex three times over, with shares 1, 0, 0. So one rule serves both, and the blocks
of a face's sample lie where the face's element has put its own.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from warpsim.core.precision import real, vec3

FACE_SHARES = np.array([[2.0, 0.5, 0.5], [0.5, 2.0, 0.5], [0.5, 0.5, 2.0]]) / 3.0
"""Barycentric coordinates of the points within a face: those of the quadrature of degree two, so that a pressure on it
has the right moment."""
FACE_STIFFNESS = 0.5
"""Stiffness of all points of a face over that of a vertex: a regular sheet has two faces for each vertex, so its faces
are together as stiff as its vertices."""


def touching_samples(count: int, faces: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points that touch.

    Args:
        count: Number of vertices; each is a sample, in order.
        faces: (m, 3) vertices of faces; those with a corner that is not free have no points of their own.
        free: (count,) which vertices have unknowns.

    Returns:
        (n, 3) corners, (n, 3) their shares, (n,) stiffness over that of a vertex.
    """
    inner = faces[free[faces].all(axis=1)] if len(faces) else np.zeros((0, 3), np.int64)
    vertices = np.repeat(np.arange(count)[:, None], 3, axis=1)
    corners = np.concatenate([vertices, np.repeat(inner, len(FACE_SHARES), axis=0)])
    shares = np.concatenate([np.tile([1.0, 0.0, 0.0], (count, 1)), np.tile(FACE_SHARES, (len(inner), 1))])
    weights = np.full(len(corners), FACE_STIFFNESS / len(FACE_SHARES))
    weights[:count] = 1.0
    return corners.astype(np.int32), shares, weights


@wp.func
def sampled(
    corner: wp.array2d(dtype=wp.int32), share: wp.array2d(dtype=real), i: int, w: int, values: wp.array2d(dtype=vec3)
) -> vec3:
    """A quantity of the vertices at sample i."""
    return (
        share[i, 0] * values[w, corner[i, 0]]
        + share[i, 1] * values[w, corner[i, 1]]
        + share[i, 2] * values[w, corner[i, 2]]
    )
