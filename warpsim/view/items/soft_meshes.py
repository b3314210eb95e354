"""Tetrahedral meshes, curves and clouds of points as triangles: a surface, tubes, balls."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from pxr import Usd, UsdGeom

from warpsim.view.items.triangles import Triangles, make_triangles

_SIDES = 8
_WIDTH = 0.01
"""Stage units, of curves and points that have no width authored."""
_GOLDEN = 0.5 * (1.0 + 5.0**0.5)
_BALL = np.array(
    [[0, a, b * _GOLDEN] for a in (-1, 1) for b in (-1, 1)]
    + [[a, b * _GOLDEN, 0] for a in (-1, 1) for b in (-1, 1)]
    + [[b * _GOLDEN, 0, a] for a in (-1, 1) for b in (-1, 1)]
) / np.hypot(1.0, _GOLDEN)
"""(12, 3) corners of an icosahedron, by which a ball is drawn."""


def surface_faces(prim: Usd.Prim, time: Usd.TimeCode) -> np.ndarray:
    """(m, 3) faces of a TetMesh: authored ones, else those that belong to one tetrahedron alone."""
    mesh = UsdGeom.TetMesh(prim)
    authored = mesh.GetSurfaceFaceVertexIndicesAttr().Get(time)
    faces = authored if authored else UsdGeom.TetMesh.ComputeSurfaceFaces(mesh, time)
    return np.array([tuple(face) for face in faces], dtype=int).reshape(-1, 3)


def soft_triangles(prim: Usd.Prim, time: Usd.TimeCode) -> Triangles | None:
    """Triangles of a TetMesh, BasisCurves or Points; None: there are none."""
    points = np.array(UsdGeom.PointBased(prim).GetPointsAttr().Get(time) or (), dtype=float).reshape(-1, 3)
    if not len(points):
        return None
    if prim.IsA(UsdGeom.Points):
        return _balls(points, np.array(UsdGeom.Points(prim).GetWidthsAttr().Get(time) or [_WIDTH], dtype=float))
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


def _balls(points: np.ndarray, widths: np.ndarray) -> Triangles:
    """A ball around each point (n, 3), with the normals of a sphere; widths: (n,) or (1,), else their mean counts."""
    radii = 0.5 * (widths if len(widths) in (1, len(points)) else widths.mean(keepdims=True))
    normals = np.broadcast_to(_BALL[_BALL_FACES], (len(points), *_BALL_FACES.shape, 3))
    corners = points[:, None, None] + radii[:, None, None, None] * normals
    return Triangles(corners.reshape(-1, 3, 3), normals.reshape(-1, 3, 3))


def _icosahedron_faces() -> np.ndarray:
    """(20, 3): all triples of corners that are neighbors, counterclockwise seen from outside."""
    apart = np.linalg.norm(_BALL[:, None] - _BALL[None], axis=-1)
    near = np.abs(apart - apart[apart > 0.0].min()) < 1e-9
    triples = [t for t in combinations(range(len(_BALL)), 3) if all(near[i, j] for i, j in combinations(t, 2))]
    outward = [np.linalg.det(_BALL[list(triple)]) > 0.0 for triple in triples]
    return np.array([t if out else t[::-1] for t, out in zip(triples, outward, strict=True)])


_BALL_FACES = _icosahedron_faces()


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
