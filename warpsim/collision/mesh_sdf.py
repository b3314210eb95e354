"""Meshes as signed distance grids: built once, checked, and kept on disk by content.

The distance of every lattice point is the exact one to the triangles; its sign comes from the winding number, which
does not care about sharp edges or small gaps. The samples then become coefficients of an interpolating cubic B-spline
(`grid`). Nothing else is smoothed: edges and corners are rounded only by the lattice, within about half a cell. Grids
are kept under `WARPSIM_CACHE`, or the user's cache directory.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import warp as wp
from tqdm import tqdm

from warpsim.collision.mesh_audit import audit_mesh
from warpsim.errors import SceneError
from warpsim.scene.description import Mesh

PADDING = 0.25
"""Lattice around the mesh, as a share of its longest edge: balls up to that radius touch it without error."""
MAX_POINTS = 2**27
_FORMAT = 1
"""Raise when the stored content changes its meaning."""
_SLAB = 1 << 18
_AUDIT_FACES = 4096
_AUDIT_SHARE = 1e-4
"""Share of the surface that may fold over itself (slivers that exporters leave) before a mesh is refused."""


@dataclass(frozen=True)
class SdfGrid:
    """B-spline coefficients of a signed distance on a regular lattice."""

    coefficients: np.ndarray
    """(nx, ny, nz), m."""
    origin: np.ndarray
    """(3,) first lattice point, m, mesh frame."""
    spacing: float
    """m."""

    @property
    def memory(self) -> int:
        """Bytes of the coefficients."""
        return self.coefficients.nbytes


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


class _MeshDistance:
    """Signed distance to a mesh; its coordinates are scaled to unit extent for the single-precision search."""

    def __init__(self, vertices: np.ndarray, faces: np.ndarray):
        self.centre = 0.5 * (vertices.min(axis=0) + vertices.max(axis=0))
        self.scale = float(np.ptp(vertices, axis=0).max())
        unit = (vertices - self.centre) / self.scale
        self.vertices = wp.array(unit, dtype=wp.vec3d, device="cpu")
        self.faces = wp.array(faces.reshape(-1), dtype=wp.int32, device="cpu")
        points = wp.array(unit.astype(np.float32), dtype=wp.vec3f, device="cpu")
        self.mesh = wp.Mesh(points, self.faces, support_winding_number=True)

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """Signed distances (m) of points (n, 3)."""
        unit = wp.array((points - self.centre) / self.scale, dtype=wp.vec3d, device="cpu")
        out = wp.empty(len(points), dtype=wp.float64, device="cpu")
        inputs = [self.mesh.id, self.vertices, self.faces, unit]
        wp.launch(_sample_kernel, dim=len(points), inputs=inputs, outputs=[out], device="cpu", record_tape=False)
        return out.numpy() * self.scale


def _spline_coefficients(samples: np.ndarray) -> np.ndarray:
    """Coefficients of the cubic B-spline through the samples, axis by axis: (c₋ + 4c + c₊)/6 = f, ends held."""
    out = samples
    for axis in range(3):
        f = np.moveaxis(out, axis, 0).copy()
        n = len(f)
        factor = np.zeros(n)
        for i in range(1, n - 1):  # forward elimination of the tridiagonal system (1, 4, 1) c = 6 f
            pivot = 4.0 - factor[i - 1]
            factor[i] = 1.0 / pivot
            f[i] = (6.0 * f[i] - f[i - 1]) / pivot
        for i in range(n - 2, 0, -1):
            f[i] -= factor[i] * f[i + 1]
        out = np.moveaxis(f, 0, axis)
    return np.ascontiguousarray(out)


def _audit_sign(mesh: Mesh, vertices: np.ndarray, faces: np.ndarray, field: _MeshDistance) -> None:
    """Steps off the faces both ways: the signed distance must change sign there."""
    step = max(1, len(faces) // _AUDIT_FACES)
    corner = vertices[faces[::step]]
    normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    length = np.linalg.norm(normal, axis=1)
    sound = length > 1e-12 * field.scale**2
    normal = normal[sound] / length[sound, None]
    centre = corner[sound].mean(axis=1)
    offset = 1e-4 * field.scale
    wrong = (field(centre + offset * normal) < 0.0) & (field(centre - offset * normal) > 0.0)
    area = length[sound]
    if area[wrong].sum() > _AUDIT_SHARE * area.sum():
        raise SceneError(
            f"mesh {mesh.name!r}: the sign of the distance is reversed at {int(wrong.sum())} faces (one near "
            f"{centre[wrong][0].round(4).tolist()}); the mesh overlaps itself or parts of it are inside out: "
            f"unite its parts"
        )


def _build(mesh: Mesh, resolution: int, progress: bool) -> SdfGrid:
    vertices, faces = audit_mesh(mesh)
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    spacing = float((high - low).max()) / resolution
    dims = np.ceil((high - low) / spacing).astype(int) + 1 + 2 * (2 + int(PADDING * resolution))
    if dims.prod() > MAX_POINTS:
        raise SceneError(
            f"mesh {mesh.name!r}: sdf_resolution={resolution} needs {dims.prod() * 8 / 2**30:.1f} GB; lower it to "
            f"{int(resolution * (MAX_POINTS / dims.prod()) ** (1 / 3))} or less"
        )
    origin = 0.5 * (low + high) - 0.5 * spacing * (dims - 1)
    field = _MeshDistance(vertices, faces)
    _audit_sign(mesh, vertices, faces, field)
    axes = [origin[k] + spacing * np.arange(dims[k]) for k in range(3)]
    samples = np.empty(dims)
    rows = max(1, _SLAB // int(dims[1] * dims[2]))
    starts = range(0, dims[0], rows)
    for start in tqdm(starts, desc=f"signed distance of {mesh.name}", disable=not progress or len(starts) < 8):
        x = axes[0][start : start + rows]
        points = np.stack(np.meshgrid(x, axes[1], axes[2], indexing="ij"), axis=-1).reshape(-1, 3)
        samples[start : start + rows] = field(points).reshape(len(x), dims[1], dims[2])
    return SdfGrid(_spline_coefficients(samples), origin, spacing)


def cache_directory() -> Path:
    """Where grids are kept: `WARPSIM_CACHE`, else the user's cache directory."""
    chosen = os.environ.get("WARPSIM_CACHE")
    if chosen:
        return Path(chosen) / "sdf"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "warpsim" / "sdf"


