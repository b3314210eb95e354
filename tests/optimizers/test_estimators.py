"""Gradient estimators: unbiased on a quadratic, and a ball over a wall, where first-order gradients mislead."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from tools.evidence import over_a_wall
from warpsim.core.errors import InputError
from warpsim.optimizers import FunctionProblem, SmoothedProblem, minimize
from warpsim.optimizers.estimators import KINDS, GradientEstimator


@pytest.mark.parametrize("kind", KINDS)
def test_all_are_right_on_a_quadratic(kind):
    """The smoothed quadratic has the gradient of the quadratic itself."""
    curve = torch.tensor([1.0, 3.0, 0.5], dtype=torch.float64)
    x = torch.tensor([0.3, -0.2, 0.7], dtype=torch.float64)
    estimate = GradientEstimator(lambda c: (curve * c.square()).sum(1), kind=kind, deviation=0.1, samples=4000)(x)
    exact = 2.0 * curve * x
    assert float((estimate.gradient - exact).norm()) < 4.0 * estimate.variance**0.5 + 1e-12
    assert estimate.variance**0.5 < 0.2 * float(exact.norm())


def test_only_the_zeroth_sees_a_step():
    """A loss that jumps: slopes are zero everywhere, the smoothed loss falls; the mix takes the second estimate."""

    def losses(c: torch.Tensor) -> torch.Tensor:
        return (c[:, 0] < 0.0).to(c) + 0.0 * c[:, 0]

    x = torch.zeros(1, dtype=torch.float64)
    found = {k: GradientEstimator(losses, kind=k, deviation=0.5, samples=400)(x) for k in KINDS}
    exact = -1.0 / (0.5 * np.sqrt(2.0 * np.pi))
    assert float(found["first"].gradient) == 0.0
    for kind in ("zeroth", "mixed"):
        assert float(found[kind].gradient) == pytest.approx(exact, rel=0.2)
    assert found["mixed"].share < 0.1


def test_a_smoothed_problem_keeps_losses_and_estimates_gradients():
    """Losses are the problem's own; the gradient is the estimator's, and the same for the same x."""
    plain = FunctionProblem([0.3, -0.2], loss=lambda x: (x[0] - 1.0).abs() + 2.0 * x[1].square(), upper=[0.5, 5.0])
    problem = SmoothedProblem(plain, kind="zeroth", deviation=0.1, samples=64, seed=3)
    x = plain.start.clone().requires_grad_()
    loss = problem.loss(x)
    (gradient,) = torch.autograd.grad(loss, x)
    assert float(loss.detach()) == float(plain.loss(plain.start))
    assert torch.equal(gradient, problem.estimate(plain.start).gradient)
    assert float((gradient - torch.tensor([-1.0, -0.8])).norm()) < 0.5
    assert not torch.equal(
        gradient, SmoothedProblem(plain, kind="zeroth", deviation=0.1, samples=64).estimate(x).gradient
    )
    with pytest.raises(InputError, match="residuals"):
        problem.residuals(x)
    with pytest.raises(InputError, match="kind"):
        SmoothedProblem(plain, kind="second", deviation=0.1, samples=64)


def test_samples_of_a_smoothed_problem_stay_within_bounds():
    seen = []

    def loss(x: torch.Tensor) -> torch.Tensor:
        seen.append(x.detach())
        return x.square().sum()

    plain = FunctionProblem([0.0, 0.0], loss=loss, lower=-0.05, upper=0.05)
    result = minimize(SmoothedProblem(plain, deviation=1.0, samples=8), "adam", rate=0.01, iterations=3)
    assert torch.stack(seen).abs().max() <= 0.05 and result.loss < 1.0


def test_a_ball_over_a_wall():
    """The exact gradient never gets past the wall; the mix does."""
    curves = over_a_wall.measure([0], ("exact", "mixed"), iterations=25)
    assert curves["mixed"][0][-1] < over_a_wall.SOLVED, curves
    assert curves["exact"][0][0] > 2.0 and curves["exact"][0][-1] > 2.0, curves


@pytest.mark.long
def test_a_ball_over_a_wall_for_every_seed(tmp_path):
    """The mix solves it from every start, first-order gradients from none; and the files say so."""
    over_a_wall.main(["--output", str(tmp_path)])
    curves = json.loads((tmp_path / "over_a_wall.json").read_text())
    ends = {kind: [curve[-1] for curve in found] for kind, found in curves.items()}
    assert all(len(found) == 5 for found in ends.values())
    assert max(ends["mixed"]) < over_a_wall.SOLVED and max(ends["zeroth"]) < over_a_wall.SOLVED, ends
    assert min(ends["exact"]) > 2.0 and min(ends["first"]) > 0.5, ends
    assert (tmp_path / "over_a_wall.png").is_file()
    kept = json.loads((over_a_wall.ROOT / "docs" / "evidence" / "over_a_wall.json").read_text())
    for kind, found in kept.items():
        assert [curve[0] for curve in found] == pytest.approx([curve[0] for curve in curves[kind]], rel=1e-4)
