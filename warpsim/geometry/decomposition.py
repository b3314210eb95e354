"""Unions of convex pieces that stand for a concave mesh.

The solid is cut by planes across its axes until the hull of every part sticks out of the solid by less than the
tolerance; then parts are joined again wherever the hull of the two does too. A cut is chosen by what it parts: of many
pairs of points on the part's surface that cannot see each other within the solid, as many as possible should end on
different sides. Everything is computed in double precision from fixed samples, in a fixed order, and kept on disk by
content (`disk_cache`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import combinations

import numpy as np
from tqdm.auto import tqdm

from warpsim.core.errors import SceneError, unknown_name
from warpsim.geometry.convex_cells import Cell, Piece, Solid, surface_samples
from warpsim.geometry.disk_cache import content_key, load_arrays, store_arrays
from warpsim.geometry.hulls import shape_mesh
from warpsim.geometry.mesh_audit import audit_mesh
from warpsim.geometry.mesh_distance import audit_sign
from warpsim.scene.description import Decomposition, Mesh, Scene
from warpsim.scene.pieces import add_pieces, piece_name

_FORMAT = 1
"""Raise when the stored content or the way it is found changes."""
_SURFACE_POINTS = 512
_PAIRS = 2000
_ALONG = np.linspace(0.0, 1.0, 9)[1:-1]
_OFFSETS = 24
_BALANCE = 0.1
"""How much of the pairs' weight a cut at the very edge of a part must save over one in its middle."""
_CELLS_PER_PIECE = 4
"""Cells before parts are joined, at most, per piece that is allowed."""
_SAFE = 0.95
"""Share of the tolerance that samples may find: they miss the deepest point by a little."""
_JOIN_PAIRS = 200
_REPORT_SAMPLES = 8000
_REPORT_GRID = 64
_SHOW_AFTER = 2.0
"""s: shorter searches show no progress bar."""


@dataclass(frozen=True)
class ConvexPieces:
    """A union of convex pieces and how well it fits, in the mesh's own coordinates."""

    vertices: tuple[np.ndarray, ...]
    """Per piece (n, 3)."""
    faces: tuple[np.ndarray, ...]
    """Per piece (m, 3), outward."""
    depth: float
    """The furthest that a piece sticks out of the mesh, as a share of its longest edge; sampled."""
    excess: float
    """Volume of the union over that of the mesh, less one; sampled on a lattice."""


def decompose(
    vertices: np.ndarray, faces: np.ndarray, settings: Decomposition, *, name: str = "mesh", cache: bool = True
) -> ConvexPieces:
    """Finds convex pieces whose union stands for a mesh, or loads them from the cache.

    Args:
        vertices: (n, 3), any unit.
        faces: (m, 3) of a closed mesh, outward (`audit_mesh` has passed it).
        settings: Tolerance and limits.
        name: Of the mesh, for errors and the progress bar.
        cache: Whether to read and write the disk cache.

    Returns:
        The pieces, largest first.

    Raises:
        SceneError: The mesh overlaps itself.
    """
    vertices, faces = np.asarray(vertices, np.float64), np.asarray(faces, np.int64)
    key = content_key(f"{_FORMAT} {sorted(asdict(settings).items())}", vertices, faces)
    stored = load_arrays("pieces", key, ("vertices", "faces", "vertex_count", "face_count", "fit")) if cache else None
    if stored is not None:
        return _unpacked(stored)
    pieces = _search(vertices, faces, settings, name)
    if cache:
        store_arrays("pieces", key, **_packed(pieces))
    return pieces


def decompose_shape(scene: Scene, name: str, settings: Decomposition | None = None) -> ConvexPieces:
    """Makes a mesh shape of a scene collide as a union of convex pieces.

    Args:
        scene: Changed in place.
        name: Of a shape of kind mesh.
        settings: Tolerance and limits; None: the defaults.

    Returns:
        The pieces, in the mesh's coordinates, and how well they fit.

    Raises:
        UnknownNameError: There is no such shape.
        SceneError: It is of another kind, is in pieces already, or its mesh encloses no volume.
    """
    shapes = {shape.name: shape for shape in scene.shapes}
    if name not in shapes:
        raise unknown_name("shape", name, shapes)
    shape = shapes[name]
    if shape.kind != "mesh" or not shape.collides:
        raise SceneError(
            f"shape {name!r} is of kind {shape.kind!r}; only a mesh that collides is taken apart, and once"
        )
    mesh, settings = shape_mesh(scene, shape), settings or Decomposition()
    audit_mesh(mesh)
    found = decompose(mesh.vertices, mesh.faces, settings, name=mesh.name)
    parts = enumerate(zip(found.vertices, found.faces, strict=True))
    add_pieces(scene, shape, [Mesh(piece_name(name, i), *part) for i, part in parts], settings)
    return found


