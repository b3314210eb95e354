"""Convex hulls of meshes, as the flat arrays that kernels read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpsim.core.errors import SceneError
from warpsim.geometry.quickhull import FlatPointsError, hull_triangles
from warpsim.scene.description import Mesh, Scene, Shape

_COPLANAR = 1e-10
"""Triangles whose normals differ by less (1 − cosine) are one face."""
_FLAT = 1e-12
"""Where the mesh names its outlines, faces are flat to this share of its size: what lies on one another is told from
the outlines, and what touches alone from faces as they are."""


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
    outlines: tuple[np.ndarray, ...]
    """Vertex numbers round each flat part, counterclockwise seen from outside: the faces, or those the mesh names."""
    outline_normals: np.ndarray
    """(number of outlines, 3) outward unit normals."""


def _neighbors(triangles: np.ndarray) -> np.ndarray:
    """(m, 3): the triangle across edge k (from corner k to k + 1) of each triangle of a closed surface."""
    across = {}
    for i, triangle in enumerate(triangles):
        for k in range(3):
            across[int(triangle[k]), int(triangle[(k + 1) % 3])] = i
    return np.array([[across[int(t[(k + 1) % 3]), int(t[k])] for k in range(3)] for t in triangles], int)


def _merge_coplanar(corner: np.ndarray, normals: np.ndarray, neighbors: np.ndarray, flat: float | None) -> np.ndarray:
    """Group number of each triangle: neighbors in one plane share it.

    Args:
        corner: (m, 3, 3), m, of the triangles.
        normals: (m, 3) unit normals.
        neighbors: (m, 3) triangles across the edges.
        flat: Corners within this distance (m) of a triangle's plane are in it, the largest triangles asked first;
            None: normals are compared instead.
    """
    group = np.full(len(normals), -1)
    area = np.linalg.norm(np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]), axis=1)
    count = 0
    for seed in range(len(normals)) if flat is None else np.argsort(-area, kind="stable"):
        if group[seed] >= 0:
            continue
        if flat is None:
            joins = normals @ normals[seed] > 1.0 - _COPLANAR
        else:
            joins = np.abs((corner - corner[seed, 0]) @ normals[seed]).max(axis=1) < flat
        group[seed] = count
        stack = [int(seed)]
        while stack:
            for other in neighbors[stack.pop()]:
                if group[other] < 0 and joins[other]:
                    group[other] = count
                    stack.append(int(other))
        count += 1
    return group


def _hull_points(mesh: Mesh) -> tuple[np.ndarray, np.ndarray]:
    """The points whose hull is wanted, and their numbers in the mesh."""
    points = np.asarray(mesh.vertices, float)
    members = np.arange(len(points))
    if mesh.hull_vertices is not None and points.ndim == 2:
        members = _hull_indices(mesh, len(points))
        points = points[members]
    if points.ndim != 2 or points.shape[1:] != (3,) or len(points) < 4:
        raise SceneError(f"mesh {mesh.name!r}: a hull needs at least four vertices as an (n, 3) array")
    if not np.isfinite(points).all():
        raise SceneError(f"mesh {mesh.name!r}: vertices are not finite; remove NaN and infinite values")
    return points, members


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
    points, members = _hull_points(mesh)
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
    flat = None if mesh.hull_faces is None else _FLAT * float(np.abs(vertices).max())
    group = _merge_coplanar(corner, normals, neighbors, flat)
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
    hull_vertices, normals = vertices[used], normals[largest]
    if mesh.hull_faces is None:
        loops = [_in_order(number[o], n, hull_vertices) for o, n in zip(outlines, normals, strict=True)]
        return Hull(hull_vertices, number[edges], number[faces], normals, tuple(loops), normals)
    hull_vertices, loops = _named_outlines(mesh, hull_vertices, members[kept][used])
    return Hull(hull_vertices, number[edges], number[faces], normals, tuple(loops), np.asarray(mesh.hull_normals))


def _in_order(corners: np.ndarray, normal: np.ndarray, vertices: np.ndarray) -> np.ndarray:
    """The corners of a convex face, counterclockwise, the lowest number first."""
    p = vertices[corners] - vertices[corners].mean(axis=0)
    x = p[0] - normal * (p[0] @ normal)
    angle = np.arctan2(p @ np.cross(normal, x), p @ x)
    order = corners[np.argsort(angle, kind="stable")]
    return np.roll(order, -int(order.argmin()))


def _named_outlines(mesh: Mesh, vertices: np.ndarray, members: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """The outlines that a mesh names, in hull vertices, which take in those on flat parts that the hull leaves out."""
    flat = np.asarray(mesh.hull_faces)
    loops, at = [], 0
    while at < len(flat):
        loops.append(flat[at + 1 : at + 1 + flat[at]])
        at += 1 + int(flat[at])
    named = np.concatenate(loops)
    if (named < 0).any() or (named >= len(mesh.vertices)).any() or len(loops) != len(np.asarray(mesh.hull_normals)):
        raise SceneError(f"mesh {mesh.name!r}: hull_faces and hull_normals do not fit its vertices and one another")
    added = np.setdiff1d(named, members)
    number = np.full(len(mesh.vertices), -1)
    number[np.concatenate([members, added])] = np.arange(len(members) + len(added))
    return np.concatenate([vertices, np.asarray(mesh.vertices, float)[added]]), [number[loop] for loop in loops]


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
