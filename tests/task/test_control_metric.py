"""Metrics of controls: what a gradient becomes, and the step that Polyak's method takes along it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from warpsim.core.errors import InputError
from warpsim.optimizers import FunctionProblem, Polyak, minimize
from warpsim.task import Knots
from warpsim.task.controls import inverse_of_rates


def test_with_the_first_knot_held_later_ones_go_along():
    held = np.array([True, False, False, False, False])
    places = np.arange(5.0)
    np.testing.assert_allclose(inverse_of_rates(held), np.minimum.outer(places, places), atol=1e-12)


def test_held_knots_part_the_motion_and_free_ones_may_shift():
    middle = np.array([False, False, True, False])
    found = inverse_of_rates(middle)
    assert not found[2].any() and not found[3, :2].any() and found[3, 3] == pytest.approx(1.0)
    free = inverse_of_rates(np.zeros(4, dtype=bool))
    np.testing.assert_allclose(free @ np.ones(4), 16.0 * np.ones(4))
    assert np.linalg.eigvalsh(free).min() > 0.0


def test_a_metric_has_a_name():
    with pytest.raises(InputError, match="metric 'speeds'; use values or rates"):
        Knots(metric="speeds")


class Measured(FunctionProblem):
    """A problem with the metric of five knots, the first of which is held."""

    def steepest(self, gradient, held):
        return torch.as_tensor(inverse_of_rates(np.array([True, *[False] * 4]) | held.numpy())) @ gradient


def test_polyak_steps_along_the_metric():
    slope = torch.tensor([0.0, 0.0, 2.0, 0.0, 0.0], dtype=torch.float64)
    problem = Measured(np.zeros(5), loss=lambda x: slope @ x + 3.0)
    seen = []
    minimize(problem, "polyak", iterations=1, callback=lambda s: seen.append(s.x))
    torch.testing.assert_close(seen[1], torch.tensor([0.0, -0.75, -1.5, -1.5, -1.5], dtype=torch.float64))
    assert problem.loss(seen[1]).item() == pytest.approx(0.0, abs=1e-12)


def test_a_knot_at_its_bound_leaves_the_metric():
    """Along the metric of all knots the step leads uphill once one cannot move; the search would end there."""

    def loss(x):
        return (x[2] - 2.0) ** 2 + (x[4] - 0.2) ** 2

    problem = Measured(np.zeros(5), loss=loss, lower=0.0, upper=0.6)
    found = minimize(problem, Polyak(least=1.96), iterations=200)
    np.testing.assert_allclose([found.x[2], found.x[4]], [0.6, 0.2], atol=1e-6)
    assert found.loss == pytest.approx(1.96, abs=1e-10)
    assert bool(((found.x >= 0.0) & (found.x <= 0.6)).all()), "bounds are kept to the last bit"
