"""Which blocks of a symmetric matrix can differ from zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warpsim.core.errors import InputError


@dataclass(frozen=True)
class BlockPattern:
    """n block rows, and the pairs of them that are coupled."""

    count: int
    """n."""
    pairs: np.ndarray
    """(m, 2) int64: block rows and columns of the couplings, each pair once, in either order."""

    @staticmethod
    def of(count: int, pairs: Sequence[Sequence[int]] | np.ndarray) -> BlockPattern:
        """Checks the pairs.

        Raises:
            InputError: A block is out of range, coupled with itself, or a pair is given twice.
        """
        found = np.asarray(pairs, np.int64).reshape(-1, 2)
        wrong = ((found < 0) | (found >= count)).any(1)
        if wrong.any():
            raise InputError(f"coupling {found[wrong.argmax()].tolist()}: blocks are numbered 0 to {count - 1}")
        same = found[:, 0] == found[:, 1]
        if same.any():
            raise InputError(f"coupling {found[same.argmax()].tolist()}: a block's own entry is its diagonal block")
        keys = found.min(1) * count + found.max(1)
        values, first, times = np.unique(keys, return_index=True, return_counts=True)
        if (times > 1).any():
            twice = found[first[times.argmax()]].tolist()
            raise InputError(f"coupling {twice} is given twice; sum the blocks and give it once")
        return BlockPattern(int(count), found)

    def neighbors(self) -> list[set[int]]:
        """For each block those it is coupled with."""
        found: list[set[int]] = [set() for _ in range(self.count)]
        for i, j in self.pairs.tolist():
            found[i].add(j)
            found[j].add(i)
        return found
