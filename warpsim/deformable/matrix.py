"""The Hessian of a matter: 3 × 3 blocks of its free vertices, where elements put theirs, and its factor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import warp as wp

from warpsim.core.precision import mat33, real, vec3
from warpsim.solve.block_ldl.block_ldl import BlockLdl
from warpsim.solve.block_ldl.numeric import block_factor, block_solve
from warpsim.solve.block_ldl.pattern import BlockPattern
from warpsim.solve.block_ldl.plan import BlockPlan

RAISED = wp.constant(real(0.01))
"""Share of its own diagonal entry that a pivot which is not positive is raised to, where one may be."""


@wp.struct
class Factor:
    """The matrix of each world and its factor: blocks as `Pattern` has them."""

    size: int
    plan: BlockPlan
    blocks: wp.array2d(dtype=mat33)  # (W, …) of all vertices
    constant: wp.array2d(dtype=mat33)  # (W, …) those of what does not change within a step
    diagonal: wp.array2d(dtype=mat33)  # a view of those on the matrix's diagonal
    coupling: wp.array2d(dtype=mat33)  # a view of its others
    panels: wp.array2d(dtype=real)
    work: wp.array2d(dtype=real)
    vector: wp.array2d(dtype=vec3)  # (W, size) right-hand side and solution


@wp.func
def factor_matrix(f: Factor, w: int, raised: int) -> int:
    """Factors the matrix in `blocks`; how many pivots were not positive.

    Args:
        f: Pattern and matrix.
        w: World.
        raised: Whether such pivots are replaced by positive ones; 0 leaves the factor that of the matrix.
    """
    if f.size == 0:
        return 0
    return block_factor(f.plan, w, f.diagonal, f.coupling, real(raised) * RAISED, f.panels, f.work)


@wp.func
def solve_matrix(f: Factor, w: int):
    """Solves for `vector` in place, given the factor."""
    if f.size > 0:
        block_solve(f.plan, w, f.panels, f.work, f.vector)


@dataclass(frozen=True)
class Pattern:
    """Which blocks there are.

    Blocks of vertices that bodies carry, which are no unknowns of the matrix, are kept behind its own: first couplings,
    then diagonal ones.

    Attributes:
        node: (vertices,) row of each vertex; −1: it has no unknowns.
        carried: (vertices,) row behind those of the matrix; −1: no body carries it.
        couplings: (m, 2) rows, the greater first, sorted; so those of the matrix alone come first.
    """

    node: np.ndarray
    carried: np.ndarray
    couplings: np.ndarray

    @property
    def size(self) -> int:
        """Number of block rows."""
        return int((self.node >= 0).sum())

    @property
    def inner(self) -> int:
        """Number of couplings of the matrix itself."""
        return int((self.couplings[:, 0] < self.size).sum())

    @property
    def blocks(self) -> int:
        """Number of all blocks."""
        return self.size + len(self.couplings) + int((self.carried >= 0).sum())

    def places(self, vertices: np.ndarray, *, carried: bool = False) -> np.ndarray:
        """Where the blocks of elements go.

        Args:
            vertices: (elements, corners); a corner that repeats an earlier one of its element has no block.
            carried: Whether those of carried vertices have a place, too.

        Returns:
            (elements, pairs) for corner pairs (0, 0), (1, 0), (1, 1), (2, 0) …: twice the block's index, plus 1 where
            it has to be transposed; −1 where a corner has no unknowns.
        """
        corners = vertices.shape[1] if vertices.size else 0
        pairs = [(i, j) for i in range(corners) for j in range(i + 1)]
        out = np.full((len(vertices), max(len(pairs), 1)), -1, np.int32)
        nodes = np.maximum(self.node, self.carried) if carried else self.node
        stride = self.size + len(self.node)
        keys = self.couplings[:, 0].astype(np.int64) * stride + self.couplings[:, 1]
        repeated = np.zeros(vertices.shape, bool)
        for i in range(corners):
            repeated[:, i] = (vertices[:, :i] == vertices[:, i : i + 1]).any(axis=1)
        for k, (i, j) in enumerate(pairs):
            a, b = nodes[vertices[:, i]], nodes[vertices[:, j]]
            row, column = np.maximum(a, b), np.minimum(a, b)
            diagonal = np.where(row < self.size, row, row + len(self.couplings))
            spot = np.where(row == column, diagonal, self.size + np.searchsorted(keys, row * stride + column))
            there = (column >= 0) & ~repeated[:, i] & ~repeated[:, j]
            out[there, k] = (2 * spot + (a < b))[there]
        return out


def make_pattern(
    vertices: int, free: np.ndarray, elements: Iterable[np.ndarray], carried: Iterable[int] = ()
) -> Pattern:
    """Blocks of elements among the free vertices, and those that bodies carry.

    Args:
        vertices: Number of them.
        free: (vertices,) which have unknowns.
        elements: Vertices (n, corners) of each kind of element: all corners of one are coupled.
        carried: Vertices whose motion is that of bodies which are unknowns elsewhere.
    """
    node, behind = (np.full(vertices, -1, np.int64) for _ in range(2))
    node[free] = np.arange(int(free.sum()))
    behind[list(carried)] = int(free.sum()) + np.arange(len(list(carried)))
    row = np.maximum(node, behind)
    found = [np.zeros((0, 2), np.int64)]
    for kind in elements:
        corners = kind.shape[1] if kind.size else 0
        for i in range(corners):
            for j in range(i):
                pair = row[kind[:, [i, j]]]
                found.append(np.sort(pair[(pair >= 0).all(axis=1) & (pair[:, 0] != pair[:, 1])], axis=1)[:, ::-1])
    return Pattern(node, behind, np.unique(np.concatenate(found), axis=0))


def make_factor(pattern: Pattern, points: np.ndarray, worlds: int, device: wp.Device) -> Factor:
    """Room for the matrices of all worlds; orders the pattern by where the vertices are."""
    free = pattern.node >= 0
    out = Factor()
    if not pattern.size:
        out.blocks, out.constant = (
            wp.zeros((worlds, max(pattern.blocks, 1)), dtype=mat33, device=device) for _ in range(2)
        )
        return out
    size, inner = pattern.size, pattern.inner
    ldl = BlockLdl(BlockPattern.of(size, pattern.couplings[:inner]), worlds, places=points[free], device=device)
    out.size, out.plan, out.panels, out.work = size, ldl.plan, ldl.panels, ldl.work
    out.blocks, out.constant = (wp.zeros((worlds, pattern.blocks), dtype=mat33, device=device) for _ in range(2))
    out.diagonal, out.coupling = out.blocks[:, :size], out.blocks[:, size : size + inner]
    out.vector = wp.zeros((worlds, pattern.size), dtype=vec3, device=device)
    return out
