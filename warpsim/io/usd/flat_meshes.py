"""Flat, open, static Mesh prims, as scenes lay them out for ground: they collide as the top of a slab.

A sheet without thickness has no inside, so nothing says how deep a body is in it. The slab behind the sheet does; its
top is the sheet itself, within the sheet's outline.
"""

from __future__ import annotations

import numpy as np
from pxr import Usd

from warpsim.geometry.mesh_audit import weld
from warpsim.io.usd.context import Context
from warpsim.scene import Mesh, Shape

THICKNESS = 0.1
"""Of the slab, as a share of the sheet's longest edge: bodies that come fast do not get through within a step."""
_FLAT = 1e-6
"""Share of its extent by which the points of a sheet may leave its plane."""
_UPRIGHT = 0.1
"""Cosine to gravity below which it is a wall, solid behind its faces; others are solid below, however they face."""
_CONVEX = 1e-6
"""Share of the outline's area that a convex sheet may leave open."""


def is_sheet(context: Context, shape: Shape) -> bool:
    """Whether the mesh of a shape lies in a plane."""
    mesh = context.scene.meshes[str(shape.mesh)]
    return _sheet_normal(*weld(mesh.vertices, mesh.faces)) is not None


def thicken(context: Context, prim: Usd.Prim, shape: Shape) -> None:
    """Makes a static sheet a slab: its mesh, and its kind, "hull" where the outline is convex, else "mesh".

    Args:
        context: The reading; its ledger says so.
        prim: Of the mesh.
        shape: Of the scene, with a mesh for which `is_sheet` holds.
    """
    mesh = context.scene.meshes[str(shape.mesh)]
    vertices, faces = weld(mesh.vertices, mesh.faces)
    normal = _sheet_normal(vertices, faces)
    assert normal is not None, "a sheet"
    down = context.frame(prim).pose.matrix.T @ context.scene.options.gravity
    down = down / max(float(np.linalg.norm(down)), 1e-300)
    if abs(normal @ down) > _UPRIGHT and normal @ down > 0.0:
        normal = -normal
    thickness = THICKNESS * float(np.ptp(vertices, axis=0).max())
    faces = _facing(vertices, faces, normal)
    convex = _is_convex(vertices, faces, normal)
    shape.kind = "hull" if convex else "mesh"
    context.ledger.used(
        prim,
        "points",
        f"a flat static mesh: it collides as the top of a slab {thickness:.3g} m thick, solid "
        + ("below it" if abs(normal @ down) > _UPRIGHT else "behind its faces"),
    )
    context.scene.meshes[mesh.name] = _slab(mesh.name, vertices, faces, -thickness * normal)


def _sheet_normal(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray | None:
    """The unit normal that most of a sheet's area faces; None for what is no sheet."""
    if not len(faces):
        return None
    used = vertices[np.unique(faces)]
    _u, extents, axes = np.linalg.svd(used - used.mean(axis=0), full_matrices=False)
    height = (used - used.mean(axis=0)) @ axes[-1]
    if len(extents) < 3 or np.ptp(height) > _FLAT * float(np.ptp(used, axis=0).max()):
        return None
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    area = np.cross(b - a, c - a).sum(axis=0)
    return axes[-1] if area @ axes[-1] >= 0.0 else -axes[-1]


def _facing(vertices: np.ndarray, faces: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Each triangle once, turned to face along the normal; slivers without area are dropped."""
    _unique, first = np.unique(np.sort(faces, axis=1), axis=0, return_index=True)
    faces = faces[np.sort(first)]
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    area = np.cross(b - a, c - a) @ normal
    faces = np.where(area[:, None] < 0.0, faces[:, ::-1], faces)
    return faces[np.abs(area) > 1e-12 * np.abs(area).max()]


def _is_convex(vertices: np.ndarray, faces: np.ndarray, normal: np.ndarray) -> bool:
    """Whether triangles that face along the normal fill the convex outline of their corners."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    covered = 0.5 * float((np.cross(b - a, c - a) @ normal).sum())
    across = np.linalg.svd(normal[None])[2][1:]
    outline = _outline(vertices[np.unique(faces)] @ across.T)
    x, y = outline.T
    enclosed = 0.5 * abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1)))
    return abs(enclosed - covered) <= _CONVEX * enclosed


def _outline(points: np.ndarray) -> np.ndarray:
    """Corners (k, 2) of the convex outline of points (n, 2), in order (Andrew's monotone chain)."""
    ordered = points[np.lexsort((points[:, 1], points[:, 0]))]
    halves = []
    for chain in (ordered, ordered[::-1]):
        half: list[np.ndarray] = []
        for p in chain:
            while len(half) > 1 and _turn(half[-2], half[-1], p) <= 0.0:
                half.pop()
            half.append(p)
        halves += half[:-1]
    return np.array(halves)


def _turn(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def _slab(name: str, vertices: np.ndarray, top: np.ndarray, offset: np.ndarray) -> Mesh:
    """The closed mesh between a sheet and its copy at an offset behind it."""
    count = len(vertices)
    directed = np.concatenate([top[:, [0, 1]], top[:, [1, 2]], top[:, [2, 0]]])
    present = {(int(a), int(b)) for a, b in directed}
    rim = np.array([(a, b) for a, b in sorted(present) if (b, a) not in present], int).reshape(-1, 2)
    a, b = rim.T
    sides = np.concatenate([np.stack([b, a, a + count], axis=1), np.stack([b, a + count, b + count], axis=1)])
    faces = np.concatenate([top, top[:, ::-1] + count, sides])
    return Mesh(name, np.concatenate([vertices, vertices + offset]), faces.astype(np.int32))
