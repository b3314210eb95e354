"""The convex hull of a point set, as outward triangles (Barber, Dobkin and Huhdanpaa, 1996), in NumPy."""

from __future__ import annotations

import numpy as np

_TOLERANCE = 1e-10
"""Share of the extent by which a point must rise above a face to count as outside."""


class FlatPointsError(ValueError):
    """The points lie in a plane, on a line or in one place."""


class _Hull:
    """A growing hull: triangles, the faces across their edges, the points still outside each and how far they rise."""

    def __init__(self, points: np.ndarray, tolerance: float):
        self.points = points
        self.tolerance = tolerance
        self.corners: dict[int, tuple[int, int, int]] = {}
        self.normal: dict[int, np.ndarray] = {}
        self.outside: dict[int, np.ndarray] = {}
        self.rise: dict[int, float] = {}
        self.face_of_edge: dict[tuple[int, int], int] = {}
        self.count = 0

    def add(self, a: int, b: int, c: int) -> int:
        """Adds a face, counterclockwise from outside."""
        face, self.count = self.count, self.count + 1
        p = self.points
        normal = np.cross(p[b] - p[a], p[c] - p[a])
        self.normal[face] = normal / max(float(np.linalg.norm(normal)), 1e-300)
        self.corners[face] = (a, b, c)
        for edge in ((a, b), (b, c), (c, a)):
            self.face_of_edge[edge] = face
        return face

    def height(self, face: int, index: np.ndarray | int) -> np.ndarray:
        """How far points lie above a face's plane."""
        return (self.points[index] - self.points[self.corners[face][0]]) @ self.normal[face]

    def share_out(self, faces: list[int], index: np.ndarray) -> None:
        """Gives each point to the face it lies furthest above; points above none are inside and are dropped."""
        heights = np.stack([self.height(face, index) for face in faces])
        best = heights.argmax(axis=0)
        above = heights.max(axis=0) > self.tolerance if len(index) else np.zeros(0, bool)
        for k, face in enumerate(faces):
            mine = above & (best == k)
            self.outside[face] = index[mine]
            self.rise[face] = float(heights[k, mine].max(initial=0.0))

    def visible_from(self, start: int, point: int) -> tuple[list[int], list[tuple[int, int]]]:
        """The connected faces below a point, and the edges around them."""
        visible, horizon, stack = {start}, [], [start]
        while stack:
            a, b, c = self.corners[stack.pop()]
            for edge in ((a, b), (b, c), (c, a)):
                across = self.face_of_edge[edge[1], edge[0]]
                if across in visible:
                    continue
                if self.height(across, point) > self.tolerance:
                    visible.add(across)
                    stack.append(across)
        for face in visible:
            a, b, c = self.corners[face]
            for edge in ((a, b), (b, c), (c, a)):
                if self.face_of_edge[edge[1], edge[0]] not in visible:
                    horizon.append(edge)
        return sorted(visible), sorted(horizon)

    def grow(self, face: int) -> list[int]:
        """Takes the point furthest above a face into the hull; returns the new faces."""
        index = self.outside[face]
        point = int(index[np.argmax(self.height(face, index))])
        visible, horizon = self.visible_from(face, point)
        loose = np.concatenate([self.outside[f] for f in visible])
        for f in visible:
            a, b, c = self.corners.pop(f)
            del self.normal[f], self.outside[f], self.rise[f]
            for edge in ((a, b), (b, c), (c, a)):
                if self.face_of_edge.get(edge) == f:
                    del self.face_of_edge[edge]
        faces = [self.add(a, b, point) for a, b in horizon]
        self.share_out(faces, loose[loose != point])
        return faces


def _first_tetrahedron(points: np.ndarray, tolerance: float) -> list[int]:
    """Four points far apart, oriented so that the last lies below the first three."""
    a = int(points[:, 0].argmin())
    b = int(np.linalg.norm(points - points[a], axis=1).argmax())
    across = np.linalg.norm(np.cross(points - points[a], points[b] - points[a]), axis=1)
    c = int(across.argmax())
    normal = np.cross(points[b] - points[a], points[c] - points[a])
    length = float(np.linalg.norm(normal))
    if length <= tolerance * float(np.linalg.norm(points[b] - points[a])):
        raise FlatPointsError
    height = (points - points[a]) @ (normal / length)
    d = int(np.abs(height).argmax())
    if abs(height[d]) <= tolerance:
        raise FlatPointsError
    return [a, b, c, d] if height[d] < 0.0 else [a, c, b, d]


def _grow_all(hull: _Hull, stack: list[int]) -> None:
    """Takes in all points."""
    while stack:
        face = stack.pop()
        if face in hull.corners and len(hull.outside[face]):
            stack.append(face)
            stack.extend(hull.grow(face))


def hull_triangles(points: np.ndarray, limit: int | None = None) -> np.ndarray:
    """Triangles of the convex hull.

    Args:
        points: (n, 3).
        limit: Most vertices, 4 or more; the furthest points are taken in first, so that the rest rises little above
            the faces. None: all.

    Returns:
        (m, 3) point numbers, counterclockwise seen from outside.

    Raises:
        FlatPointsError: The points have no volume.
    """
    tolerance = _TOLERANCE * float(np.ptp(points, axis=0).max())
    a, b, c, d = _first_tetrahedron(points, max(tolerance, 1e-300))
    hull = _Hull(points, tolerance)
    faces = [hull.add(a, b, c), hull.add(a, d, b), hull.add(b, d, c), hull.add(c, d, a)]
    hull.share_out(faces, np.arange(len(points)))
    if limit is None:
        _grow_all(hull, faces)
    else:
        for _ in range(limit - 4):
            face = max(hull.rise, key=hull.rise.__getitem__)
            if not len(hull.outside[face]):
                break
            hull.grow(face)
    return np.array([hull.corners[f] for f in sorted(hull.corners)], int)
