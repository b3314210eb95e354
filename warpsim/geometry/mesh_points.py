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
        return spread_points(used, count)
    candidates = np.concatenate([used, _area_samples(vertices, faces, 8 * count)])
    return candidates[_farthest_points(candidates, count, 0, len(used))]


def spread_points(points: np.ndarray, count: int) -> np.ndarray:
    """Picks `count` well-spread ones of at least as many points (n, 3), the one furthest out first."""
    first = int(np.argmax(np.linalg.norm(points - points.mean(axis=0), axis=1)))
    return points[_farthest_points(points, count, first, 0)]


def raised_points(vertices: np.ndarray, faces: np.ndarray, count: int = MAX_SURFACE_POINTS) -> np.ndarray:
    """Picks at most `count` well-spread vertices of a height field's top that do not lie in a hollow, peaks first.

    These are the points by which it touches the faces of a shape upon it: a hollow is reached by the other shape only.

    Args:
        vertices: (n, 3), m, heights along +z.
        faces: (m, 3).
        count: Most points.

    Returns:
        (k, 3) points, k ≤ count.
    """
    corner = vertices[faces]
    normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    top = faces[normal[:, 2] > 1e-9 * np.linalg.norm(normal, axis=1)]
    used = np.unique(top)
    edges = np.concatenate([top[:, [0, 1]], top[:, [1, 2]], top[:, [2, 0]]])
    edges = np.concatenate([edges, edges[:, ::-1]])
    rise = np.bincount(edges[:, 0], vertices[edges[:, 0], 2] - vertices[edges[:, 1], 2], len(vertices))
    topped = np.zeros(len(vertices), bool)
    topped[edges[vertices[edges[:, 0], 2] <= vertices[edges[:, 1], 2], 0]] = True
    raised = used[rise[used] >= -1e-9 * np.ptp(vertices, axis=0).max()]
    peaks = raised[~topped[raised]][: count // 2]
    candidates = vertices[np.concatenate([peaks, np.setdiff1d(raised, peaks)])]
    return candidates[_farthest_points(candidates, count, 0, len(peaks))]


def _farthest_points(candidates: np.ndarray, count: int, first: int, fixed: int) -> list[int]:
    """Numbers of at most `count` candidates: `first`, the leading `fixed` ones, then always the one farthest off."""
    chosen = [first]
    gap = np.linalg.norm(candidates - candidates[first], axis=1)
    while len(chosen) < min(count, len(candidates)):
        following = len(chosen) if len(chosen) < fixed else int(np.argmax(gap))
        chosen.append(following)
        gap = np.minimum(gap, np.linalg.norm(candidates - candidates[following], axis=1))
    return chosen
