"""Quadratic tetrahedra from linear ones: middles of edges, and the triangles of a surface through them."""

from __future__ import annotations

import numpy as np

EDGES = np.array([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]])
"""Corners of the six edges, in the order of their middles."""


def with_middles(points: np.ndarray, tetrahedra: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points with the middles of all edges behind them, and (n, 6) middles of each tetrahedron (n, 4)."""
    ends = np.sort(tetrahedra[:, EDGES].reshape(-1, 2), axis=1)
    edges, place = np.unique(ends, axis=0, return_inverse=True)
    middles = points[edges].mean(axis=1)
    return np.concatenate([points, middles]), (len(points) + place.reshape(-1, 6)).astype(np.int32)


def split_faces(faces: np.ndarray, tetrahedra: np.ndarray) -> np.ndarray:
    """(4m, 3) triangles of faces (m, 3) of quadratic tetrahedra (n, 10), through the middles of their edges."""
    ends = np.sort(tetrahedra[:, EDGES].reshape(-1, 2), axis=1)
    middle = {tuple(edge): int(node) for edge, node in zip(ends.tolist(), tetrahedra[:, 4:].ravel(), strict=True)}
    out = []
    for a, b, c in faces.tolist():
        ab, bc, ca = (middle[min(p, q), max(p, q)] for p, q in ((a, b), (b, c), (c, a)))
        out += [[a, ab, ca], [ab, b, bc], [ca, bc, c], [ab, bc, ca]]
    return np.array(out, np.int32)
