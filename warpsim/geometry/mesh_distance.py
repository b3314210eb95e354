"""Exact signed distances from points to a triangle mesh: for building grids and pieces, not for stepping."""

from __future__ import annotations

import numpy as np
import warp as wp

from warpsim.core.errors import SceneError
from warpsim.core.kernels import initialize

_AUDIT_FACES = 4096
_AUDIT_SHARE = 1e-4
"""Share of the surface that may fold over itself (slivers that exporters leave) before a mesh is refused."""


@wp.kernel(enable_backward=False)
def _sample_kernel(
    mesh: wp.uint64,
    vertices: wp.array(dtype=wp.vec3d),
    faces: wp.array(dtype=wp.int32),
    points: wp.array(dtype=wp.vec3d),
    # out
    distance: wp.array(dtype=wp.float64),
):
    i = wp.tid()
    p = points[i]
    query = wp.mesh_query_point_sign_winding_number(
        mesh, wp.vec3f(wp.float32(p[0]), wp.float32(p[1]), wp.float32(p[2])), 1.0e9
    )
    # The search runs in single precision; the distance to the face it names is computed anew in double.
    a = vertices[faces[3 * query.face]]
    b = vertices[faces[3 * query.face + 1]]
    c = vertices[faces[3 * query.face + 2]]
    u = wp.float64(query.u)
    v = wp.float64(query.v)
    nearest = a * u + b * v + c * (wp.float64(1.0) - u - v)
    distance[i] = wp.length(p - nearest) * wp.float64(query.sign)


class MeshDistance:
    """Signed distance to a mesh; its coordinates are scaled to unit extent for the single-precision search."""

    def __init__(self, vertices: np.ndarray, faces: np.ndarray):
        """Builds the search tree of a closed mesh: vertices (n, 3) and outward faces (m, 3)."""
        initialize()
        self.center = 0.5 * (vertices.min(axis=0) + vertices.max(axis=0))
        self.scale = float(np.ptp(vertices, axis=0).max())
        unit = (vertices - self.center) / self.scale
        self.vertices = wp.array(unit, dtype=wp.vec3d, device="cpu")
        self.faces = wp.array(faces.reshape(-1), dtype=wp.int32, device="cpu")
        points = wp.array(unit.astype(np.float32), dtype=wp.vec3f, device="cpu")
        self.mesh = wp.Mesh(points, self.faces, support_winding_number=True)

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """Signed distances (m) of points (n, 3)."""
        unit = wp.array((points - self.center) / self.scale, dtype=wp.vec3d, device="cpu")
        out = wp.empty(len(points), dtype=wp.float64, device="cpu")
        inputs = [self.mesh.id, self.vertices, self.faces, unit]
        wp.launch(_sample_kernel, dim=len(points), inputs=inputs, outputs=[out], device="cpu", record_tape=False)
        return out.numpy() * self.scale


def audit_sign(name: str, vertices: np.ndarray, faces: np.ndarray, field: MeshDistance) -> None:
    """Steps off the faces both ways: the signed distance must change sign there.

    Raises:
        SceneError: It is reversed on more than a few slivers; names the mesh.
    """
    step = max(1, len(faces) // _AUDIT_FACES)
    corner = vertices[faces[::step]]
    normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    length = np.linalg.norm(normal, axis=1)
    sound = length > 1e-12 * field.scale**2
    normal = normal[sound] / length[sound, None]
    center = corner[sound].mean(axis=1)
    offset = 1e-4 * field.scale
    wrong = (field(center + offset * normal) < 0.0) & (field(center - offset * normal) > 0.0)
    area = length[sound]
    if area[wrong].sum() > _AUDIT_SHARE * area.sum():
        raise SceneError(
            f"mesh {name!r}: the sign of the distance is reversed at {int(wrong.sum())} faces (one near "
            f"{center[wrong][0].round(4).tolist()}); the mesh overlaps itself or parts of it are inside out: "
            f"unite its parts"
        )
