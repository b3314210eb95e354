"""Symbolic factorization: elimination tree, supernodes, and which of them to merge.

A front is a dense matrix: the columns of a supernode's pivots over those pivots and the later rows they reach.
"""

from __future__ import annotations

from dataclasses import dataclass

from warpsim.solve.block_ldl.pattern import BlockPattern


@dataclass
class Front:
    """Blocks eliminated together."""

    pivots: list[int]
    """Blocks of the pattern, in order of elimination."""
    rows: set[int]
    """Later blocks that the pivots reach."""
    children: list[int]
    """Fronts whose updates come here."""


def _cost(pivots: int, rows: int) -> float:
    """Estimated time of a front (ns), given its numbers of pivot and update blocks; measured on cloth."""
    k, m = 3 * pivots, 3 * rows
    work = k * k * k / 3 + k * k * m + k * m * m
    return 250 + 0.35 * (k * (k / 2 + m) + m * m / 2) + 0.045 * work + 3.0 * k


def find_fronts(pattern: BlockPattern, order: list[int]) -> list[Front]:
    """Fronts of a pattern eliminated in an order, children before parents, roots last.

    Pivots of merged fronts come in the order of the merge, so the order of elimination is that of the result.
    """
    fronts = _supernodes(pattern, order)
    return _postorder(_merged(fronts))


def _supernodes(pattern: BlockPattern, order: list[int]) -> list[Front]:
    """Fundamental supernodes, in order of elimination."""
    position = {block: i for i, block in enumerate(order)}
    neighbors = pattern.neighbors()
    reach: list[set[int]] = [set() for _ in order]
    parent = [-1] * len(order)
    children: list[list[int]] = [[] for _ in order]
    for i, block in enumerate(order):
        found = {position[other] for other in neighbors[block] if position[other] > i}
        for child in children[i]:
            found |= reach[child]
        found.discard(i)
        reach[i] = found
        if found:
            parent[i] = min(found)
            children[parent[i]].append(i)
    fronts: list[Front] = []
    home = [-1] * len(order)
    for i, block in enumerate(order):
        only = children[i]
        # column i − 1 continues into i if i is its parent, has no other child, and reaches the same rows
        if len(only) == 1 and only[0] == i - 1 and len(reach[i - 1]) == len(reach[i]) + 1:
            front = fronts[home[i - 1]]
            front.pivots.append(block)
            home[i] = home[i - 1]
        else:
            home[i] = len(fronts)
            fronts.append(Front([block], set(), sorted({home[child] for child in only})))
        fronts[home[i]].rows = {order[r] for r in reach[i]}
    return fronts


def _merged(fronts: list[Front]) -> list[Front]:
    """Merges children into parents, the most profitable first, while the estimated time falls."""
    gone = [False] * len(fronts)
    for parent in fronts:
        while True:
            best, gain = -1, 0.0
            k, m = len(parent.pivots), len(parent.rows)
            for child in parent.children:
                kc, mc = len(fronts[child].pivots), len(fronts[child].rows)
                saved = _cost(k, m) + _cost(kc, mc) - _cost(k + kc, m)
                if saved > gain:
                    best, gain = child, saved
            if best < 0:
                break
            # the child's pivots first: nothing before them needs the parent's
            parent.pivots = fronts[best].pivots + parent.pivots
            parent.children = [c for c in parent.children if c != best] + fronts[best].children
            gone[best] = True
    number: dict[int, int] = {}
    kept: list[Front] = []
    for i, front in enumerate(fronts):
        if not gone[i]:
            number[i] = len(kept)
            kept.append(front)
    for front in kept:
        front.children = sorted(number[child] for child in front.children)
    return kept


def _postorder(fronts: list[Front]) -> list[Front]:
    """Each front right after its subtrees; of these the one with the largest update last, which lies nearest."""
    has_parent = {child for front in fronts for child in front.children}
    result: list[Front] = []
    number: dict[int, int] = {}
    stack = [(root, False) for root in reversed(range(len(fronts))) if root not in has_parent]
    while stack:
        i, ready = stack.pop()
        front = fronts[i]
        if ready:
            front.children = sorted(number[child] for child in front.children)
            number[i] = len(result)
            result.append(front)
            continue
        stack.append((i, True))
        stack.extend((child, False) for child in sorted(front.children, key=lambda c: (-len(fronts[c].rows), c)))
    return result