def _packed(pieces: ConvexPieces) -> dict[str, np.ndarray]:
    return {
        "vertices": np.concatenate(pieces.vertices),
        "faces": np.concatenate(pieces.faces),
        "vertex_count": np.array([len(v) for v in pieces.vertices]),
        "face_count": np.array([len(f) for f in pieces.faces]),
        "fit": np.array([pieces.depth, pieces.excess]),
    }


def _unpacked(stored: dict[str, np.ndarray]) -> ConvexPieces:
    vertices = np.split(stored["vertices"], np.cumsum(stored["vertex_count"])[:-1])
    faces = np.split(stored["faces"], np.cumsum(stored["face_count"])[:-1])
    return ConvexPieces(tuple(vertices), tuple(faces), *map(float, stored["fit"]))


def _search(vertices: np.ndarray, faces: np.ndarray, settings: Decomposition, name: str) -> ConvexPieces:
    solid = Solid(vertices, faces)
    audit_sign(name, solid.vertices, solid.faces, solid.distance)
    pieces = _join(solid, [cell.piece for cell in _cells(solid, settings, name)], settings)
    pieces.sort(key=lambda piece: -piece.volume)
    depth = max(solid.depth(p.vertices, p.faces, _REPORT_SAMPLES) for p in pieces)
    return ConvexPieces(
        tuple(p.vertices * solid.extent + solid.center for p in pieces),
        tuple(p.faces for p in pieces),
        depth,
        _union_volume(pieces) / solid.volume - 1.0,
    )


def _cells(solid: Solid, settings: Decomposition, name: str) -> list[Cell]:
    """Cuts the worst cell in two until all hulls fit, or there are too many."""
    whole = solid.whole(settings.max_vertices)
    assert whole is not None, "an audited mesh encloses a volume"
    cells = [whole]
    with tqdm(desc=f"convex pieces of {name}", unit=" cuts", delay=_SHOW_AFTER) as bar:
        while len(cells) < _CELLS_PER_PIECE * settings.max_pieces:
            worst = max(range(len(cells)), key=lambda i: cells[i].piece.depth)
            if cells[worst].piece.depth <= _SAFE * settings.tolerance:
                break
            cell = cells.pop(worst)
            cells += solid.split(cell, *_best_cut(solid, cell), settings.max_vertices)
            bar.update()
    return cells


def _best_cut(solid: Solid, cell: Cell) -> tuple[int, float]:
    """(axis, offset) of the plane that parts most pairs of points that do not see each other."""
    random = np.random.default_rng(1)
    points = np.concatenate([surface_samples(cell.triangles, _SURFACE_POINTS), cell.piece.vertices])
    first, second = points[random.integers(len(points), size=(2, _PAIRS))]
    weight = np.maximum(0.0, _outside_between(solid, first, second)) ** 2
    low, high = np.minimum(first, second), np.maximum(first, second)
    longest = int(np.argmax(cell.high - cell.low))
    best, found = np.inf, (longest, 0.5 * float(cell.low[longest] + cell.high[longest]))
    for axis in range(3):
        middle, half = 0.5 * (cell.low + cell.high)[axis], 0.5 * (cell.high - cell.low)[axis]
        offsets = _offsets(cell, axis)
        if not len(offsets):
            continue
        inside = (low[:, axis] <= offsets[:, None] + 1e-6) & (high[:, axis] >= offsets[:, None] - 1e-6)
        parted = (inside & (high - low > 2e-6)[:, axis]) @ weight
        cost = 1.0 - parted / max(weight.sum(), 1e-300) + _BALANCE * ((offsets - middle) / half) ** 2
        place = int(cost.argmin())
        if cost[place] < best - 1e-12:
            best, found = cost[place], (axis, float(offsets[place]))
    return found


