"""Meshes as signed distance grids: built once, checked, and kept on disk by content.

The distance of every lattice point is the exact one to the triangles; its sign comes from the winding number, which
does not care about sharp edges or small gaps. The samples then become coefficients of an interpolating cubic B-spline
(`grid`). Nothing else is smoothed: edges and corners are rounded only by the lattice, within about half a cell. Grids
are kept in the disk cache (`disk_cache`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tqdm.auto import tqdm

from warpsim.core.errors import SceneError
from warpsim.geometry.disk_cache import content_key, load_arrays, store_arrays
from warpsim.geometry.mesh_audit import audit_mesh
from warpsim.geometry.mesh_distance import MeshDistance, audit_sign
from warpsim.scene.description import Mesh

PADDING = 0.25
"""Lattice around the mesh, as a share of its longest edge: balls up to that radius touch it without error."""
MAX_POINTS = 2**27
_FORMAT = 1
"""Raise when the stored content changes its meaning."""
_SLAB = 1 << 18


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
    field = MeshDistance(vertices, faces)
    audit_sign(mesh.name, vertices, faces, field)
    axes = [origin[k] + spacing * np.arange(dims[k]) for k in range(3)]
    samples = np.empty(dims)
    rows = max(1, _SLAB // int(dims[1] * dims[2]))
    starts = range(0, dims[0], rows)
    for start in tqdm(starts, desc=f"signed distance of {mesh.name}", disable=not progress or len(starts) < 8):
        x = axes[0][start : start + rows]
        points = np.stack(np.meshgrid(x, axes[1], axes[2], indexing="ij"), axis=-1).reshape(-1, 3)
        samples[start : start + rows] = field(points).reshape(len(x), dims[1], dims[2])
    return SdfGrid(_spline_coefficients(samples), origin, spacing)


def _key(mesh: Mesh, resolution: int) -> str:
    arrays = (np.asarray(mesh.vertices, np.float64), np.asarray(mesh.faces, np.int64))
    return content_key(f"{_FORMAT} {resolution} {PADDING}", *arrays)


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
    key = _key(mesh, resolution)
    stored = load_arrays("sdf", key, ("coefficients", "origin", "spacing"))
    if stored is not None:
        return SdfGrid(stored["coefficients"], stored["origin"], float(stored["spacing"]))
    grid = _build(mesh, resolution, progress)
    store_arrays("sdf", key, coefficients=grid.coefficients, origin=grid.origin, spacing=np.array(grid.spacing))
    return grid
