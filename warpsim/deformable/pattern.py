"""Pattern of a symmetric matrix of 3×3 blocks and of its factor: elimination order, fill, list of updates.

Everything here runs once, on the host. Blocks of the factor stand column by column, the diagonal block first and then
the rows below it, ascending; the matrix is assembled into the same places.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Pattern:
    """The factor of one matrix.

    Attributes:
        node: (vertices,) place of each vertex in the elimination order; −1: it has no unknowns.
        start: (n + 1,) first block of each column.
        row: (blocks,) row of each block.
        update: Blocks that column after column, row pair after row pair (i ≥ j), L_ik D_k L_jkᵀ is taken from.
    """

    node: np.ndarray
    start: np.ndarray
    row: np.ndarray
    update: np.ndarray

    @property
    def size(self) -> int:
        """Number of block columns."""
        return len(self.start) - 1

    @property
    def longest(self) -> int:
        """Blocks of the longest column."""
        return int(np.diff(self.start).max(initial=0))

    def places(self, vertices: np.ndarray) -> np.ndarray:
        """Where the blocks of elements go.

        Args:
            vertices: (elements, corners); a corner that repeats an earlier one of its element has no block.

        Returns:
            (elements, pairs) for corner pairs (0, 0), (1, 0), (1, 1), (2, 0) …: twice the block's index, plus 1 where
            it has to be transposed; −1 where a corner has no unknowns.
        """
        corners = vertices.shape[1] if vertices.size else 0
        pairs = [(i, j) for i in range(corners) for j in range(i + 1)]
        out = np.full((len(vertices), max(len(pairs), 1)), -1, np.int32)
        for e, element in enumerate(vertices.tolist()):
            for k, (i, j) in enumerate(pairs):
                a, b = int(self.node[element[i]]), int(self.node[element[j]])
                repeated = element[i] in element[:i] or element[j] in element[:j]
                if a < 0 or b < 0 or repeated:
                    continue
                row, column = max(a, b), min(a, b)
                first, last = self.start[column], self.start[column + 1]
                out[e, k] = 2 * (first + np.searchsorted(self.row[first:last], row)) + (a < b)
        return out


def make_pattern(vertices: int, free: np.ndarray, elements: Iterable[np.ndarray]) -> Pattern:
    """Orders the free vertices by minimum degree and finds the fill.

    Args:
        vertices: Number of them.
        free: (vertices,) which have unknowns.
        elements: Vertices (n, corners) of each kind of element: all corners of one are coupled.
    """
    near: list[set[int]] = [set() for _ in range(vertices)]
    for kind in elements:
        for element in kind.tolist():
            unknown = [v for v in element if free[v]]
            for v in unknown:
                near[v].update(unknown)
    for v, others in enumerate(near):
        others.discard(v)
    order, below = _minimum_degree(near, [v for v in range(vertices) if free[v]])
    node = np.full(vertices, -1, np.int64)
    node[order] = np.arange(len(order))
    columns = [[k, *sorted(int(node[v]) for v in below[k])] for k in range(len(order))]
    start = np.concatenate([[0], np.cumsum([len(c) for c in columns])]).astype(np.int32)
    row = np.array([r for c in columns for r in c], np.int32)
    return Pattern(node, start, row, _updates(start, row))


def _minimum_degree(near: list[set[int]], free: list[int]) -> tuple[list[int], list[set[int]]]:
    """Elimination order, and for each eliminated vertex its neighbors that were left."""
    queue = [(len(near[v]), v) for v in free]
    heapq.heapify(queue)
    done: set[int] = set()
    order, below = [], []
    while queue:
        degree, v = heapq.heappop(queue)
        if v in done or degree != len(near[v]):
            continue  # an older entry of a vertex whose degree has changed
        done.add(v)
        order.append(v)
        below.append(near[v])
        for u in near[v]:
            near[u] |= near[v]
            near[u] -= {u, v}
            heapq.heappush(queue, (len(near[u]), u))
    return order, below


def _updates(start: np.ndarray, row: np.ndarray) -> np.ndarray:
    """For each column, for each pair i ≥ j of the rows below its diagonal: the block (i, j)."""
    found: list[np.ndarray] = []
    for k in range(len(start) - 1):
        rows = row[start[k] + 1 : start[k + 1]]
        for n, i in enumerate(rows):
            below = [start[j] + np.searchsorted(row[start[j] : start[j + 1]], i) for j in rows[: n + 1]]
            found.append(np.array(below, np.int32))
    return np.concatenate(found) if found else np.zeros(0, np.int32)
