"""Worlds in blocks that do not depend on how many ranks there are, and which rank steps which.

A vectorized operation may round the last numbers of an array otherwise than those before them, so that the bits of a
world can depend on how many worlds are computed with it. Blocks are therefore the same for every number of ranks: only
who computes a block changes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from warpsim.core.errors import InputError

DEFAULT_BLOCKS = 16
"""At most so many, where nobody says otherwise; more ranks than blocks have nothing to do."""


@dataclass(frozen=True)
class Blocks:
    """Worlds 0 … count − 1 in blocks of `size` (the last one may be smaller), in order.

    Attributes:
        count: Worlds.
        size: Of a block.
    """

    count: int
    size: int

    @property
    def number(self) -> int:
        """How many blocks."""
        return -(-self.count // self.size)

    def worlds(self, block: int) -> slice:
        """The worlds of a block."""
        return slice(block * self.size, min(self.count, (block + 1) * self.size))

    def of_rank(self, rank: int, ranks: int) -> range:
        """Blocks of a rank: neighbors, whose number differs by one at most from rank to rank."""
        return range(rank * self.number // ranks, (rank + 1) * self.number // ranks)

    def worlds_of_rank(self, rank: int, ranks: int) -> slice:
        """Worlds of a rank; empty where there are more ranks than blocks."""
        blocks = self.of_rank(rank, ranks)
        return slice(min(self.count, blocks.start * self.size), min(self.count, blocks.stop * self.size))

    def counts(self, ranks: int) -> list[int]:
        """Worlds of each rank; their sum is `count`."""
        shares = [self.worlds_of_rank(rank, ranks) for rank in range(ranks)]
        return [share.stop - share.start for share in shares]


def blocks_of(count: int, blocks: int = DEFAULT_BLOCKS) -> Blocks:
    """Worlds in at most so many blocks of equal size.

    Args:
        count: Worlds, 1 or more.
        blocks: At most.
    """
    if count < 1 or blocks < 1:
        raise InputError(f"{count} worlds in {blocks} blocks: both must be 1 or more")
    return Blocks(count, math.ceil(count / blocks))
