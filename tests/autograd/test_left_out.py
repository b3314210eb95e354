"""What `torch.compile` is to leave out is made once, and answers as it is."""

from __future__ import annotations

from warpsim.autograd.entry import _uncompiled


def test_it_is_made_once_and_answers_the_same():
    made: list = []
    first = _uncompiled(lambda x: x + 1, made)
    assert first(2) == 3 and len(made) == 1
    assert _uncompiled(lambda x: x - 1, made) is first and len(made) == 1
