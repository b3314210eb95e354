"""Parts of a solid cut out by boxes, and the hulls of these parts; what `decomposition` searches among.

A part needs no caps where it was cut. The corners of the hull of solid ∩ box are corners of the surface's triangles
clipped by the box, or corners of the box inside the solid; so the clipped triangles and eight inside tests are enough,
and the hull of a part lies in its box: hulls of different boxes do not overlap, and together they cover the solid.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from warpsim.geometry.mesh_audit import signed_volume, weld
from warpsim.geometry.mesh_distance import MeshDistance
from warpsim.geometry.quickhull import FlatPointsError, hull_triangles

_ON_PLANE = 1e-7
"""Points nearer a cutting plane lie in it (coordinates are scaled to unit extent)."""
_INSIDE = 1e-5
_SMALLEST_VOLUME = 1e-9
_HULL_SAMPLES = 1500
_LATTICE = 48
"""Cells of the lattice of distances along the longest edge."""
_CONFIRMED = 64
"""Samples whose distance is computed exactly, those that lie furthest out by the lattice."""


@dataclass(frozen=True)
class Piece:
    """A convex polyhedron, in coordinates scaled to unit extent."""

    vertices: np.ndarray
    """(n, 3)."""
    faces: np.ndarray
    """(m, 3), outward."""
    depth: float
    """How far it sticks out of the solid, as sampled."""

    @property
    def volume(self) -> float:
        """Volume."""
        return signed_volume(self.vertices, self.faces)


@dataclass(frozen=True)
class Cell:
    """A box, the solid's surface in it, and the hull of the solid in it."""

    low: np.ndarray
    high: np.ndarray
    triangles: np.ndarray
    """(m, 3, 3)."""
    piece: Piece


class Solid:
    """What a closed mesh encloses, scaled to unit extent about the origin."""

    def __init__(self, vertices: np.ndarray, faces: np.ndarray):
        low, high = vertices.min(axis=0), vertices.max(axis=0)
        self.center, self.extent = 0.5 * (low + high), float((high - low).max())
        self.vertices, self.faces = weld((vertices - self.center) / self.extent, faces)
        self.distance = MeshDistance(self.vertices, self.faces)
        self._low = self.vertices.min(axis=0)
        axes = [np.arange(np.ceil(_LATTICE * size - 1e-9) + 1) / _LATTICE for size in np.ptp(self.vertices, axis=0)]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1) + self._low
        self._lattice = self.distance(points.reshape(-1, 3)).reshape(points.shape[:3])

    def roughly(self, points: np.ndarray) -> np.ndarray:
        """Signed distances (n,) of points (n, 3) in the solid's box, interpolated on a lattice."""
        place = (points - self._low) * _LATTICE
        cell = np.clip(place.astype(int), 0, np.array(self._lattice.shape) - 2)
        share = np.clip(place - cell, 0.0, 1.0)
        total = np.zeros(len(points))
        for corner in product((0, 1), repeat=3):
            weight = np.where(corner, share, 1.0 - share).prod(axis=1)
            total += weight * self._lattice[tuple((cell + corner).T)]
        return total

    @property
    def volume(self) -> float:
        """Of the scaled solid."""
        return signed_volume(self.vertices, self.faces)

    def whole(self, max_vertices: int) -> Cell | None:
        """The cell that holds everything."""
        half = 0.5 * np.ptp(self.vertices, axis=0)
        return self.cell(-half, half, self.vertices[self.faces], max_vertices)

    def cell(self, low: np.ndarray, high: np.ndarray, triangles: np.ndarray, max_vertices: int) -> Cell | None:
        """A cell from its box and the clipped surface; None where the solid has no volume in it."""
        corners = np.array(list(product(*zip(low, high, strict=True))))
        within = corners[self.distance(corners) < -_INSIDE]
        piece = self.hull(np.concatenate([triangles.reshape(-1, 3), within]), max_vertices)
        return None if piece is None else Cell(low, high, triangles, piece)

    def hull(self, points: np.ndarray, max_vertices: int) -> Piece | None:
        """The hull of some points; None for a flat one."""
        points = np.unique(points.round(9), axis=0)
        if len(points) < 4:
            return None
        try:
            triangles = hull_triangles(points, max_vertices)
        except FlatPointsError:
            return None
        kept, faces = np.unique(triangles, return_inverse=True)
        vertices, faces = points[kept], faces.reshape(-1, 3)
        if signed_volume(vertices, faces) < _SMALLEST_VOLUME:
            return None
        return Piece(vertices, faces, self.depth(vertices, faces))

    def depth(self, vertices: np.ndarray, faces: np.ndarray, samples: int = _HULL_SAMPLES) -> float:
        """How far a convex polyhedron sticks out of the solid, from samples of its faces and of its inside."""
        outer = surface_samples(vertices[faces], samples)
        both = np.concatenate([outer, 0.5 * (outer + vertices.mean(axis=0))])
        furthest = np.argsort(-self.roughly(both), kind="stable")[:_CONFIRMED]
        return float(max(0.0, self.distance(both[furthest]).max()))

    def split(self, cell: Cell, axis: int, offset: float, max_vertices: int) -> list[Cell]:
        """The one or two cells on the sides of a plane."""
        below, above = clip(cell.triangles, axis, offset)
        top, bottom = cell.high.copy(), cell.low.copy()
        top[axis] = bottom[axis] = offset
        sides = (cell.low, top, below), (bottom, cell.high, above)
        found = (self.cell(low, high, triangles, max_vertices) for low, high, triangles in sides)
        return [side for side in found if side is not None]


