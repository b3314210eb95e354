"""The cross-entropy method against known optima; seeds, bounds, failures, and losses without gradients."""

from __future__ import annotations

import pytest
import torch

from warpsim.core.errors import InputError
from warpsim.optimizers import FunctionProblem, minimize


def bowl(x: torch.Tensor) -> torch.Tensor:
    return (torch.tensor([1.0, 10.0, 0.3]) * (x - torch.tensor([0.2, -0.4, 1.0])).square()).sum()


def test_it_finds_the_bottom_of_a_bowl_and_converges():
    found = minimize(FunctionProblem([0.0, 0.0, 0.0], loss=bowl), "cem", deviation=1.0, iterations=200)
    assert found.stopped == "converged" and "deviates" in found.message
    assert found.x.tolist() == pytest.approx([0.2, -0.4, 1.0], abs=1e-5)
    assert found.evaluations == 1 + 64 * found.iterations


def test_bounds_hold_for_every_sample():
    seen = []

    def loss(x: torch.Tensor) -> torch.Tensor:
        seen.append(x.clone())
        return bowl(x)

    found = minimize(FunctionProblem([0.0, 0.0, 0.0], loss=loss, upper=[0.1, 5.0, 0.5]), "cem", iterations=40)
    assert found.x.tolist() == pytest.approx([0.1, -0.4, 0.5], abs=1e-3)
    assert (torch.stack(seen) <= torch.tensor([0.1, 5.0, 0.5])).all()


def test_it_crosses_steps_that_have_no_slope():
    """A staircase: gradients are zero everywhere."""
    problem = FunctionProblem([3.3, -2.7], loss=lambda x: torch.floor(4.0 * x.abs()).sum())
    found = minimize(problem, "cem", deviation=2.0, iterations=30, target=0.0)
    assert found.stopped == "target" and found.loss == 0.0 and found.x.abs().max() < 0.25


def test_what_cannot_be_simulated_is_never_an_elite():
    """Half of the plane has no loss; the optimum lies at its edge."""

    def loss(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x[0] < 0.0, torch.nan, (x[0] + 1.0).square() + x[1].square())

    found = minimize(FunctionProblem([1.0, 1.0], loss=loss), "cem", deviation=1.0, inertia=0.5, iterations=60)
    assert found.loss == pytest.approx(1.0, abs=0.02) and found.x[0] >= 0.0


def test_the_seed_decides_the_samples():
    problem = FunctionProblem([0.0, 0.0, 0.0], loss=bowl)
    first, again, other = (minimize(problem, "cem", seed=seed, iterations=5) for seed in (1, 1, 2))
    assert torch.equal(first.x, again.x) and not torch.equal(first.x, other.x)


@pytest.mark.parametrize("options", [{"elites": 1}, {"elites": 65}, {"deviation": 0.0}, {"inertia": 1.0}])
def test_wrong_options(options):
    with pytest.raises(InputError, match="needed"):
        minimize(FunctionProblem([0.0], loss=lambda x: x.sum()), "cem", **options)
