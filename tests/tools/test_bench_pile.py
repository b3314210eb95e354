"""The pile's benchmark: the two sides it compares touch alike."""

from __future__ import annotations

import pytest

from tools.bench.pile import settled_pile


@pytest.mark.long
def test_both_sides_find_the_same_touching_pairs():
    pile = settled_pile()
    theirs, ours = pile.touching()
    assert len(theirs) > 100
    assert not theirs - ours
    assert len(ours - theirs) < 0.02 * len(theirs)
