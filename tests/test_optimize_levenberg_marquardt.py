"""Levenberg–Marquardt against scipy's least squares, its covariance, and parameters that data cannot tell apart."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import curve_fit, least_squares

from warpsim.errors import InputError, SimulationError
from warpsim.optimize import FunctionProblem, minimise

TIMES = torch.linspace(0, 4, 60, dtype=torch.float64)


def decay(x: torch.Tensor) -> torch.Tensor:
    """A damped oscillation: amplitude, damping, frequency."""
    return x[0] * torch.exp(-x[1] * TIMES) * torch.cos(x[2] * TIMES)


def noisy(seed: int = 0, noise: float = 0.02) -> torch.Tensor:
    truth = torch.tensor([1.5, 0.4, 3.0], dtype=torch.float64)
    return decay(truth) + noise * torch.tensor(np.random.default_rng(seed).normal(size=len(TIMES)))


@pytest.mark.parametrize("jacobian", ["differences", "reverse"])
def test_estimates_and_covariance_are_scipys(jacobian):
    data = noisy()
    problem = FunctionProblem(
        [1.0, 0.2, 2.7], residuals=lambda x: decay(x) - data, names=("amplitude", "damping", "rate")
    )
    result = minimise(problem, "levenberg_marquardt", jacobian=jacobian)
    assert result.converged

    def model(times, *x):
        return decay(torch.tensor(x)).numpy()

    x, covariance = curve_fit(model, TIMES.numpy(), data.numpy(), p0=problem.start.numpy(), xtol=1e-14, ftol=1e-14)
    np.testing.assert_allclose(result.x.numpy(), x, rtol=1e-6)
    np.testing.assert_allclose(result.report.covariance.numpy(), covariance, rtol=1e-4, atol=1e-10)
    assert result.report.sentences == ("The data determine all 3 parameters.",)
    assert "damping: 0.4" in str(result.report)


@pytest.mark.long
def test_the_covariance_is_the_scatter_of_the_estimates():
    fits = []
    for seed in range(60):
        data = noisy(seed)
        problem = FunctionProblem([1.4, 0.45, 3.1], residuals=lambda x, data=data: decay(x) - data)
        fits.append(minimise(problem, "levenberg_marquardt"))
    scatter = torch.stack([fit.x for fit in fits]).std(dim=0)
    claimed = torch.stack([fit.report.deviation for fit in fits]).mean(dim=0)
    assert ((scatter / claimed - 1).abs() < 0.3).all()


def test_the_gradient_is_exact_where_differences_are_coarse():
    data = noisy()
    problem = FunctionProblem([1.0, 0.2, 2.7], residuals=lambda x: decay(x) - data)
    coarse = minimise(problem, "levenberg_marquardt", difference=1e-2, iterations=100)
    fine = minimise(problem, "levenberg_marquardt", jacobian="reverse", iterations=100)
    torch.testing.assert_close(coarse.x, fine.x, rtol=1e-7, atol=0)


@pytest.mark.parametrize("seed", range(5))
def test_bounds(seed):
    rng = np.random.default_rng(seed)
    root, target = rng.normal(size=(8, 4)), 3 * rng.normal(size=8)
    low, high = -rng.uniform(size=4), rng.uniform(size=4)

    def residuals(x):
        return torch.sin(0.3 * torch.as_tensor(root) @ x) - torch.as_tensor(0.1 * target)

    problem = FunctionProblem(np.zeros(4), residuals=residuals, lower=low, upper=high)
    result = minimise(problem, "levenberg_marquardt", gradient=1e-11)
    expected = least_squares(
        lambda x: residuals(torch.tensor(x)).numpy(), np.zeros(4), bounds=(low, high), xtol=1e-14, ftol=1e-15
    )
    assert result.loss <= expected.cost * (1 + 1e-9)
    np.testing.assert_allclose(result.x.numpy(), expected.x, atol=2e-5)
    held = (result.x == problem.lower) | (result.x == problem.upper)
    assert sum("held by its bound" in s for s in result.report.sentences) == int(held.sum())


def test_parameters_that_only_matter_as_a_product_are_named():
    def residuals(x):
        return x[0] * x[1] * torch.exp(-x[2] * TIMES) - 2 * torch.exp(-TIMES)

    names = ("mass", "gain", "rate", "colour")
    problem = FunctionProblem([1.0, 1.0, 0.5, 7.0], residuals=residuals, names=names)
    result = minimise(problem, "levenberg_marquardt")
    said = " ".join(result.report.sentences)
    assert "The data do not depend on colour." in said
    assert "cannot tell apart mass and gain:" in said and "rate" not in said
    assert (result.report.singular_values[2:] < 1e-6 * result.report.singular_values[0]).all()
    assert result.x[0] * result.x[1] == pytest.approx(2.0)
    assert result.x[2].item() == pytest.approx(1.0)


def test_what_noise_hides_is_named():
    rng = np.random.default_rng(1)
    data = torch.tensor(1 + 0.2 * rng.normal(size=60))
    slow = TIMES * 1e-3

    def residuals(x):
        return x[0] * torch.exp(-x[1] * slow) - data

    problem = FunctionProblem([0.5, 1.0], residuals=residuals, names=("level", "decay"))
    assert (
        "The data do not determine decay within the noise." in minimise(problem, "levenberg_marquardt").report.sentences
    )


def test_covariance_in_other_units():
    data = noisy()
    problem = FunctionProblem([1.0, 0.2, 2.7], residuals=lambda x: decay(x) - data)
    report = minimise(problem, "levenberg_marquardt").report
    scaled = report.covariance_of(lambda x: torch.stack([100 * x[0], x[1].square()]))
    expected = torch.stack([1e4 * report.covariance[0, 0], 4 * report.x[1] ** 2 * report.covariance[1, 1]])
    torch.testing.assert_close(scaled.diagonal(), expected)


def test_fewer_data_than_parameters():
    problem = FunctionProblem([1.0, 1.0, 1.0], residuals=lambda x: torch.stack([x.sum() - 6, x[0] - x[1]]))
    result = minimise(problem, "levenberg_marquardt")
    assert result.loss < 1e-20 and result.report.noise == 0.0
    assert any("cannot tell apart x0, x1 and x2" in s for s in result.report.sentences)


def test_wrong_problems():
    with pytest.raises(InputError, match="no sum of squares"):
        minimise(FunctionProblem([1.0], loss=lambda x: x.sum()), "levenberg_marquardt")
    with pytest.raises(InputError, match="do not depend on x"):
        minimise(FunctionProblem([1.0], residuals=lambda x: torch.ones(3)), "levenberg_marquardt")
    with pytest.raises(SimulationError, match="not finite"):
        minimise(FunctionProblem([1.0], residuals=lambda x: (1 + 1e-9 - x).sqrt()), "levenberg_marquardt")
