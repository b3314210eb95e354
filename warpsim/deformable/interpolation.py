"""Shape functions of tetrahedra: linear ones with four corners, quadratic ones with ten.

The ten are the corners, then the middles of the edges in the order of `EDGES`. Quadrature of degree two, four points,
integrates the squares of a quadratic element's strains exactly; a linear element needs one point.
"""

from __future__ import annotations

import numpy as np

from warpsim.geometry.quadratic import EDGES

LINEAR, QUADRATIC = 4, 10
_NEAR, _FAR = (5.0 + 3.0 * np.sqrt(5.0)) / 20.0, (5.0 - np.sqrt(5.0)) / 20.0


def reference_gradients(corners: int) -> np.ndarray:
    """(points, corners, 3) gradients of the shape functions of the unit tetrahedron at the points of quadrature."""
    barycentric = np.array([[-1.0, -1.0, -1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    if corners == LINEAR:
        return barycentric[None]
    found = []
    for k in range(4):
        share = np.full(4, _FAR)
        share[k] = _NEAR
        own = (4.0 * share - 1.0)[:, None] * barycentric
        a, b = EDGES.T
        between = 4.0 * (share[a, None] * barycentric[b] + share[b, None] * barycentric[a])
        found.append(np.concatenate([own, between]))
    return np.array(found)


def corner_shares(corners: int) -> np.ndarray:
    """(corners,) of an element's mass: the diagonal of its mass matrix, scaled; sums of rows would be negative."""
    if corners == LINEAR:
        return np.full(LINEAR, 0.25)
    return np.array([1.0 / 36.0] * 4 + [4.0 / 27.0] * 6)
