"""Checks that a triangle mesh bounds a volume, so that "inside" means something. Fails with what to do."""

from __future__ import annotations

import numpy as np

from warpsim.core.errors import SceneError
from warpsim.scene.description import Mesh

LARGEST_EXTENT = 1e5
SMALLEST_EXTENT = 1e-6
_WELD = 1e-7
"""Vertices closer than this share of the mesh's extent are one (exporters repeat them per face)."""
_TOUCHING = 0.01
"""Share of edges that may have more than two faces: where parts of a solid touch along an edge, or a stray sliver hangs
on it. The winding number, which gives the distance its sign, is not troubled by these."""
_AS_HULL = "repair the mesh, or collide it as kind 'hull'"


def _check_arrays(mesh: Mesh) -> tuple[np.ndarray, np.ndarray]:
    vertices = np.asarray(mesh.vertices, np.float64)
    faces = np.asarray(mesh.faces, np.int64)
    if vertices.ndim != 2 or vertices.shape[1:] != (3,) or faces.ndim != 2 or faces.shape[1:] != (3,):
        raise SceneError(f"mesh {mesh.name!r}: vertices must be (n, 3) and faces (m, 3) triangles")
    if not np.isfinite(vertices).all():
        raise SceneError(f"mesh {mesh.name!r}: vertices are not finite; remove NaN and infinite values")
    if len(faces) < 4:
        raise SceneError(f"mesh {mesh.name!r}: {len(faces)} faces cannot bound a volume; {_AS_HULL}")
    if faces.min() < 0 or faces.max() >= len(vertices):
        raise SceneError(f"mesh {mesh.name!r}: faces name vertices outside 0…{len(vertices) - 1}")
    extent = float(np.ptp(vertices[faces].reshape(-1, 3), axis=0).max())
    if not SMALLEST_EXTENT <= extent <= LARGEST_EXTENT:
        raise SceneError(
            f"mesh {mesh.name!r}: its extent is {extent:g} m, outside {SMALLEST_EXTENT:g}…{LARGEST_EXTENT:g} m; "
            f"check the units and the scale"
        )
    return vertices, faces


def weld(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Merges repeated vertices and drops faces that lose a corner.

    Returns:
        (n, 3) vertices and (m, 3) faces.
    """
    tolerance = _WELD * max(float(np.ptp(vertices, axis=0).max()), 1e-300)
    keys = np.round(vertices / tolerance).astype(np.int64)
    _unique, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    faces = inverse.reshape(-1)[faces]
    distinct = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
    return vertices[first], faces[distinct]


def signed_volume(vertices: np.ndarray, faces: np.ndarray) -> float:
    """Volume (m³) by the divergence theorem; negative where the faces look inward."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return float((a * np.cross(b, c)).sum() / 6.0)


def _edge_keys(edges: np.ndarray) -> np.ndarray:
    """One number per edge (n, 2)."""
    return edges[:, 0] * (1 << 31) + edges[:, 1]


def audit_mesh(mesh: Mesh) -> tuple[np.ndarray, np.ndarray]:
    """Checks that a mesh is finite, closed, manifold but for a few edges, and oriented outward.

    Args:
        mesh: In meters.

    Returns:
        Its welded vertices (n, 3) and faces (m, 3).

    Raises:
        SceneError: Naming the mesh, the fault and the fix.
    """
    vertices, faces = weld(*_check_arrays(mesh))
    directed = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    undirected, count = np.unique(np.sort(directed, axis=1), axis=0, return_counts=True)
    if (count == 1).any():
        place = vertices[undirected[count == 1][0]].mean(axis=0)
        raise SceneError(
            f"mesh {mesh.name!r} is open: {(count == 1).sum()} edges have one face (one near "
            f"{place.round(4).tolist()}); close the holes, or collide it as kind 'hull'"
        )
    if (count > 2).sum() > _TOUCHING * len(count):
        place = vertices[undirected[count > 2][0]].mean(axis=0)
        raise SceneError(
            f"mesh {mesh.name!r} is not manifold: {(count > 2).sum()} edges have more than two faces "
            f"(one near {place.round(4).tolist()}); {_AS_HULL}"
        )
    once, repeats = np.unique(directed, axis=0, return_counts=True)
    simple = np.isin(_edge_keys(np.sort(once, axis=1)), _edge_keys(undirected[count == 2]))
    repeats = repeats[simple]
    if (repeats > 1).any():
        raise SceneError(
            f"mesh {mesh.name!r}: {(repeats > 1).sum()} edges join faces of opposite orientation; make all faces "
            f"counterclockwise seen from outside"
        )
    if signed_volume(vertices, faces) <= 0.0:
        raise SceneError(f"mesh {mesh.name!r}: its normals point inward; reverse the order of each face's vertices")
    return vertices, faces