def surface_samples(triangles: np.ndarray, count: int) -> np.ndarray:
    """(count, 3) points spread over triangles (m, 3, 3) by area; the same ones for the same triangles."""
    random = np.random.default_rng(0)
    a, b, c = (triangles[:, k] for k in range(3))
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    chosen = np.searchsorted(np.cumsum(area), area.sum() * (np.arange(count) + 0.5) / count)
    chosen = np.minimum(chosen, len(triangles) - 1)
    u, v = random.random((2, count, 1))
    folded = u + v > 1.0
    u, v = np.where(folded, 1.0 - u, u), np.where(folded, 1.0 - v, v)
    return a[chosen] + u * (b - a)[chosen] + v * (c - a)[chosen]


def clip(triangles: np.ndarray, axis: int, offset: float) -> tuple[np.ndarray, np.ndarray]:
    """Triangles (m, 3, 3) below and above a plane across an axis, those that cross it cut in two or three.

    Triangles in the plane go to the side on which they bound the solid: what looks up bounds the part below.
    """
    height = triangles[:, :, axis] - offset
    height[np.abs(height) < _ON_PLANE] = 0.0
    flat = (height == 0.0).all(axis=1)
    looks_up = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])[:, axis] > 0.0
    below = np.where(flat, looks_up, (height <= 0.0).all(axis=1))
    above = np.where(flat, ~looks_up, (height >= 0.0).all(axis=1))
    crossing = ~below & ~above
    low, high = _cut(triangles[crossing], height[crossing], axis, offset)
    return np.concatenate([triangles[below], low]), np.concatenate([triangles[above], high])


def _cut(triangles: np.ndarray, height: np.ndarray, axis: int, offset: float) -> tuple[np.ndarray, np.ndarray]:
    """Cuts triangles that have corners on both sides of a plane."""
    if not len(triangles):
        return triangles, triangles
    # The corner that is alone on its side comes first; one in the plane counts with the pair that it makes.
    negative, positive = (height < 0.0).sum(axis=1), (height > 0.0).sum(axis=1)
    alone_below = negative <= positive
    lone = np.where(alone_below[:, None], height < 0.0, height > 0.0).argmax(axis=1)
    order = (lone[:, None] + np.arange(3)) % 3
    rows = np.arange(len(triangles))[:, None]
    (a, b, c), h = np.moveaxis(triangles[rows, order], 1, 0), height[rows, order]
    p = a + (b - a) * (h[:, 0] / (h[:, 0] - h[:, 1]))[:, None]
    q = a + (c - a) * (h[:, 0] / (h[:, 0] - h[:, 2]))[:, None]
    p[:, axis] = q[:, axis] = offset
    tip = np.stack([a, p, q], axis=1)
    rest = np.concatenate([np.stack([p, b, c], axis=1), np.stack([p, c, q], axis=1)])
    twice = np.concatenate([alone_below, alone_below])
    return (
        np.concatenate([tip[alone_below], rest[~twice]]),
        np.concatenate([tip[~alone_below], rest[twice]]),
    )
