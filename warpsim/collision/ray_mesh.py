"""Triangles of a scene's meshes for rays, with a tree of boxes over each mesh."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import warp as wp

from warpsim.collision.ray_surface import RayTriangles
from warpsim.core.errors import SceneError
from warpsim.core.precision import numpy_real, real, vec3
from warpsim.geometry.hulls import shape_mesh
from warpsim.geometry.quickhull import FlatPointsError, hull_triangles
from warpsim.scene.description import MESH_KINDS, Mesh, Scene

_PADDING = 1e-5
"""Boxes are wider by this share of the mesh's radius: they are searched in single precision."""


def _triangles(mesh: Mesh) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (n, 3) and faces (m, 3) that rays meet: the mesh's own, or its hull's where it has no faces."""
    vertices, faces = np.asarray(mesh.vertices, float), np.asarray(mesh.faces, np.int64).reshape(-1, 3)
    if vertices.ndim != 2 or vertices.shape[1:] != (3,) or not np.isfinite(vertices).all():
        raise SceneError(f"mesh {mesh.name!r}: vertices must be finite and (n, 3); repair the mesh")
    if not len(faces):
        try:
            faces = np.asarray(hull_triangles(vertices), np.int64)
        except FlatPointsError as error:
            raise SceneError(f"mesh {mesh.name!r} has no faces for rays to meet; give it faces") from error
    if faces.min() < 0 or faces.max() >= len(vertices):
        raise SceneError(f"mesh {mesh.name!r}: faces name vertices outside 0…{len(vertices) - 1}")
    corner = vertices[faces]
    area = np.linalg.norm(np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]), axis=1)
    return vertices, faces[area > 0.0]


def _boxes(vertices: np.ndarray, faces: np.ndarray, device: wp.DeviceLike) -> wp.Bvh:
    corner, pad = vertices[faces], _PADDING * np.abs(vertices).max()
    low, high = corner.min(axis=1) - pad, corner.max(axis=1) + pad
    return wp.Bvh(
        wp.array(low.astype(np.float32), dtype=wp.vec3f, device=device),
        wp.array(high.astype(np.float32), dtype=wp.vec3f, device=device),
    )


@dataclass(frozen=True)
class RayMeshes:
    """What kernels read about meshes that rays meet."""

    triangles: RayTriangles
    boxes: tuple[wp.Bvh, ...]
    """Kept alive: kernels hold only their ids."""

    @staticmethod
    def from_scene(scene: Scene, shapes: Iterable[int], device: wp.DeviceLike = None) -> RayMeshes:
        """Builds the triangles of the given shapes (indices); kinds without a mesh are skipped."""
        count = len(scene.shapes)
        ids, first, radius = np.zeros(count, np.uint64), np.zeros(count, np.int32), np.zeros(count)
        vertices: list[np.ndarray] = [np.zeros((0, 3))]
        faces: list[np.ndarray] = [np.zeros((0, 3), np.int64)]
        built: dict[str, tuple[int, int, float]] = {}
        boxes = []
        for i in shapes:
            shape = scene.shapes[i]
            if shape.kind not in MESH_KINDS:
                continue
            mesh = shape_mesh(scene, shape)
            if mesh.name not in built:
                points, triangles = _triangles(mesh)
                boxes.append(_boxes(points, triangles, device))
                reach = float(np.linalg.norm(points[triangles].reshape(-1, 3), axis=1).max())
                built[mesh.name] = (int(boxes[-1].id), sum(map(len, faces)), reach)
                faces.append(triangles + sum(map(len, vertices)))
                vertices.append(points)
            ids[i], first[i], radius[i] = built[mesh.name]
        data = RayTriangles()
        data.bvh = wp.array(ids, dtype=wp.uint64, device=device)
        data.start = wp.array(first, dtype=wp.int32, device=device)
        data.triangle = wp.array(np.concatenate(faces).astype(np.int32), dtype=wp.int32, device=device)
        data.vertex = wp.array(np.concatenate(vertices).astype(numpy_real), dtype=vec3, device=device)
        data.unit_radius = wp.array(radius.astype(numpy_real), dtype=real, device=device)
        return RayMeshes(data, tuple(boxes))
