"""Walls near things, nodes or particles, as lists: `Pairs`."""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from warpsim.core.precision import real
from warpsim.tape.arena import Arena

Plane = wp.types.vector(length=4, dtype=real)
"""Distance m and unit normal of a wall."""


@wp.struct
class NearWalls:
    """Pairs as kernels read them, see `Pairs`."""

    first: wp.array2d(dtype=wp.int32)
    wall: wp.array2d(dtype=wp.int32)
    plane: wp.array2d(dtype=Plane)


@dataclass
class Pairs:
    """Walls near things (nodes or particles), thing by thing.

    Attributes:
        first: (W, things + 1) first pair of each.
        owner: (W, pairs) the thing.
        wall: (W, pairs).
        plane: (W, pairs) `Plane`.
    """

    first: wp.array
    owner: wp.array
    wall: wp.array
    plane: wp.array

    @staticmethod
    def make(arena: Arena, worlds: int, things: int, pairs: int) -> Pairs:
        """Allocates."""

        def integers(count: int) -> wp.array:
            return arena.array((worlds, count), wp.int32, differentiable=False)

        return Pairs(integers(things + 1), integers(pairs), integers(pairs), arena.array((worlds, pairs), Plane))

    def walls(self) -> NearWalls:
        """As kernels read them."""
        made = NearWalls()
        made.first, made.wall, made.plane = self.first, self.wall, self.plane
        return made
