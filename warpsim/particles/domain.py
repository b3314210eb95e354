"""`Domain`: the box in which matter may be, and the grid of nodes over it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from warpsim.core.errors import InputError

MAXIMUM_NODES = 50_000_000
"""Of one world: a number per node is kept as scratch."""


@dataclass(frozen=True)
class Domain:
    """A grid that is aligned with the world's axes.

    Attributes:
        lower: (3,) m, the corner where node (0, 0, 0) is.
        spacing: Δx, edge of a cell, m.
        shape: Nodes along each axis.
    """

    lower: tuple[float, float, float]
    spacing: float
    shape: tuple[int, int, int]

    @staticmethod
    def around(lower: ArrayLike, upper: ArrayLike, spacing: float) -> Domain:
        """The domain in which particles may be anywhere between two corners.

        Args:
            lower: (3,) m.
            upper: (3,) m.
            spacing: Edge of a cell, m.

        Raises:
            InputError: The corners or the spacing make no box, or one with too many nodes.
        """
        low, high = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
        if low.shape != (3,) or high.shape != (3,) or not np.isfinite([*low, *high]).all() or not (low < high).all():
            raise InputError(f"a domain lies between a lower and an upper corner, (3,) m each, not {low} and {high}")
        if not (math.isfinite(spacing) and spacing > 0.0):
            raise InputError(f"the spacing of a domain's nodes is a positive length in m, not {spacing}")
        cells = (high - low) / spacing
        if np.prod(cells + 3.0) > MAXIMUM_NODES:
            raise InputError(
                f"cells of {spacing:g} m would be {np.prod(cells):.3g} in this domain, of which at most "
                f"{MAXIMUM_NODES:.2g} can be numbered; use larger cells or a smaller domain"
            )
        # a particle touches the three nodes around it along each axis, so one more node stands outside on each side
        nodes = np.ceil(cells).astype(int) + 3
        corner = low - spacing
        return Domain(tuple(map(float, corner)), float(spacing), tuple(map(int, nodes)))  # type: ignore[arg-type]

    @property
    def nodes(self) -> int:
        """Of the whole grid."""
        return math.prod(self.shape)

    @property
    def reach(self) -> tuple[np.ndarray, np.ndarray]:
        """Corners of the box in which particles may be, m."""
        low = np.asarray(self.lower) + 0.5 * self.spacing
        return low, low + (np.asarray(self.shape) - 2.0) * self.spacing

    def inside(self, points: np.ndarray) -> np.ndarray:
        """(…,) whether particles may be at these points, (…, 3) m."""
        place = (points - np.asarray(self.lower)) / self.spacing
        return ((place >= 0.5) & (place < np.asarray(self.shape) - 1.5)).all(axis=-1)
