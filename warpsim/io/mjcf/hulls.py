"""The convex hulls that MuJoCo has built: which vertices are in them, and the polygons of their faces."""

from __future__ import annotations

import numpy as np

from warpsim.io.mjcf.engine import mujoco

_OUTSIDE = 1e-6
"""Share of the extent by which a vertex that was left out rises above the hull; MjModel holds single precision."""
_CHUNK = 1 << 22


def hull_members(model: mujoco.MjModel, index: int) -> tuple[np.ndarray, bool] | tuple[None, bool]:
    """The vertices of a mesh's hull, and whether `maxhullvert` cut it.

    Vertices that lie in a face of the hull to rounding may be in it or not: MuJoCo's contacts are those of the ones it
    kept. A compiled model does not hold `maxhullvert`; the hull was cut where some vertex of the mesh lies outside, and
    so above one of the hull's faces.

    Args:
        model: Compiled.
        index: Of the mesh.

    Returns:
        (k,) numbers of the mesh's vertices, ascending, or None where there is no hull; whether some lie outside.
    """
    start = model.mesh_graphadr[index]
    if start < 0:
        return None, False
    graph = model.mesh_graph[start:]
    vertex_count, face_count = int(graph[0]), int(graph[1])
    members = graph[2 + vertex_count :][:vertex_count]
    faces = graph[2 + 3 * vertex_count + 3 * face_count :][: 3 * face_count].reshape(-1, 3)
    points = model.mesh_vert[model.mesh_vertadr[index] :][: model.mesh_vertnum[index]].astype(np.float64)
    return np.unique(members).astype(np.int64), not _all_inside(points, members, faces)


def _all_inside(points: np.ndarray, members: np.ndarray, faces: np.ndarray) -> bool:
    """Whether no point (n, 3) reaches further than the hull's own vertices along any normal of its faces."""
    a, b, c = (points[faces[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    normals /= np.maximum(np.linalg.norm(normals, axis=1), 1e-300)[:, None]
    slack = _OUTSIDE * float(np.ptp(points, axis=0).max())
    count = max(1, _CHUNK // len(points))
    for first in range(0, len(normals), count):
        some = normals[first : first + count]
        if ((some @ points.T).max(axis=1) > (some @ points[members].T).max(axis=1) + slack).any():
            return False
    return True


def hull_faces(model: mujoco.MjModel, index: int) -> tuple[np.ndarray, np.ndarray] | tuple[None, None]:
    """The polygons into which MuJoCo has joined the triangles of a mesh's hull, and their normals.

    Returns:
        For each polygon its number of vertices and their numbers, flat; (n, 3) outward normals. None and None where
        the mesh has no hull.
    """
    count, first = int(model.mesh_polynum[index]), int(model.mesh_polyadr[index])
    if model.mesh_graphadr[index] < 0 or not count:
        return None, None
    loops = []
    for start, size in zip(model.mesh_polyvertadr[first:][:count], model.mesh_polyvertnum[first:][:count], strict=True):
        loops.append(np.concatenate([[size], model.mesh_polyvert[start : start + size]]))
    return np.concatenate(loops).astype(np.int64), model.mesh_polynormal[first : first + count].astype(np.float64)
