"""Convex hulls of a scene's shapes as the flat arrays that kernels read."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import warp as wp

from warpsim.collision.oriented_box import HullBoxes
from warpsim.collision.prism_arrays import EDGES, FACES, Prisms, make_prisms
from warpsim.collision.support import HullData
from warpsim.core.precision import numpy_real, vec3
from warpsim.geometry.hulls import Hull, convex_hull, shape_mesh
from warpsim.scene.description import Scene

_DIAGONALS = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, -1.0], [1.0, -1.0, 1.0], [-1.0, 1.0, 1.0]])
_LARGE = 40
"""Vertices from which on a hull's furthest one is climbed to."""
_WAYS = np.array([s * np.array(w) for w in np.concatenate([np.eye(3), _DIAGONALS]) for s in (1.0, -1.0)])
"""Where such a climb may begin."""


def starts_of(parts: Sequence[np.ndarray | None]) -> np.ndarray:
    """(n + 1,) int32 offsets of parts laid end to end; None is empty."""
    return np.concatenate([[0], np.cumsum([0 if p is None else len(p) for p in parts])]).astype(np.int32)


def stacked(parts: Sequence[np.ndarray | None], width: int, dtype: type) -> np.ndarray:
    """All parts end to end, (n, width)."""
    present = [np.asarray(p) for p in parts if p is not None and len(p)]
    return (np.concatenate(present) if present else np.zeros((0, width))).astype(dtype)


def hull_data(
    scene: Scene, wanted: Collection[int], device: wp.DeviceLike = None
) -> tuple[HullData, HullBoxes, np.ndarray]:
    """Builds the hulls of the wanted shapes of kind hull.

    Args:
        scene: Where the shapes are.
        wanted: Their indices; others get no hull.
        device: Where the arrays live.

    Returns:
        The device arrays, the boxes about the hulls, and (ns,) radii (m) of the balls about the shapes' origins that
        hold them at scale one (zero for other kinds).
    """
    hulls: list[Hull | None] = []
    cache: dict[str, Hull] = {}
    for i, shape in enumerate(scene.shapes):
        if shape.kind != "hull" or i not in wanted:
            hulls.append(None)
            continue
        mesh = shape_mesh(scene, shape)
        if mesh.name not in cache:
            cache[mesh.name] = convex_hull(mesh)
        hulls.append(cache[mesh.name])
    vertices = [None if h is None else h.vertices for h in hulls]
    edges = [None if h is None else h.edges for h in hulls]
    faces = [None if h is None else h.faces for h in hulls]
    prisms = _prisms(scene, wanted)
    count = len(prisms.vertices)
    data = HullData()
    data.prism_grid = wp.array(prisms.grid, dtype=wp.vec3i, device=device)
    data.vertex_start = wp.array(_starts_with_prisms(vertices, count, 6), dtype=wp.int32, device=device)
    corners = [*vertices, prisms.vertices.reshape(-1, 3)]
    data.vertex = wp.array(stacked(corners, 3, numpy_real), dtype=vec3, device=device)
    data.edge_start = wp.array(_starts_with_prisms(edges, count, len(EDGES)), dtype=wp.int32, device=device)
    edges = [*edges, np.tile(EDGES, (count, 1))]
    data.edge = wp.array(stacked(edges, 2, np.int32).reshape(-1, 2), dtype=wp.int32, device=device)
    data.face_start = wp.array(_starts_with_prisms(faces, count, len(FACES)), dtype=wp.int32, device=device)
    faces = [*faces, np.tile(FACES, (count, 1))]
    data.face_vertex = wp.array(stacked(faces, 3, np.int32).reshape(-1, 3), dtype=wp.int32, device=device)
    normals = [*(None if h is None else h.normals for h in hulls), prisms.normals.reshape(-1, 3)]
    data.face_normal = wp.array(stacked(normals, 3, numpy_real), dtype=vec3, device=device)
    outlines = [None if h is None else h.outline_normals for h in hulls]
    data.patch_start = wp.array(starts_of(outlines), dtype=wp.int32, device=device)
    data.patch_normal = wp.array(stacked(outlines, 3, numpy_real), dtype=vec3, device=device)
    loops = [loop for h in hulls if h is not None for loop in h.outlines]
    data.loop_start = wp.array(starts_of(loops), dtype=wp.int32, device=device)
    data.loop = wp.array(np.concatenate([*loops, []]).astype(np.int32), dtype=wp.int32, device=device)
    meeting = [patches for h in hulls if h is not None for patches in _patches_of_vertices(h)]
    data.vertex_patch_start = wp.array(starts_of(meeting), dtype=wp.int32, device=device)
    data.vertex_patch = wp.array(np.concatenate([*meeting, []]).astype(np.int32), dtype=wp.int32, device=device)
    around = [neighbors for h in hulls if h is not None for neighbors in _neighbors(h)]
    data.neighbor_start = wp.array(starts_of(around), dtype=wp.int32, device=device)
    data.neighbor = wp.array(np.concatenate([*around, []]).astype(np.int32), dtype=wp.int32, device=device)
    extremes = np.array([_extremes(h) for h in hulls], np.int32).reshape(-1, len(_WAYS))
    data.extreme = wp.array(extremes, dtype=wp.int32, device=device)
    radii = np.array([0.0 if h is None else np.linalg.norm(h.vertices, axis=1).max() for h in hulls])
    return data, _boxes(vertices, device), radii


