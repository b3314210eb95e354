"""Nested dissection: an order of elimination that leaves few entries to fill in.

A part of the graph is cut in two along a direction; the minimum vertex cover of the edges that are cut (as many nodes
as the maximum matching, by Kőnig's theorem) separates the halves and is numbered after both. Directions are those of
the nodes' places, where they are known, and distances in the graph from nodes that lie far apart.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from warpsim.solve.block_ldl.minimum_degree import minimum_degree
from warpsim.solve.block_ldl.pattern import BlockPattern

LEAF = 40
"""Parts of at most so many nodes are ordered by minimum degree."""
_SHARES = (0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65)
"""Of a part's nodes on the first side of the cuts that are tried."""
_WIDTH = 2.0
_BELOW = 30.0
"""Guesses of what a part of n nodes will cost: a separator of _WIDTH √n nodes, and _BELOW n^1.5 under it."""
_DIRECTIONS = np.array(
    [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, -1, 0), (1, 0, 1), (1, 0, -1), (0, 1, 1), (0, 1, -1)], float
)


def dissection_order(pattern: BlockPattern, places: np.ndarray | None = None, leaf: int = LEAF) -> list[int]:
    """Orders all blocks.

    Args:
        pattern: Couplings.
        places: (n, 3), m: where the blocks' nodes are, if that is known; it finds straighter cuts.
        leaf: Parts of at most so many nodes are not cut further.

    Returns:
        Block indices in order of elimination.
    """
    neighbors = pattern.neighbors()
    done = [False] * pattern.count
    order: list[int] = []

    def finish(nodes: list[int]) -> None:
        order.extend(nodes)
        for node in nodes:
            done[node] = True

    # parts to dissect, and separators to number once what lies before them is
    stack: list[tuple[str, list[int]]] = [("part", list(range(pattern.count)))]
    while stack:
        what, nodes = stack.pop()
        if what == "separator" or len(nodes) <= leaf:
            finish(minimum_degree(nodes, neighbors, done))
            continue
        pieces = _components(nodes, neighbors)
        if len(pieces) > 1:
            stack.extend(("part", piece) for piece in reversed(pieces))
            continue
        first, second, separator = _best_cut(nodes, neighbors, places)
        if not first or not second:
            finish(minimum_degree(nodes, neighbors, done))
            continue
        stack.extend([("separator", separator), ("part", second), ("part", first)])
    return order


def _components(nodes: list[int], neighbors: list[set[int]]) -> list[list[int]]:
    left = set(nodes)
    pieces = []
    for node in nodes:
        if node in left:
            piece = list(_distances(node, left, neighbors))
            left.difference_update(piece)
            pieces.append(sorted(piece))
    return pieces


def _distances(start: int, within: set[int], neighbors: list[set[int]]) -> dict[int, int]:
    """Edges from `start` to each node it can reach, nearest first."""
    found = {start: 0}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for other in neighbors[node]:
            if other in within and other not in found:
                found[other] = found[node] + 1
                queue.append(other)
    return found


def _keys(nodes: list[int], neighbors: list[set[int]], places: np.ndarray | None) -> list[np.ndarray]:
    """Numbers by which the nodes can be sorted across a cut."""
    if places is not None:
        across = np.asarray(places, float)[nodes] @ _DIRECTIONS.T
        keys = [across[:, i] for i in range(across.shape[1]) if np.ptp(across[:, i]) > 1e-9 * (1 + np.ptp(across))]
        if keys:
            return keys + _distance_keys(nodes, neighbors)
    return _distance_keys(nodes, neighbors)


def _distance_keys(nodes: list[int], neighbors: list[set[int]]) -> list[np.ndarray]:
    within = set(nodes)

    def farthest(distance: dict[int, int]) -> int:
        return max(nodes, key=lambda node: (distance[node], -node))

    first = farthest(_distances(nodes[0], within, neighbors))
    one = _distances(first, within, neighbors)
    two = _distances(farthest(one), within, neighbors)
    third = max(nodes, key=lambda node: (min(one[node], two[node]), -node))
    three = _distances(third, within, neighbors)
    four = _distances(farthest(three), within, neighbors)
    a, b, c, d = (np.array([x[node] for node in nodes], float) for x in (one, two, three, four))
    return [a, a - b, c, c - d]


def _estimate(pivots: float, rows: float) -> float:
    """Work of a front, up to a factor."""
    return pivots * pivots * pivots / 3 + pivots * pivots * rows + pivots * rows * rows


def _outlook(part: list[int], neighbors: list[set[int]]) -> float:
    """Work that a part will take, guessed from its size and from how much lies around it."""
    around = set().union(*(neighbors[node] for node in part)).difference(part) if part else set()
    across = _WIDTH * len(part) ** 0.5
    return _estimate(across, len(around)) + _BELOW * len(part) ** 1.5


def _best_cut(
    nodes: list[int], neighbors: list[set[int]], places: np.ndarray | None
) -> tuple[list[int], list[int], list[int]]:
    """Two parts without an edge between them, and what separates them."""
    best: tuple[float, list[int], list[int], list[int]] | None = None
    tried = set()
    around = len(set().union(*(neighbors[node] for node in nodes)).difference(nodes))
    for key in _keys(nodes, neighbors, places):
        order = np.lexsort((np.array(nodes), key))
        for share in _SHARES:
            first = frozenset(nodes[i] for i in order[: int(share * len(nodes))])
            if first in tried:
                continue
            tried.add(first)
            cover = _cover(first, set(nodes), neighbors)
            one = [node for node in nodes if node in first and node not in cover]
            two = [node for node in nodes if node not in first and node not in cover]
            cost = _estimate(len(cover), around) + _outlook(one, neighbors) + _outlook(two, neighbors)
            if best is None or cost < best[0]:
                best = (cost, one, two, sorted(cover))
    assert best is not None
    return best[1:]


def _cover(first: frozenset[int], within: set[int], neighbors: list[set[int]]) -> set[int]:
    """Fewest nodes that touch every edge between `first` and the rest of `within`."""
    edges = {}
    for node in sorted(first):
        across = sorted(other for other in neighbors[node] if other in within and other not in first)
        if across:
            edges[node] = across
    match: dict[int, int] = {}  # right → left
    matched: dict[int, int] = {}  # left → right
    for start in edges:
        _augment(start, edges, match, matched)
    # Kőnig: from unmatched left nodes along alternating paths; left nodes not reached and right ones reached
    reached = {node for node in edges if node not in matched}
    right: set[int] = set()
    queue = deque(sorted(reached))
    while queue:
        for other in edges[queue.popleft()]:
            if other not in right:
                right.add(other)
                back = match[other]
                if back not in reached:
                    reached.add(back)
                    queue.append(back)
    return {node for node in edges if node not in reached} | right


def _augment(start: int, edges: dict[int, list[int]], match: dict[int, int], matched: dict[int, int]) -> None:
    """Lengthens the matching by a path from `start`, if there is one (breadth first)."""
    came: dict[int, int] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for other in edges[node]:
            if other in came:
                continue
            came[other] = node
            if other not in match:
                while True:
                    left = came[other]
                    before = matched.get(left)
                    match[other], matched[left] = left, other
                    if before is None:
                        return
                    other = before
            queue.append(match[other])
