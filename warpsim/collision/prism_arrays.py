"""Height fields as MuJoCo collides them: a triangular prism under each half of every cell, each a hull of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpsim.core.errors import SceneError
from warpsim.scene.description import Mesh

EDGES = np.array([[0, 1], [1, 2], [0, 2], [3, 4], [4, 5], [3, 5], [0, 3], [1, 4], [2, 5]])
"""Of a prism whose vertices are its top's, counterclockwise seen from above, and those below them."""
FACES = np.array([[0, 1, 2], [3, 5, 4], [0, 3, 1], [1, 4, 2], [2, 5, 0]])
"""Three vertices of each face: top, bottom, and the sides under the top's edges."""


@dataclass(frozen=True)
class Prisms:
    """The prisms of height fields, cell by cell along x and then along y, two in each."""

    vertices: np.ndarray
    """(n, 6, 3), m."""
    normals: np.ndarray
    """(n, 5, 3) outward unit normals of `FACES`."""
    grid: np.ndarray
    """For each field its rows, columns and first prism."""


def make_prisms(mesh: Mesh) -> Prisms:
    """The prisms of a height field's mesh, which names its cells."""
    if mesh.prisms is None:
        raise SceneError(f"mesh {mesh.name!r} names no cells of a height field")
    rows, columns, base = mesh.prisms
    top = np.asarray(mesh.vertices, float)[: rows * columns].reshape(rows, columns, 3)
    low, right, up, high = top[:-1, :-1], top[:-1, 1:], top[1:, :-1], top[1:, 1:]
    above = np.stack([np.stack([low, right, high], axis=2), np.stack([low, high, up], axis=2)], axis=2)
    above = above.reshape(-1, 3, 3)
    below = above.copy()
    below[:, :, 2] = -base
    vertices = np.concatenate([above, below], axis=1)
    corner = vertices[:, FACES]
    area = np.cross(corner[:, :, 1] - corner[:, :, 0], corner[:, :, 2] - corner[:, :, 0])
    return Prisms(vertices, area / np.linalg.norm(area, axis=-1, keepdims=True), np.array([[rows, columns, 0]]))
