"""The check for numbers that are not finite: it finds each, and does not mistake large numbers for one."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from warpsim.tape import diagnostics


@pytest.mark.parametrize("size", [1, 5, 8192, 8193, 30000])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_bad_number_is_found_wherever_it_is(size, bad):
    for place in {0, size // 2, size - 1}:
        numbers = np.ones((2, size))
        assert diagnostics.finite(SimpleNamespace(numbers=numbers), 1)
        numbers[1, place] = bad
        assert not diagnostics.finite(SimpleNamespace(numbers=numbers), 1)
        assert diagnostics.finite(SimpleNamespace(numbers=numbers), 0)


def test_numbers_whose_squares_overflow_are_finite():
    assert diagnostics.finite(SimpleNamespace(numbers=np.full((1, 20000), 1e200)), slice(0, 1))
