"""Mesh prims → triangle meshes in the shape's own frame, scale and handedness baked in."""

from __future__ import annotations

import numpy as np
from pxr import Usd

from warpsim.core.errors import SceneError
from warpsim.io.usd.context import Context
from warpsim.io.usd.frames import Pose
from warpsim.scene import Mesh


def read_mesh(context: Context, prim: Usd.Prim, pose: Pose) -> Mesh:
    """Reads a mesh prim.

    Args:
        context: The reading.
        prim: A `UsdGeom.Mesh`.
        pose: World pose of the shape's frame, m; vertices are returned in it, so any scale, mirror or shear of the prim
            ends in the vertices.

    Raises:
        SceneError: Counts, indices and points do not fit together.
    """
    return placed(context, prim, pose, authored_mesh(context, prim))


def placed(context: Context, prim: Usd.Prim, pose: Pose, mesh: Mesh) -> Mesh:
    """A mesh in the prim's own coordinates (stage units) in the frame of a shape, m, faces outward."""
    frame = context.frame(prim)
    faces = mesh.faces[:, ::-1] if frame.mirrored else mesh.faces
    in_world = context.units.length * (mesh.vertices @ frame.linear.T)
    made = Mesh(mesh.name, in_world @ pose.matrix, np.ascontiguousarray(faces))
    return made


def authored_mesh(context: Context, prim: Usd.Prim) -> Mesh:
    """The triangles of a mesh prim in its own coordinates, counterclockwise from outside.

    Raises:
        SceneError: Counts, indices and points do not fit together.
    """
    points = context.read.array(prim, "points", mark=False, ndim=2)
    counts = context.read.array(prim, "faceVertexCounts", mark=False)
    indices = context.read.array(prim, "faceVertexIndices", mark=False)
    if points is None or counts is None or indices is None or not len(points) or not len(counts):
        raise SceneError(f"{prim.GetPath()}: a mesh collider needs points, faceVertexCounts and faceVertexIndices")
    if points.shape[1] != 3:
        raise SceneError(f"{prim.GetPath()}: points must be (n, 3), not {points.shape}")
    counts, indices = counts.astype(int), indices.astype(int)
    if (counts < 3).any() or counts.sum() != len(indices):
        raise SceneError(
            f"{prim.GetPath()}: faceVertexCounts sum to {counts.sum()} with {len(indices)} indices (each ≥ 3)"
        )
    if (indices < 0).any() or (indices >= len(points)).any():
        raise SceneError(f"{prim.GetPath()}: a faceVertexIndex lies outside its {len(points)} points")
    faces = triangulate(counts, indices)
    if context.read.token(prim, "orientation", choices=("leftHanded", "rightHanded")) == "leftHanded":
        faces = faces[:, ::-1]
    if _inside_out(points, faces):
        context.ledger.assumed(prim, "faceVertexIndices", "a closed surface whose faces point inward: turned outward")
        faces = np.ascontiguousarray(faces[:, ::-1])
    return Mesh(str(prim.GetPath()), points, faces)


def _inside_out(points: np.ndarray, faces: np.ndarray) -> bool:
    """Whether triangles close a surface and all point into what it encloses."""
    corners = points[faces]
    volume = float(np.einsum("ni,ni->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2]))) / 6.0
    if volume >= -1e-9 * float(np.prod(np.ptp(points, axis=0))):
        return False
    _, same = np.unique(points, axis=0, return_inverse=True)  # exporters split corners
    turned = same.reshape(-1)[faces]
    edges = np.concatenate([turned[:, [0, 1]], turned[:, [1, 2]], turned[:, [2, 0]]])
    edges = edges[edges[:, 0] != edges[:, 1]]
    forward, back = (np.unique(e, axis=0, return_counts=True) for e in (edges, edges[:, ::-1]))
    return np.array_equal(forward[0], back[0]) and np.array_equal(forward[1], back[1])


def triangulate(counts: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """(m, 3) triangles: each polygon becomes a fan about its first corner."""
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    fans = counts - 2
    polygon = np.repeat(np.arange(len(counts)), fans)
    step = np.arange(len(polygon)) - np.repeat(np.concatenate([[0], np.cumsum(fans)[:-1]]), fans)
    first = starts[polygon]
    return np.stack([indices[first], indices[first + step + 1], indices[first + step + 2]], axis=1)
