"""Minimum-degree elimination order of a small part of a graph, counting what it touches outside."""

from __future__ import annotations

from collections.abc import Iterable


def minimum_degree(part: Iterable[int], neighbors: list[set[int]], done: list[bool]) -> list[int]:
    """Orders the nodes of `part` by greedily eliminating the one with the fewest neighbors left.

    Args:
        part: Nodes to order.
        neighbors: The whole graph.
        done: Nodes that come before this part, which have no edge to it.

    Returns:
        The nodes in order of elimination; among equals the lowest index first.
    """
    left = set(part)
    near = {node: {other for other in neighbors[node] if not done[other]} for node in left}
    order: list[int] = []
    while left:
        node = min(left, key=lambda candidate: (len(near[candidate]), candidate))
        left.discard(node)
        order.append(node)
        clique = near.pop(node)
        for other in clique:
            if other in near:
                joined = near[other]
                joined |= clique
                joined.discard(other)
                joined.discard(node)
    return order