def _key(mesh: Mesh, resolution: int) -> str:
    digest = hashlib.sha256(f"{_FORMAT} {resolution} {PADDING}".encode())
    for array in (np.asarray(mesh.vertices, np.float64), np.asarray(mesh.faces, np.int64)):
        digest.update(str(array.shape).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _load(path: Path) -> SdfGrid | None:
    """A grid from the cache; None where it is absent or unreadable, so that it is built anew."""
    try:
        with np.load(path) as stored:
            return SdfGrid(stored["coefficients"], stored["origin"], float(stored["spacing"]))
    except (OSError, ValueError, KeyError):
        return None


def _store(path: Path, grid: SdfGrid) -> None:
    """Writes to a temporary file first, so that another process never reads half a grid."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".npz")
    with os.fdopen(handle, "wb") as stream:
        np.savez(stream, coefficients=grid.coefficients, origin=grid.origin, spacing=grid.spacing)
    os.replace(temporary, path)


def mesh_sdf(mesh: Mesh, resolution: int, *, cache: bool = True, progress: bool = True) -> SdfGrid:
    """The signed distance grid of a mesh, from the cache or built now.

    Args:
        mesh: Closed, outward triangles, m.
        resolution: Cells along the longest edge of its bounding box, 4 or more.
        cache: Whether to read and write the disk cache.
        progress: Whether long builds show a progress bar.

    Raises:
        SceneError: The mesh does not bound a volume, or the grid would be too large.
    """
    if resolution < 4:
        raise SceneError(f"mesh {mesh.name!r}: sdf_resolution={resolution}; use 4 or more")
    if not cache:
        return _build(mesh, resolution, progress)
    path = cache_directory() / f"{_key(mesh, resolution)}.npz"
    grid = _load(path)
    if grid is None:
        grid = _build(mesh, resolution, progress)
        _store(path, grid)
    return grid