def _offsets(cell: Cell, axis: int) -> np.ndarray:
    """Where a plane across an axis may cut: evenly spaced places, and those of the surface's corners."""
    low, high = cell.low[axis], cell.high[axis]
    even = np.linspace(low, high, _OFFSETS + 2)[1:-1]
    corners = np.unique(cell.triangles[:, :, axis].round(6))
    corners = corners[:: max(1, len(corners) // _OFFSETS)]
    offsets = np.unique(np.concatenate([even, corners]))
    edge = 1e-3 * (high - low)
    return offsets[(offsets > low + edge) & (offsets < high - edge)]


def _outside_between(solid: Solid, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(n,): how far the straight ways between points (n, 3) lead out of the solid."""
    ways = first[:, None] + (second - first)[:, None] * _ALONG[:, None]
    return solid.roughly(ways.reshape(-1, 3)).reshape(len(first), -1).max(axis=1)


def _join(solid: Solid, pieces: list[Piece], settings: Decomposition) -> list[Piece]:
    """Joins neighbors whose common hull fits, best first; with too many pieces also those that fit worst."""
    known = dict(enumerate(pieces))
    cost, allowed = _join_costs(solid, known, combinations(known, 2)), _SAFE * settings.tolerance
    while cost:
        a, b = min(cost, key=lambda pair: (cost[pair], pair))
        too_many = len(known) > settings.max_pieces
        if cost[a, b] > allowed and not too_many:
            break
        both = np.concatenate([known[a].vertices, known[b].vertices])
        joined = solid.hull(both, settings.max_vertices)
        assert joined is not None, "a hull with volume keeps it"
        if joined.depth > max(allowed, cost[a, b]) + 1e-9:
            cost[a, b] = joined.depth  # judged by its hull, it has to wait for its turn, which may not come
            continue
        del known[a], known[b]
        cost = {pair: value for pair, value in cost.items() if not {a, b} & set(pair)}
        new = max(known, default=0) + 1 + max(a, b)
        known[new] = joined
        cost.update(_join_costs(solid, known, [(other, new) for other in known if other != new]))
    return list(known.values())


def _join_costs(
    solid: Solid, pieces: dict[int, Piece], pairs: Iterable[tuple[int, int]]
) -> dict[tuple[int, int], float]:
    """For pairs that touch: how far straight ways from one to the other lead out of the solid, a first guess."""
    touching = [(a, b) for a, b in pairs if _touch(pieces[a].vertices, pieces[b].vertices)]
    if not touching:
        return {}
    random = np.random.default_rng(2)
    shares = random.random((2, _JOIN_PAIRS))
    ends = [
        [
            pieces[k].vertices[(share * len(pieces[k].vertices)).astype(int)]
            for k, share in zip(pair, shares, strict=True)
        ]
        for pair in touching
    ]
    first, second = (np.concatenate([end[side] for end in ends]) for side in range(2))
    outside = _outside_between(solid, first, second).reshape(len(touching), -1).max(axis=1)
    return {pair: float(max(0.0, depth)) for pair, depth in zip(touching, outside, strict=True)}


def _touch(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether the boxes around two point sets meet."""
    return bool((a.min(axis=0) <= b.max(axis=0) + 1e-6).all() and (b.min(axis=0) <= a.max(axis=0) + 1e-6).all())


def _union_volume(pieces: list[Piece]) -> float:
    """Volume of the union: what pieces count twice is taken from their sum by a lattice of points."""
    low = np.min([p.vertices.min(axis=0) for p in pieces], axis=0)
    step = float(np.max([np.ptp(p.vertices, axis=0) for p in pieces])) / _REPORT_GRID
    total = sum(p.volume for p in pieces)
    return total - _overlap(pieces, low, step)


def _overlap(pieces: list[Piece], low: np.ndarray, step: float) -> float:
    high = np.max([p.vertices.max(axis=0) for p in pieces], axis=0)
    axes = [np.arange(a + 0.5 * step, b, step) for a, b in zip(low, high, strict=True)]
    count = np.zeros([len(axis) for axis in axes], np.int32)
    for piece in pieces:
        start = [int(np.searchsorted(axis, v)) for axis, v in zip(axes, piece.vertices.min(axis=0), strict=True)]
        end = [int(np.searchsorted(axis, v)) for axis, v in zip(axes, piece.vertices.max(axis=0), strict=True)]
        window = tuple(slice(s, e) for s, e in zip(start, end, strict=True))
        points = np.stack(np.meshgrid(*(axis[w] for axis, w in zip(axes, window, strict=True)), indexing="ij"), axis=-1)
        corner = piece.vertices[piece.faces]
        normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
        offset = (normal * corner[:, 0]).sum(axis=1)
        count[window] += (points @ normal.T < offset).all(axis=-1)
    return float(np.maximum(count - 1, 0).sum()) * step**3
