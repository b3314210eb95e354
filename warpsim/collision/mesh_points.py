"""Points spread over a mesh's surface, by which it touches planes and other shapes' distance fields."""

from __future__ import annotations

import numpy as np

MAX_SURFACE_POINTS = 512


def _area_samples(vertices: np.ndarray, faces: np.ndarray, count: int) -> np.ndarray:
    """Points uniform in area, the same ones every time."""
    rng = np.random.default_rng(0)
    corner = vertices[faces]
    area = np.linalg.norm(np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]), axis=1)
    chosen = corner[rng.choice(len(faces), size=count, p=area / area.sum())]
    u, v = rng.random((2, count, 1))
    fold = u + v > 1.0
    u, v = np.where(fold, 1.0 - u, u), np.where(fold, 1.0 - v, v)
    return chosen[:, 0] + u * (chosen[:, 1] - chosen[:, 0]) + v * (chosen[:, 2] - chosen[:, 0])


def surface_points(vertices: np.ndarray, faces: np.ndarray, count: int = MAX_SURFACE_POINTS) -> np.ndarray:
    """Picks at most `count` well-spread surface points, corners first.

    Farthest-point order, so that any leading part of the list is spread as well as it can be: over the vertices where
    there are many; over all vertices and then points inside the faces where there are few.

    Args:
        vertices: (n, 3), m.
        faces: (m, 3).
        count: Most points.

    Returns:
        (k, 3) points, k ≤ count.
    """
    used = vertices[np.unique(faces)]
    if len(used) >= count:
        candidates, fixed = used, 0
    else:
        candidates, fixed = np.concatenate([used, _area_samples(vertices, faces, 8 * count)]), len(used)
    first = int(np.argmax(np.linalg.norm(candidates - used.mean(axis=0), axis=1))) if fixed == 0 else 0
    chosen = [first]
    gap = np.linalg.norm(candidates - candidates[first], axis=1)
    while len(chosen) < min(count, len(candidates)):
        following = len(chosen) if len(chosen) < fixed else int(np.argmax(gap))
        chosen.append(following)
        gap = np.minimum(gap, np.linalg.norm(candidates - candidates[following], axis=1))
    return candidates[chosen]
