"""Whether points lie inside a primitive, in its own frame."""

from __future__ import annotations

import numpy as np

from warpsim.core.errors import UnsupportedError


def inside_shape(kind: str, size: np.ndarray, points: np.ndarray) -> np.ndarray:
    """(n,) whether points, (n, 3) m, lie inside a shape with `Shape.size`.

    Raises:
        UnsupportedError: For shapes made of meshes.
    """
    radius = np.hypot(points[:, 0], points[:, 1])
    z = points[:, 2]
    if kind == "plane":
        return z < 0.0
    if kind == "sphere":
        return np.linalg.norm(points, axis=1) < size[0]
    if kind == "capsule":
        return np.hypot(radius, z - np.clip(z, -size[1], size[1])) < size[0]
    if kind == "box":
        return (np.abs(points) < size).all(axis=1)
    if kind == "cylinder":
        return (radius < size[0]) & (np.abs(z) < size[1])
    if kind == "cone":
        return (np.abs(z) < size[1]) & (radius < size[0] * (size[1] - z) / (2.0 * size[1]))
    if kind == "ellipsoid":
        return (np.square(points / size)).sum(axis=1) < 1.0
    raise UnsupportedError(f"whether points are inside a {kind} is not known; build the container from primitives")
