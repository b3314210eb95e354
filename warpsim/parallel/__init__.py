"""Beyond one process: worlds over ranks of `torchrun`, independent work on any executor; the same bits either way."""

from warpsim.parallel.blocks import Blocks, blocks_of
from warpsim.parallel.errors import RankError, WorkerError
from warpsim.parallel.ranks import Ranks, alone, current, join
from warpsim.parallel.worlds import worlds_over_ranks

__all__ = [
    "Blocks",
    "RankError",
    "Ranks",
    "WorkerError",
    "alone",
    "blocks_of",
    "current",
    "join",
    "worlds_over_ranks",
]
