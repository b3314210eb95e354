"""Polyak's step against closed forms, within bounds, and where the loss rises."""

from __future__ import annotations

import pytest
import torch

from warpsim.core.errors import InputError
from warpsim.optimizers import FunctionProblem, Polyak, minimize

GOAL = torch.tensor([3.0, -1.0, 0.5], dtype=torch.float64)


def _iterates(problem, iterations, **options):
    seen = []
    result = minimize(problem, "polyak", iterations=iterations, callback=lambda s: seen.append(s.x), **options)
    return result, torch.stack(seen)


def test_a_distance_is_covered_in_one_step():
    problem = FunctionProblem([0.0, 0.0, 0.0], loss=lambda x: 7.0 * (x - GOAL).norm() + 2.0)
    result, seen = _iterates(problem, 1, least=2.0)
    torch.testing.assert_close(seen[1], GOAL)
    assert result.loss == pytest.approx(2.0)


def test_a_square_is_halved_with_each_step_and_ends_after_one_at_twice_the_rate():
    problem = FunctionProblem([0.0, 0.0, 0.0], loss=lambda x: 5.0 * (x - GOAL).square().sum())
    _, seen = _iterates(problem, 4)
    for k in range(5):
        torch.testing.assert_close(seen[k] - GOAL, -GOAL / 2.0**k)
    _, seen = _iterates(problem, 1, rate=2.0)
    torch.testing.assert_close(seen[1], GOAL)


def test_units_of_loss_do_not_matter_and_idle_variables_stay():
    def slope(scale):
        return FunctionProblem([2.0, 1.0], loss=lambda x: scale * (x[0] ** 4 + 1e-9 * x[1]))

    small, large = (_iterates(slope(scale), 6)[1] for scale in (1e-3, 1e5))
    torch.testing.assert_close(small, large, rtol=1e-9, atol=0)
    assert (small[:, 1] - 1.0).abs().max() < 1e-6


def test_bounds_hold():
    problem = FunctionProblem([0.0, 0.0, 0.0], loss=lambda x: (x - GOAL).square().sum(), upper=[1.0, 5.0, 5.0])
    result, seen = _iterates(problem, 60, least=4.0)
    assert (seen[:, 0] <= 1.0).all()
    torch.testing.assert_close(result.x, torch.tensor([1.0, -1.0, 0.5], dtype=torch.float64), atol=1e-6, rtol=0)


class Misleading(torch.autograd.Function):
    """|x|, with a slope that is five times too small."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.abs().sum()

    @staticmethod
    def backward(ctx, adjoint):
        (x,) = ctx.saved_tensors
        return adjoint * 0.2 * torch.sign(x)


def test_a_step_that_raises_the_loss_is_halved_for_a_forward_pass_each():
    problem = FunctionProblem([1.0], loss=Misleading.apply)
    result, seen = _iterates(problem, 1)  # to −4, −1.5, −0.25: the second halving lowers it
    assert seen[1].item() == pytest.approx(-0.25) and result.history[1].evaluations == 4
    _, plain = _iterates(problem, 1, backtracks=0)
    assert plain[1].item() == pytest.approx(-4.0)
    _, once = _iterates(problem, 1, backtracks=1)
    assert once[1].item() == pytest.approx(-1.5)


def test_it_ends_at_the_least_value_and_refuses_what_makes_no_sense():
    square = FunctionProblem([3.0], loss=lambda x: (x[0] - 2.0).square() + 1.0)
    reached = minimize(square, "polyak", least=1.0, rate=2.0)
    assert reached.stopped == "converged"
    below = minimize(FunctionProblem([2.0], loss=lambda x: x[0]), "polyak", least=5.0)
    assert below.stopped == "converged" and "not above the least" in below.message
    for wrong in (dict(rate=0.0), dict(backtracks=-1), dict(memory=0)):
        with pytest.raises(InputError, match="are needed"):
            Polyak(**wrong)
