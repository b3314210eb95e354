"""Connectivity that follows from a matter's parts: hinges between triangles, joints between segments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpsim.core.errors import SceneError
from warpsim.deformable.description import Curve, Matter, Sheet, Volume, values_of, vertices_of
from warpsim.deformable.interpolation import QUADRATIC


@dataclass(frozen=True)
class Topology:
    """Elements of a whole matter, and authored values per element.

    Attributes:
        membrane: (n, 3) triangles.
        tetrahedra: (n, 4), or (n, 10) where they are quadratic, four in a row for one of them.
        segments: (n, 2).
        hinges: (n, 4): the edge's two vertices, then those opposite.
        hinge_triangles: (n, 2) the triangles on both sides.
        folds: (n, 4) hinges with angles of rest: the edge as the first triangle runs along it, then as above.
        fold_triangles: (n, 2) the triangles on both sides.
        fold_shaped: (n,) 1: the angle of the rest shape counts, too.
        joints: (n, 3) consecutive vertices of curves.
        joint_segments: (n, 2) the segments on both sides.
        values: Parameter name → (n,) authored values.
    """

    membrane: np.ndarray
    tetrahedra: np.ndarray
    segments: np.ndarray
    hinges: np.ndarray
    hinge_triangles: np.ndarray
    folds: np.ndarray
    fold_triangles: np.ndarray
    fold_shaped: np.ndarray
    joints: np.ndarray
    joint_segments: np.ndarray
    values: dict[str, np.ndarray]

    @property
    def bends(self) -> np.ndarray:
        """(hinges + joints, 4) stencils; a joint repeats its first vertex."""
        joints = np.concatenate([self.joints, self.joints[:, :1]], axis=1)
        return np.concatenate([self.hinges, joints]).astype(np.int32)


_MATERIAL = {
    "membrane": (Sheet, ("young", "poisson", "thickness", "density", "damping")),
    "tetrahedra": (Volume, ("young", "poisson", "density", "damping")),
    "segments": (Curve, ("young", "radius", "density", "damping")),
}


def hinges(triangles: np.ndarray, name: str = "sheet") -> tuple[np.ndarray, np.ndarray]:
    """Inner edges in the order of their vertices: (n, 4) edge and opposite vertices, (n, 2) triangles.

    Raises:
        SceneError: More than two triangles share an edge.
    """
    sides: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for t, corners in enumerate(triangles.tolist()):
        for i in range(3):
            a, b, opposite = corners[i], corners[(i + 1) % 3], corners[(i + 2) % 3]
            sides.setdefault((min(a, b), max(a, b)), []).append((t, opposite))
    stencils, pairs = [], []
    for edge in sorted(sides):
        if len(sides[edge]) > 2:
            found = [t for t, _ in sides[edge]]
            raise SceneError(f"{name}: triangles {found} share the edge {edge}; a surface has at most two there")
        if len(sides[edge]) == 2:
            (first, a), (second, b) = sides[edge]
            stencils.append([*edge, a, b])
            pairs.append([first, second])
    return np.array(stencils, np.int32).reshape(-1, 4), np.array(pairs, np.int32).reshape(-1, 2)


def along_first(stencils: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Hinges (n, 4) with their edges turned so that their first triangles (n, 3) run along them."""
    following = np.roll(triangles, -1, axis=1)
    along = ((triangles == stencils[:, :1]) & (following == stencils[:, 1:2])).any(axis=1)
    return np.where(along[:, None], stencils, stencils[:, [1, 0, 2, 3]])


def _corners_of(tetrahedra: list[np.ndarray]) -> int:
    """Corners of all tetrahedra of a matter."""
    found = {part.shape[1] for part in tetrahedra} or {4}
    if len(found) > 1:
        raise SceneError("a matter has linear and quadratic tetrahedra; make all of one kind")
    return found.pop()


def make_topology(matter: Matter) -> Topology:
    """Puts the parts of a checked matter together."""
    values: dict[str, list[np.ndarray]] = {}
    found: dict[str, list[np.ndarray]] = {kind: [] for kind in _MATERIAL}
    bends: dict[str, list[np.ndarray]] = {"hinges": [], "folds": [], "joints": []}
    sides: dict[str, list[np.ndarray]] = {"hinges": [], "folds": [], "joints": []}
    shaped = [np.zeros(0, np.int32)]
    for part in matter.parts:
        kind = next(k for k, (cls, _) in _MATERIAL.items() if isinstance(part, cls))
        vertices = vertices_of(part)
        before = sum(map(len, found[kind]))
        times = 4 if isinstance(part, Volume) and vertices.shape[1] == QUADRATIC else 1
        found[kind].append(np.repeat(vertices, times, axis=0))
        for name in _MATERIAL[kind][1]:
            given = values_of(part, name, len(vertices))
            values.setdefault(f"{kind}.{name}", []).append(np.repeat(given, times))
        if isinstance(part, Sheet):
            stencils, pairs = hinges(vertices, part.name)
            where = "hinges"
            if part.angle is not None:
                where, stencils = "folds", along_first(stencils, vertices[pairs[:, 0]])
        elif isinstance(part, Curve):
            stencils = np.concatenate([vertices[:-1], vertices[1:, 1:]], axis=1)
            pairs = np.stack([np.arange(len(vertices) - 1), np.arange(1, len(vertices))], axis=1)
            where = "joints"
        else:
            continue
        if not np.any(values_of(part, "bending", len(stencils))):
            continue  # nothing resists bending: neither elements nor, in the matrix, their blocks
        if where == "folds":
            values.setdefault("folds.angle", []).append(values_of(part, "angle", len(stencils)))
            shaped.append(values_of(part, "shaped", len(stencils)).astype(np.int32))
        bends[where].append(stencils)
        sides[where].append(pairs + before)
        values.setdefault(f"{where}.factor", []).append(values_of(part, "bending", len(stencils)))

    def joined(arrays: list[np.ndarray], width: int) -> np.ndarray:
        return np.concatenate([np.zeros((0, width), np.int32), *arrays]).astype(np.int32)

    return Topology(
        membrane=joined(found["membrane"], 3),
        tetrahedra=joined(found["tetrahedra"], _corners_of(found["tetrahedra"])),
        segments=joined(found["segments"], 2),
        hinges=joined(bends["hinges"], 4),
        hinge_triangles=joined(sides["hinges"], 2),
        folds=joined(bends["folds"], 4),
        fold_triangles=joined(sides["folds"], 2),
        fold_shaped=np.concatenate(shaped),
        joints=joined(bends["joints"], 3),
        joint_segments=joined(sides["joints"], 2),
        values={name: np.concatenate(parts) for name, parts in values.items()},
    )
