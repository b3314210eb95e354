"""Triangles of the shapes that glTF has no primitives for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpsim.view.items.item import BOX, CAPSULE, MESH, PLANE, SPHERE, TAPERED, Item

_AROUND, _ALONG = 40, 20
"""Segments around an axis, and from pole to pole."""


@dataclass(frozen=True, eq=False)
class Surface:
    """Vertices with normals, and the triangles over them, counterclockwise seen from outside."""

    points: np.ndarray
    """(n, 3) m."""
    normals: np.ndarray
    """(n, 3) unit vectors."""
    faces: np.ndarray
    """(m, 3)."""
    uvs: np.ndarray | None = None
    """(n, 2), v upward."""

    def moved(self, matrix: np.ndarray) -> Surface:
        """Under an affine map (4, 4): any, also with shear and mirrors, which nodes of glTF may not have."""
        linear = matrix[:3, :3]
        normals = self.normals @ np.linalg.inv(linear)  # normals are covectors
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        mirrored = np.linalg.det(linear) < 0.0
        faces = self.faces[:, ::-1] if mirrored else self.faces
        return Surface(self.points @ linear.T + matrix[:3, 3], normals, faces, self.uvs)


def item_surface(item: Item, reach: float) -> Surface:
    """An item's triangles in the frame that its `to_world` leads to.

    Args:
        item: What to draw.
        reach: m: half edge of planes that have no end.
    """
    a, b, c = (float(x) for x in item.size)
    if item.kind == MESH:
        assert item.mesh is not None
        corners, normals = item.mesh.corners.reshape(-1, 3), item.mesh.normals.reshape(-1, 3)
        uvs = None if item.mesh.uvs is None else item.mesh.uvs.reshape(-1, 2)
        faces = np.arange(len(corners)).reshape(-1, 3)
        return Surface(corners, normals, faces, uvs).moved(item.to_world)
    if item.kind == SPHERE:
        made = _revolved(*_arc(a, 0.0, -0.5 * np.pi, 0.5 * np.pi))
    elif item.kind == CAPSULE:
        low, high = _arc(a, -b, -0.5 * np.pi, 0.0), _arc(a, b, 0.0, 0.5 * np.pi)
        made = _revolved(np.concatenate([low[0], high[0]]), np.concatenate([low[1], high[1]]))
    elif item.kind == TAPERED:
        made = _tapered(a, b, c)
    elif item.kind == BOX:
        made = _box(np.array([a, b, c]))
    else:
        assert item.kind == PLANE
        made = _square(min(a, reach), min(b, reach))
    return made.moved(item.to_world)


def _arc(radius: float, z: float, start: float, end: float) -> tuple[np.ndarray, np.ndarray]:
    """Profile (r, z) of a part of a sphere, and its normals."""
    angles = np.linspace(start, end, _ALONG // 2 + 1 if end - start < 2.0 else _ALONG + 1)
    outward = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return radius * outward + np.array([0.0, z]), outward


def _revolved(profile: np.ndarray, outward: np.ndarray) -> Surface:
    """A profile (k, 2) of radius and height, from below upward, turned about z."""
    angles = np.linspace(0.0, 2.0 * np.pi, _AROUND + 1)
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)

    def turned(rows: np.ndarray) -> np.ndarray:
        flat = rows[:, None, :1] * ring[None]
        return np.concatenate([flat, np.broadcast_to(rows[:, None, 1:], (*flat.shape[:2], 1))], axis=2).reshape(-1, 3)

    return Surface(turned(profile), turned(outward), _grid(len(profile), _AROUND + 1))


def _grid(rows: int, columns: int) -> np.ndarray:
    """Triangles over a grid of vertices, row by row."""
    corner = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).reshape(-1)
    return np.concatenate(
        [
            np.stack([corner, corner + 1, corner + columns + 1], axis=1),
            np.stack([corner, corner + columns + 1, corner + columns], axis=1),
        ]
    )


def _tapered(low: float, high: float, half: float) -> Surface:
    """A cylinder or cone with flat ends; edges are sharp, so each part has its own vertices."""
    slope = np.array([2.0 * half, low - high]) / np.hypot(2.0 * half, low - high)
    down, up = np.array([0.0, -1.0]), np.array([0.0, 1.0])
    parts = [
        _revolved(np.array([[0.0, -half], [low, -half]]), np.stack([down, down])),
        _revolved(np.array([[low, -half], [high, half]]), np.stack([slope, slope])),
        _revolved(np.array([[high, half], [0.0, half]]), np.stack([up, up])),
    ]
    return joined(parts)


def joined(parts: list[Surface]) -> Surface:
    """Several as one."""
    starts = np.cumsum([0, *(len(part.points) for part in parts)])
    return Surface(
        np.concatenate([part.points for part in parts]),
        np.concatenate([part.normals for part in parts]),
        np.concatenate([part.faces + start for part, start in zip(parts, starts, strict=False)]),
    )


def _square(x: float, y: float) -> Surface:
    corners = np.array([[-x, -y, 0.0], [x, -y, 0.0], [x, y, 0.0], [-x, y, 0.0]])
    return Surface(corners, np.tile([0.0, 0.0, 1.0], (4, 1)), np.array([[0, 1, 2], [0, 2, 3]]))


def _box(half: np.ndarray) -> Surface:
    sides = []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            u, v, w = np.roll(np.eye(3), -axis, axis=0) * half[:, None].T
            face = np.array([u * sign - v - w, u * sign + v - w, u * sign + v + w, u * sign - v + w])
            if sign < 0.0:
                face = face[::-1]
            normal = np.eye(3)[axis] * sign
            sides.append(Surface(face, np.tile(normal, (4, 1)), np.array([[0, 1, 2], [0, 2, 3]])))
    return joined(sides)


def smooth_normals(points: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """(n, 3) unit normals of vertices: means of their triangles' normals, weighted by area."""
    a, b, c = (points[faces[:, k]] for k in range(3))
    across = np.cross(b - a, c - a)
    total = np.zeros_like(points)
    for k in range(3):
        np.add.at(total, faces[:, k], across)
    length = np.linalg.norm(total, axis=1, keepdims=True)
    return np.where(length > 0.0, total / np.where(length > 0.0, length, 1.0), np.array([0.0, 0.0, 1.0]))
