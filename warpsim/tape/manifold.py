"""What a state's numbers may do: all of a vector's are free, a unit quaternion's move on their sphere.

A manifold acts on one world's value laid flat, (…, n) torch tensors, and on its small moves, (…, tangent size).
"""

from __future__ import annotations

from typing import Any, Protocol


class Manifold(Protocol):
    """Small moves of a value, and derivatives by them."""

    def tangent_size(self, size: int) -> int:
        """Numbers of a move of a value of `size` numbers."""

    def shift(self, value: Any, move: Any) -> Any:
        """value ⊕ move."""

    def difference(self, value: Any, reference: Any) -> Any:
        """The move with reference ⊕ move = value."""

    def pull(self, value: Any, covectors: Any) -> Any:
        """Covectors (…, k, n) on the numbers of a value (…, n) → (…, k, tangent size) on its moves."""

    def units(self, value: Any) -> Any:
        """(…, tangent size, n): row i has the product δᵢ with a small change of the value's numbers."""


class Euclidean:
    """Plain numbers."""

    def tangent_size(self, size: int) -> int:
        """As many as there are."""
        return size

    def shift(self, value: Any, move: Any) -> Any:
        """The sum."""
        return value + move

    def difference(self, value: Any, reference: Any) -> Any:
        """The difference."""
        return value - reference

    def pull(self, value: Any, covectors: Any) -> Any:
        """The covectors themselves."""
        return covectors

    def units(self, value: Any) -> Any:
        """Unit covectors."""
        n = value.shape[-1]
        rows = value.new_zeros(n, n)
        rows.fill_diagonal_(1.0)
        return rows.expand(*value.shape[:-1], n, n)


EUCLIDEAN = Euclidean()
