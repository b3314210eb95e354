"""The picture of a search: its curves stand where the numbers are."""

from __future__ import annotations

import numpy as np
import pytest

from warpsim.task.plot import _BEST, _BOTTOM, _GRID, _LEFT, _LINE, _RIGHT, _TOP, HEIGHT, WIDTH, loss_plot


def rows_of(picture: np.ndarray, color: tuple[int, int, int], column: int) -> np.ndarray:
    return np.flatnonzero((picture[_TOP : HEIGHT - _BOTTOM + 1, column] == color).all(axis=-1)) + _TOP


def grid(picture: np.ndarray) -> list[int]:
    """Rows of the lines across."""
    return np.flatnonzero((picture == _GRID).all(axis=-1).any(axis=1)).tolist()


def test_a_curve_over_decades():
    picture = loss_plot(range(101), np.geomspace(1e3, 1e-1, 101))
    low, high = HEIGHT - _BOTTOM, _TOP
    assert grid(picture) == pytest.approx(np.linspace(high, low, 5), abs=1.0)  # a line for each power of ten
    for share in (0.25, 0.5, 0.75):  # a straight line from corner to corner
        column = round(_LEFT + share * (WIDTH - _LEFT - _RIGHT))
        assert rows_of(picture, _BEST, column).mean() == pytest.approx(high + share * (low - high), abs=1.5)


def test_losses_below_zero_stand_on_a_linear_scale_and_the_best_stays():
    picture = loss_plot([0, 10, 20], [1.0, -1.0, 0.0])
    low, high = HEIGHT - _BOTTOM, _TOP
    assert grid(picture) == pytest.approx(np.linspace(high, low, 6), abs=1.0)
    three_quarters = round(_LEFT + 0.75 * (WIDTH - _LEFT - _RIGHT))
    assert rows_of(picture, _LINE, three_quarters).mean() == pytest.approx(low + 0.25 * (high - low), abs=1.5)
    assert rows_of(picture, _BEST, three_quarters).mean() == pytest.approx(low, abs=1.5)


@pytest.mark.parametrize(("count", "dotted"), [(59, True), (60, False)])
def test_few_points_are_dots_and_many_a_line(count, dotted):
    picture = loss_plot(range(count), np.linspace(0.0, -1.0, count))
    column = round(_LEFT + (WIDTH - _LEFT - _RIGHT) / (count - 1))  # over the second point
    assert (len(rows_of(picture, _BEST, column)) > 4) == dotted


def test_one_loss_and_none_and_what_is_not_finite():
    alone = loss_plot([3], [2.0])
    assert len(rows_of(alone, _BEST, _LEFT)) > 0
    assert (loss_plot([], []) == loss_plot([1, 2], [np.nan, np.inf])).all()
    assert (loss_plot([0, 1, 2], [4.0, np.nan, 2.0]) == loss_plot([0, 2], [4.0, 2.0])).all()


def test_a_long_range_has_at_most_nine_lines_across():
    assert len(grid(loss_plot(range(3), [1e20, 1.0, 1e-4]))) <= 9
