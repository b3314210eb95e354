"""Convex hulls of meshes, as the flat arrays that kernels read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpsim.core.errors import SceneError
from warpsim.geometry.quickhull import FlatPointsError, hull_triangles
from warpsim.scene.description import Mesh, Scene, Shape

_COPLANAR = 1e-10
"""Triangles whose normals differ by less (1 − cosine) are one face."""


@dataclass(frozen=True)
class Hull:
    """A convex hull with its coplanar triangles merged."""

    vertices: np.ndarray
    """(nv, 3), m."""
    edges: np.ndarray
    """(ne, 2) vertex numbers; edges inside a flat face are left out."""
    faces: np.ndarray
    """(nf, 3) three vertices of each face, counterclockwise seen from outside."""
    normals: np.ndarray
    """(nf, 3) outward unit normals."""


def _neighbors(triangles: np.ndarray) -> np.ndarray:
    """(m, 3): the triangle across edge k (from corner k to k + 1) of each triangle of a closed surface."""
    across = {}
    for i, triangle in enumerate(triangles):
        for k in range(3):
            across[int(triangle[k]), int(triangle[(k + 1) % 3])] = i
    return np.array([[across[int(t[(k + 1) % 3]), int(t[k])] for k in range(3)] for t in triangles], int)


def _merge_coplanar(normals: np.ndarray, neighbors: np.ndarray) -> np.ndarray:
    """Group number of each triangle: neighbors in one plane share it."""
    group = np.full(len(normals), -1)
    count = 0
    for seed in range(len(normals)):
        if group[seed] >= 0:
            continue
        group[seed] = count
        stack = [seed]
        while stack:
            for other in neighbors[stack.pop()]:
                if group[other] < 0 and normals[other] @ normals[seed] > 1.0 - _COPLANAR:
                    group[other] = count
                    stack.append(int(other))
        count += 1
    return group


def _hull_points(mesh: Mesh) -> np.ndarray:
    points = np.asarray(mesh.vertices, float)
    if mesh.hull_vertices is not None and points.ndim == 2:
        points = points[_hull_indices(mesh, len(points))]
    if points.ndim != 2 or points.shape[1:] != (3,) or len(points) < 4:
        raise SceneError(f"mesh {mesh.name!r}: a hull needs at least four vertices as an (n, 3) array")
    if not np.isfinite(points).all():
        raise SceneError(f"mesh {mesh.name!r}: vertices are not finite; remove NaN and infinite values")
    return points


def _hull_indices(mesh: Mesh, count: int) -> np.ndarray:
    indices = np.asarray(mesh.hull_vertices)
    if indices.ndim != 1 or indices.dtype.kind not in "iu" or (indices < 0).any() or (indices >= count).any():
        raise SceneError(f"mesh {mesh.name!r}: hull_vertices must be whole numbers within 0…{count - 1}")
    return indices


def convex_hull(mesh: Mesh) -> Hull:
    """Computes the convex hull of a mesh's vertices.

    Args:
        mesh: Only its vertices, or those of them that it names for its hull, are read.

    Raises:
        SceneError: Non-finite vertices, or a flat point set.
    """
    points = _hull_points(mesh)
    try:
        triangles = hull_triangles(points)
    except FlatPointsError as error:
        message = f"mesh {mesh.name!r}: its vertices lie in a plane, so it has no hull; use a thin box"
        raise SceneError(message) from error
    kept, triangles = np.unique(triangles, return_inverse=True)
    vertices, triangles = points[kept], triangles.reshape(-1, 3)
    corner = vertices[triangles]
    area = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    size = np.linalg.norm(area, axis=1)
    normals = area / np.maximum(size, 1e-300)[:, None]
    neighbors = _neighbors(triangles)
    group = _merge_coplanar(normals, neighbors)
    by_group = np.lexsort((-size, group))
    largest = by_group[np.searchsorted(group[by_group], np.arange(group.max() + 1))]
    rim = group[:, None] != group[neighbors]
    edges = np.stack([triangles, np.roll(triangles, -1, axis=1)], axis=-1)[rim]
    edges = np.unique(np.sort(edges, axis=1), axis=0)
    used = np.unique(edges)  # vertices in the middle of a flat face never touch alone
    number = np.full(len(vertices), -1)
    number[used] = np.arange(len(used))
    outlines = _outlines(group, triangles, number >= 0)
    faces = np.array([_face_corners(o, n, vertices) for o, n in zip(outlines, normals[largest], strict=True)])
    return Hull(vertices[used], number[edges], number[faces], normals[largest])


def _outlines(group: np.ndarray, triangles: np.ndarray, used: np.ndarray) -> list[np.ndarray]:
    """The used vertices of each group of triangles, in order."""
    kept = used[triangles]
    pairs = np.unique(np.stack([np.repeat(group, 3)[kept.reshape(-1)], triangles[kept]], axis=1), axis=0)
    return np.split(pairs[:, 1], np.searchsorted(pairs[:, 0], np.arange(1, group.max() + 1)))


def _face_corners(corners: np.ndarray, normal: np.ndarray, vertices: np.ndarray) -> list[int]:
    """Three corners of a flat face, counterclockwise: one, the furthest from it, and the furthest from their line."""
    p = vertices[corners]
    b = int(np.linalg.norm(p - p[0], axis=1).argmax())
    turn = np.cross(p[b] - p[0], p - p[0]) @ normal
    c = int(np.abs(turn).argmax())
    order = [0, b, c] if turn[c] > 0 else [0, c, b]
    return [int(corners[k]) for k in order]


def shape_mesh(scene: Scene, shape: Shape) -> Mesh:
    """The mesh a shape names.

    Raises:
        SceneError: There is none of that name, or the shape scales it other than uniformly.
    """
    if shape.mesh not in scene.meshes:
        known = ", ".join(scene.meshes) or "(none)"
        raise SceneError(f"shape {shape.name!r} of kind {shape.kind!r}: no mesh {shape.mesh!r}; meshes: {known}")
    size = np.asarray(shape.size, float)
    if not (np.isfinite(size).all() and size[0] > 0.0 and (size == size[0]).all()):
        raise SceneError(
            f"shape {shape.name!r} of kind {shape.kind!r}: size {size.tolist()} is not one positive scale; "
            f"scale the mesh's vertices and set the size to ones"
        )
    return scene.meshes[shape.mesh]