def _starts_with_prisms(parts: Sequence[np.ndarray | None], count: int, each: int) -> np.ndarray:
    """Offsets of the shapes' parts and of a number of prisms after them."""
    starts = starts_of(parts)
    return np.concatenate([starts, starts[-1] + each * np.arange(1, count + 1, dtype=np.int32)]).astype(np.int32)


def _prisms(scene: Scene, wanted: Collection[int]) -> Prisms:
    """The prisms of all wanted height fields that collide by them."""
    made: list[Prisms] = []
    grid = np.zeros((len(scene.shapes), 3), np.int32)
    first = len(scene.shapes)
    for i, shape in enumerate(scene.shapes):
        if shape.kind == "heightfield" and i in wanted and shape_mesh(scene, shape).prisms is not None:
            made.append(make_prisms(shape_mesh(scene, shape)))
            grid[i] = (*made[-1].grid[0][:2], first)
            first += len(made[-1].vertices)
    vertices = np.concatenate([np.zeros((0, 6, 3)), *(p.vertices for p in made)])
    return Prisms(vertices, np.concatenate([np.zeros((0, 5, 3)), *(p.normals for p in made)]), grid)


def _boxes(vertices: Sequence[np.ndarray | None], device: wp.DeviceLike) -> HullBoxes:
    """Boxes along the shapes' own axes about the vertices of each."""
    low = np.array([np.zeros(3) if v is None else v.min(axis=0) for v in vertices]).reshape(-1, 3)
    high = np.array([np.zeros(3) if v is None else v.max(axis=0) for v in vertices]).reshape(-1, 3)
    boxes = HullBoxes()
    boxes.center = wp.array((0.5 * (low + high)).astype(numpy_real), dtype=vec3, device=device)
    boxes.half = wp.array((0.5 * (high - low)).astype(numpy_real), dtype=vec3, device=device)
    return boxes


def _neighbors(hull: Hull) -> list[np.ndarray]:
    """For each vertex those it has an edge to, ascending; edges are pairs of numbers."""
    both = np.unique(np.concatenate([hull.edges, hull.edges[:, ::-1]]), axis=0)
    return np.split(both[:, 1], np.searchsorted(both[:, 0], np.arange(1, len(hull.vertices))))


def _extremes(hull: Hull | None) -> np.ndarray:
    """The vertices furthest along `_WAYS` that have edges; −1 where all vertices are as quickly tried."""
    if hull is None or len(hull.vertices) < _LARGE:
        return np.full(len(_WAYS), -1)
    reached = np.unique(hull.edges)
    return reached[np.argmax(hull.vertices[reached] @ _WAYS.T, axis=0)]


def _patches_of_vertices(hull: Hull) -> list[np.ndarray]:
    """For each vertex the outlines it is a corner of, ascending."""
    vertex = np.concatenate(hull.outlines)
    patch = np.repeat(np.arange(len(hull.outlines)), [len(loop) for loop in hull.outlines])
    order = np.argsort(vertex, kind="stable")
    return np.split(patch[order], np.searchsorted(vertex[order], np.arange(1, len(hull.vertices))))
