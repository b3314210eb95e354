"""Blocks cover all worlds once, whoever computes them."""

from __future__ import annotations

import pytest

from warpsim.core.errors import InputError
from warpsim.parallel import blocks_of


@pytest.mark.parametrize("count", [1, 5, 16, 17, 48, 64, 1000])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7, 40])
def test_every_row_belongs_to_one_rank(count, ranks):
    blocks = blocks_of(count)
    worlds = [world for block in range(blocks.number) for world in range(count)[blocks.worlds(block)]]
    assert worlds == list(range(count)) and blocks.number <= 16
    shares = [range(count)[blocks.worlds_of_rank(rank, ranks)] for rank in range(ranks)]
    assert [world for share in shares for world in share] == worlds
    assert blocks.counts(ranks) == [len(share) for share in shares]


def test_the_blocks_of_ranks_differ_by_one_at_most():
    numbers = [len(blocks_of(64).of_rank(rank, 3)) for rank in range(3)]
    assert max(numbers) - min(numbers) == 1 and sum(numbers) == 16


def test_no_worlds_and_no_blocks_are_refused():
    with pytest.raises(InputError, match="0 worlds"):
        blocks_of(0)
    with pytest.raises(InputError, match="in 0 blocks"):
        blocks_of(3, 0)
