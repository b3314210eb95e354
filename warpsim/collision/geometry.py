"""Mesh data of a scene's shapes, on a device: convex hulls, signed distance grids, surface points."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import warp as wp

from warpsim.collision.grid import GridData
from warpsim.collision.hull_arrays import hull_data, stacked, starts_of
from warpsim.collision.oriented_box import HullBoxes
from warpsim.collision.support import HullData
from warpsim.core.precision import numpy_real, real, vec3
from warpsim.geometry.hulls import shape_mesh
from warpsim.geometry.mesh_audit import audit_mesh
from warpsim.geometry.mesh_points import MAX_SURFACE_POINTS, raised_points, spread_points, surface_points
from warpsim.geometry.mesh_sdf import SdfGrid, mesh_sdf
from warpsim.scene.description import MESH_KINDS, Mesh, Scene


@dataclass(frozen=True)
class Geometry:
    """What kernels read about meshes and hulls; shared by all worlds, no gradient."""

    hulls: HullData
    boxes: HullBoxes
    grids: GridData
    unit_radius: wp.array
    """(ns,) real: radius (m) about the shape's origin at scale one; zero for primitives."""
    memory: int
    """Bytes of all signed distance grids."""
    shapes: frozenset[int]
    """Indices of the meshes and hulls it holds."""


def _grid_arrays(grids: list[SdfGrid | None], points: list[np.ndarray | None], device: wp.DeviceLike) -> GridData:
    counts = [0 if g is None else g.coefficients.size for g in grids]
    data = GridData()
    coefficients = [g.coefficients.reshape(-1) for g in grids if g is not None]
    flat = np.concatenate(coefficients) if coefficients else np.zeros(0)
    data.coefficient = wp.array(flat.astype(numpy_real), dtype=real, device=device)
    data.start = wp.array(np.cumsum([0, *counts])[: len(grids)].astype(np.int32), dtype=wp.int32, device=device)
    dims = [(0, 0, 0) if g is None else g.coefficients.shape for g in grids]
    data.dims = wp.array(np.array(dims, np.int32).reshape(-1, 3), dtype=wp.vec3i, device=device)
    origins = np.array([np.zeros(3) if g is None else g.origin for g in grids], numpy_real).reshape(-1, 3)
    data.origin = wp.array(origins, dtype=vec3, device=device)
    spacings = np.array([1.0 if g is None else g.spacing for g in grids], numpy_real)
    data.spacing = wp.array(spacings, dtype=real, device=device)
    data.point_start = wp.array(starts_of(points), dtype=wp.int32, device=device)
    data.point = wp.array(stacked(points, 3, numpy_real), dtype=vec3, device=device)
    return data


def _touching_points(mesh: Mesh, raised: bool) -> np.ndarray:
    vertices, faces = audit_mesh(mesh)
    return raised_points(vertices, faces) if raised else surface_points(vertices, faces)


def _spread_large_hulls(hulls: HullData, points: list[np.ndarray | None]) -> None:
    """Lists the points by which hulls with more vertices than a field takes meet one."""
    starts, vertices = hulls.vertex_start.numpy(), hulls.vertex.numpy()
    for i, (start, stop) in enumerate(zip(starts[:-1], starts[1:], strict=True)):
        if stop - start > MAX_SURFACE_POINTS:
            points[i] = spread_points(vertices[start:stop], MAX_SURFACE_POINTS)


def build_geometry(scene: Scene, device: wp.DeviceLike = None, *, shapes: Collection[int] | None = None) -> Geometry:
    """Builds (or loads from the cache) everything the scene's meshes and hulls need to collide.

    Args:
        scene: Shapes of kind mesh and heightfield need a closed mesh; hulls need only vertices.
        device: Where the arrays live.
        shapes: Indices of the shapes that will touch something; None: all that collide.

    Raises:
        SceneError: A mesh cannot collide; the message names it and the fix.
    """
    if shapes is None:
        shapes = [i for i, shape in enumerate(scene.shapes) if shape.collides]
    wanted = frozenset(int(i) for i in shapes if scene.shapes[i].kind in MESH_KINDS)
    hulls, boxes, radii = hull_data(scene, wanted, device)
    grids: list[SdfGrid | None] = []
    points: list[np.ndarray | None] = []
    built: dict[tuple[str, int, bool], tuple[SdfGrid, np.ndarray]] = {}
    for i, shape in enumerate(scene.shapes):
        if shape.kind not in ("mesh", "heightfield") or i not in wanted:
            grids.append(None)
            points.append(None)
            continue
        mesh = shape_mesh(scene, shape)
        raised = shape.kind == "heightfield"
        key = (mesh.name, shape.sdf_resolution, raised)
        if key not in built:
            built[key] = (mesh_sdf(mesh, shape.sdf_resolution), _touching_points(mesh, raised))
        grid, surface = built[key]
        grids.append(grid)
        points.append(surface)
        radii[i] = np.linalg.norm(np.asarray(mesh.vertices)[np.unique(mesh.faces)], axis=1).max()
    if any(grids):
        _spread_large_hulls(hulls, points)
    data = _grid_arrays(grids, points, device)
    memory = int(data.coefficient.size) * np.dtype(numpy_real).itemsize
    return Geometry(hulls, boxes, data, wp.array(radii.astype(numpy_real), dtype=real, device=device), memory, wanted)
