"""Height fields as closed meshes: a grid of heights, a skirt and a base."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpsim.core.errors import SceneError
from warpsim.scene.description import Mesh

BASE_SHARE = 1.0 / 8.0
"""Least depth of the base that collides well, as a share of the longest edge: eight cells of the coarsest distance grid
in use. In a thin slab the grid's cells would see both sides at once, and what sinks in would come out below."""


def heightfield_mesh(name: str, heights: np.ndarray, half_size: Sequence[float], base: float | None = None) -> Mesh:
    """Makes the mesh of a shape of kind "heightfield", centered on its frame with the heights along +z.

    Squares of the grid are cut along the diagonal from their lower to their upper corner, as MuJoCo cuts them.

    Args:
        name: Of the mesh.
        heights: (rows, columns), 2 × 2 or more, m: rows follow y, columns x, both upward.
        half_size: Half the extent along x and y, m.
        base: Depth of the solid below z = 0, or below the lowest height where that is lower, m. None: one that
            collides well, an eighth of the longest edge.

    Raises:
        SceneError: Heights that are no such grid or not finite, or a size that is not above zero.
    """
    heights, half = np.asarray(heights, float), np.asarray(half_size, float)
    _check(name, heights, half, base)
    depth = BASE_SHARE * 2.0 * float(half.max()) if base is None else float(base)
    rows, columns = heights.shape
    x, y = np.linspace(-half[0], half[0], columns), np.linspace(-half[1], half[1], rows)
    top = np.stack([*np.meshgrid(x, y), heights], axis=-1).reshape(-1, 3)
    rim = _rim(rows, columns)
    below = top[rim]
    below[:, 2] = min(0.0, float(heights.min())) - depth
    vertices = np.concatenate([top, below, [[0.0, 0.0, below[0, 2]]]])
    a, b = rim, np.roll(rim, -1)
    lower_a = len(top) + np.arange(len(rim))
    lower_b = np.roll(lower_a, -1)
    center = np.full(len(rim), len(vertices) - 1)
    triangles = [*_top_triangles(rows, columns), (a, lower_a, lower_b), (a, lower_b, b), (lower_b, lower_a, center)]
    faces = np.concatenate([np.stack(corners, axis=1) for corners in triangles])
    return Mesh(name, vertices, faces.astype(np.int32))


def _check(name: str, heights: np.ndarray, half: np.ndarray, base: float | None) -> None:
    where = f"height field {name!r}"
    if heights.ndim != 2 or min(heights.shape) < 2:
        raise SceneError(f"{where}: heights of shape {heights.shape}; give a grid of 2 × 2 or more")
    bad = np.argwhere(~np.isfinite(heights))
    if len(bad):
        row, column = bad[0]
        raise SceneError(
            f"{where}: {len(bad)} heights are not finite (row {row}, column {column} is {heights[row, column]}); "
            f"fill the gaps"
        )
    if half.shape != (2,) or not (np.isfinite(half).all() and (half > 0.0).all()):
        raise SceneError(f"{where}: half_size {half.tolist()}; give two lengths above zero, along x and y")
    if base is not None and not (np.isfinite(base) and base > 0.0):
        raise SceneError(f"{where}: base {base}; the solid below the heights needs a depth above zero")


def _rim(rows: int, columns: int) -> np.ndarray:
    """Vertices around the grid, counterclockwise seen from above, each once."""
    number = np.arange(rows * columns).reshape(rows, columns)
    return np.concatenate([number[0, :-1], number[:-1, -1], number[-1, :0:-1], number[:0:-1, 0]])


def _top_triangles(rows: int, columns: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    number = np.arange(rows * columns).reshape(rows, columns)
    low, right, up, high = (
        part.reshape(-1) for part in (number[:-1, :-1], number[:-1, 1:], number[1:, :-1], number[1:, 1:])
    )
    return [(low, right, high), (low, high, up)]
