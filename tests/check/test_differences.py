"""Estimates of derivatives by a sweep of steps, on functions whose derivative is known."""

from __future__ import annotations

import numpy as np
import pytest

from warpsim.check.gradcheck.differences import estimate

SWEEP = (1e-1, 1e-2, 1e-3, 1e-4)


def estimated(function, same_mode):
    steps = np.array(SWEEP)
    return estimate(function(1.0 + steps), function(1.0 - steps), np.array(same_mode), SWEEP, 1.0)


def test_steps_that_leave_the_mode_do_not_count_and_the_nearest_is_told():
    found = estimated(lambda x: np.where(np.abs(x - 1.0) > 5e-3, 99.0 * x, np.sin(x)), [False, False, True, True])
    assert found.value == pytest.approx(np.cos(1.0), abs=1e-9)
    assert (found.steps, found.nearest_switch) == (2, 1e-2)


def test_the_estimate_lies_within_its_error():
    found = estimated(np.exp, [True] * 4)
    assert abs(found.value - np.e) <= found.error < 1e-9
    assert (found.steps, found.nearest_switch) == (4, None)


def test_one_step_is_no_estimate():
    found = estimated(np.exp, [False, False, False, True])
    assert np.isnan(found.value) and (found.steps, found.nearest_switch) == (1, 1e-3)
