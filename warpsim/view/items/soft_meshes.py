"""Tetrahedral meshes and curves as triangles: the surface of one, a tube around the other."""

from __future__ import annotations

import numpy as np
from pxr import Usd, UsdGeom

from warpsim.view.items.triangles import Triangles, make_triangles

_SIDES = 8
_WIDTH = 0.01
"""Stage units, of curves that have no width authored."""


def surface_faces(prim: Usd.Prim, time: Usd.TimeCode) -> np.ndarray:
    """(m, 3) faces of a TetMesh: authored ones, else those that belong to one tetrahedron alone."""
    mesh = UsdGeom.TetMesh(prim)
    authored = mesh.GetSurfaceFaceVertexIndicesAttr().Get(time)
    faces = authored if authored else UsdGeom.TetMesh.ComputeSurfaceFaces(mesh, time)
    return np.array([tuple(face) for face in faces], dtype=int).reshape(-1, 3)


def soft_triangles(prim: Usd.Prim, time: Usd.TimeCode) -> Triangles | None:
    """Triangles of a TetMesh or of BasisCurves; None: there are none."""
    points = np.array(UsdGeom.PointBased(prim).GetPointsAttr().Get(time) or (), dtype=float).reshape(-1, 3)
    if not len(points):
        return None
    if prim.IsA(UsdGeom.TetMesh):
        faces = surface_faces(prim, time)
    else:
        curves = UsdGeom.BasisCurves(prim)
        counts = np.array(curves.GetCurveVertexCountsAttr().Get(time) or (), dtype=int)
        widths = curves.GetWidthsAttr().Get(time)
        radius = 0.5 * (float(np.mean(widths)) if widths else _WIDTH)
        if not len(counts) or counts.sum() != len(points):
            return None
        points, faces = _tubes(points, counts, radius)
    made = make_triangles(points, faces) if len(faces) else None
    return made if made is not None and len(made.corners) else None


def _tubes(points: np.ndarray, counts: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Rings around all points, joined along each curve."""
    rings, faces, first = [], [], 0
    angles = 2.0 * np.pi * np.arange(_SIDES) / _SIDES
    for chain in np.split(points, np.cumsum(counts)[:-1]):
        along = np.gradient(chain, axis=0)
        along /= np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-12)
        side = np.cross(along, np.eye(3)[np.argmin(np.abs(along).sum(axis=0))])
        side /= np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-12)
        other = np.cross(along, side)
        circle = np.cos(angles)[None, :, None] * side[:, None] + np.sin(angles)[None, :, None] * other[:, None]
        rings.append((chain[:, None] + radius * circle).reshape(-1, 3))
        for k in range(len(chain) - 1):
            low = first + k * _SIDES + np.arange(_SIDES)
            next_low = first + k * _SIDES + (np.arange(_SIDES) + 1) % _SIDES
            faces += [
                np.stack([low, next_low, next_low + _SIDES], axis=1),
                np.stack([low, next_low + _SIDES, low + _SIDES], axis=1),
            ]
        first += len(chain) * _SIDES
    return np.concatenate(rings), np.concatenate(faces)
