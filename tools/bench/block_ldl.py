"""The block-sparse factor against SciPy's sparse LU and NumPy's dense Cholesky, on patterns of cloth and soft blocks.

    python -m tools.bench.block_ldl [--json FILE] [--markdown FILE]

All sides factor and solve the same matrix in turn; solutions are compared.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
import scipy.sparse as sparse
import warp as wp
from scipy.sparse.linalg import splu

from tools.bench.report import add_files, environment, publish
from tools.bench.timing import Workload, measure
from warpsim.core.precision import mat33, vec3
from warpsim.solve.block_ldl.block_ldl import BlockLdl
from warpsim.solve.block_ldl.pattern import BlockPattern

_CLOTH = ((1, 0, 0), (0, 1, 0), (1, 1, 0), (2, 1, 0), (1, 2, 0), (1, -1, 0))
"""Edges of triangles, and the vertices opposite to one another across an edge."""
_TETS = ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 0, 1), (0, 1, 1), (1, 1, 1))
"""Edges of cubes cut into six tetrahedra each."""
_DENSE_LIMIT = 2000
"""Rows up to which a dense factor is worth waiting for."""


@dataclass(frozen=True)
class Lattice:
    """Nodes on a grid, each coupled with the nodes at some offsets."""

    name: str
    pattern: BlockPattern
    places: np.ndarray
    """(n, 3), m."""


def _lattice(name: str, shape: tuple[int, int, int], offsets: tuple[tuple[int, int, int], ...]) -> Lattice:
    places = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1).reshape(-1, 3)
    number = {tuple(place): i for i, place in enumerate(places.tolist())}
    moved = ((number[tuple(p)], number.get(tuple(np.add(p, o).tolist()))) for p in places.tolist() for o in offsets)
    pairs = [(i, j) for i, j in moved if j is not None]
    return Lattice(name, BlockPattern.of(len(places), pairs), places.astype(float))


def cloth(side: int) -> Lattice:
    """A square cloth of side² vertices with bending."""
    return _lattice(f"cloth {side}²", (side, side, 1), _CLOTH)


def soft_block(side: int) -> Lattice:
    """A cube of side³ vertices, cut into tetrahedra."""
    return _lattice(f"block {side}³", (side, side, side), _TETS)


def random_blocks(pattern: BlockPattern, seed: int = 0, mass: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Diagonal (n, 3, 3) and coupling (m, 3, 3) blocks of a positive definite matrix: random springs, and a mass."""
    rng = np.random.default_rng(seed)
    spread = rng.normal(size=(len(pattern.pairs), 3, 3))
    first, second = np.eye(3) + 0.3 * spread, -np.eye(3) + 0.2 * spread.transpose(0, 2, 1)
    diagonal = np.tile(mass * np.eye(3), (pattern.count, 1, 1))
    np.add.at(diagonal, pattern.pairs[:, 0], first.transpose(0, 2, 1) @ first)
    np.add.at(diagonal, pattern.pairs[:, 1], second.transpose(0, 2, 1) @ second)
    return diagonal, first.transpose(0, 2, 1) @ second


def assembled(pattern: BlockPattern, diagonal: np.ndarray, coupling: np.ndarray) -> sparse.csc_matrix:
    """The whole symmetric matrix, (3n, 3n)."""
    every = np.concatenate([np.tile(np.arange(pattern.count)[:, None], (1, 2)), pattern.pairs, pattern.pairs[:, ::-1]])
    values = np.concatenate([diagonal, coupling, coupling.transpose(0, 2, 1)])
    rows = np.broadcast_to(3 * every[:, 0, None, None] + np.arange(3)[:, None], values.shape)
    columns = np.broadcast_to(3 * every[:, 1, None, None] + np.arange(3), values.shape)
    size = 3 * pattern.count
    return sparse.csc_matrix((values.reshape(-1), (rows.reshape(-1), columns.reshape(-1))), shape=(size, size))


@dataclass(frozen=True)
class Point:
    """One factor or solve of one matrix."""

    name: str
    rows: int
    label: str
    microseconds: float
    """The median round."""
    operations: int
    """Of our factor."""
    symbolic: float
    """Seconds that our ordering took."""


def _captured(launches) -> wp.Graph:
    with wp.ScopedCapture("cpu") as capture:
        launches()
    return capture.graph


def points(lattice: Lattice, repeats: int) -> Iterator[Point]:
    """All sides on one matrix.

    Raises:
        RuntimeError: The solutions differ.
    """
    pattern = lattice.pattern
    diagonal, coupling = random_blocks(pattern)
    matrix = assembled(pattern, diagonal, coupling)
    right = np.random.default_rng(1).normal(size=matrix.shape[0])
    start = time.perf_counter()
    ldl = BlockLdl(pattern, places=lattice.places, device="cpu")
    symbolic = time.perf_counter() - start
    blocks = [wp.array(values[None], dtype=mat33, device="cpu") for values in (diagonal, coupling)]
    x = wp.array(right.reshape(1, -1, 3), dtype=vec3, device="cpu")
    ldl.factor(*blocks)
    ldl.solve(x)

    def lu():
        return splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})

    theirs = lu()
    if not np.allclose(x.numpy().reshape(-1), theirs.solve(right), rtol=1e-9, atol=1e-12):
        raise RuntimeError(f"{lattice.name}: the solutions differ")
    factor, solve = _captured(lambda: ldl.factor(*blocks)), _captured(lambda: ldl.solve(x))
    runs = {
        "factor": lambda: wp.capture_launch(factor),
        "solve": lambda: wp.capture_launch(solve),
        "SciPy's factor": lu,
        "SciPy's solve": lambda: theirs.solve(right),
    }
    if matrix.shape[0] <= _DENSE_LIMIT:
        dense = matrix.toarray()
        runs["NumPy's dense factor"] = lambda: np.linalg.cholesky(dense)
    timings = measure([Workload(label, run, lambda: right) for label, run in runs.items()], repeats=repeats)
    for label, timing in timings.items():
        yield Point(lattice.name, matrix.shape[0], label, 1e6 * timing.median, ldl.sizes.operations, round(symbolic, 3))


def to_markdown(rows: list[Point]) -> str:
    """A table of µs."""
    here = environment("tools.bench.block_ldl")
    lines = [
        f"`{here['command']}`",
        "",
        f"{here['processor']}; processor time on one thread.",
        "",
        "| matrix | rows | what | µs | GFLOP/s | ordering, s |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        rate = f"{1e-3 * row.operations / row.microseconds:.1f}" if row.label == "factor" else ""
        symbolic = f"{row.symbolic}" if row.label == "factor" else ""
        lines.append(f"| {row.name} | {row.rows} | {row.label} | {row.microseconds:.0f} | {rate} | {symbolic} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Measures and writes the reports."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.block_ldl", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    add_files(parser)
    options = parser.parse_args()
    matrices = (cloth(20), cloth(40), soft_block(6), soft_block(10))
    rows = [point for lattice in matrices for point in points(lattice, options.repeats)]
    found = {"environment": environment("tools.bench.block_ldl"), "rows": [asdict(row) for row in rows]}
    publish(options, to_markdown(rows), found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
