"""Levenberg–Marquardt against scipy's least squares, its covariance, and parameters that data cannot tell apart."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import curve_fit, least_squares

from warpsim.core.errors import InputError, RangeError, SimulationError
from warpsim.optimizers import FunctionProblem, minimize

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
    result = minimize(problem, "levenberg_marquardt", jacobian=jacobian)
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
        fits.append(minimize(problem, "levenberg_marquardt"))
    scatter = torch.stack([fit.x for fit in fits]).std(dim=0)
    claimed = torch.stack([fit.report.deviation for fit in fits]).mean(dim=0)
    assert ((scatter / claimed - 1).abs() < 0.3).all()


def test_the_gradient_is_exact_where_differences_are_coarse():
    data = noisy()
    problem = FunctionProblem([1.0, 0.2, 2.7], residuals=lambda x: decay(x) - data)
    coarse = minimize(problem, "levenberg_marquardt", difference=1e-2, iterations=100)
    fine = minimize(problem, "levenberg_marquardt", jacobian="reverse", iterations=100)
    torch.testing.assert_close(coarse.x, fine.x, rtol=1e-7, atol=0)


@pytest.mark.parametrize("seed", range(5))
def test_bounds(seed):
    rng = np.random.default_rng(seed)
    root, target = rng.normal(size=(8, 4)), 3 * rng.normal(size=8)
    low, high = -rng.uniform(size=4), rng.uniform(size=4)

    def residuals(x):
        return torch.sin(0.3 * torch.as_tensor(root) @ x) - torch.as_tensor(0.1 * target)

    problem = FunctionProblem(np.zeros(4), residuals=residuals, lower=low, upper=high)
    result = minimize(problem, "levenberg_marquardt", gradient=1e-11)
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

    names = ("mass", "gain", "rate", "color")
    problem = FunctionProblem([1.0, 1.0, 0.5, 7.0], residuals=residuals, names=names)
    result = minimize(problem, "levenberg_marquardt")
    said = " ".join(result.report.sentences)
    assert "The data do not depend on color." in said
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
        "The data do not determine decay within the noise." in minimize(problem, "levenberg_marquardt").report.sentences
    )


def test_covariance_in_other_units():
    data = noisy()
    problem = FunctionProblem([1.0, 0.2, 2.7], residuals=lambda x: decay(x) - data)
    report = minimize(problem, "levenberg_marquardt").report
    scaled = report.covariance_of(lambda x: torch.stack([100 * x[0], x[1].square()]))
    expected = torch.stack([1e4 * report.covariance[0, 0], 4 * report.x[1] ** 2 * report.covariance[1, 1]])
    torch.testing.assert_close(scaled.diagonal(), expected)


def test_fewer_data_than_parameters():
    problem = FunctionProblem([1.0, 1.0, 1.0], residuals=lambda x: torch.stack([x.sum() - 6, x[0] - x[1]]))
    result = minimize(problem, "levenberg_marquardt")
    report = result.report
    assert result.loss < 1e-20 and report.noise == torch.inf  # no residual is left to tell it
    assert torch.isinf(report.deviation).all() and not report.determined.any()
    assert report.sentences[0].startswith("There are 2 data for 3 parameters")
    assert any("cannot tell apart x0, x1 and x2" in s for s in report.sentences)


def test_wrong_problems():
    with pytest.raises(InputError, match="no sum of squares"):
        minimize(FunctionProblem([1.0], loss=lambda x: x.sum()), "levenberg_marquardt")
    with pytest.raises(InputError, match="do not depend on x"):
        minimize(FunctionProblem([1.0], residuals=lambda x: torch.ones(3)), "levenberg_marquardt")

    def nowhere_else(x: torch.Tensor) -> torch.Tensor:
        if x.item() != 1.0:
            raise SimulationError("blew up")
        return x

    with pytest.raises(SimulationError, match="not finite along x0"):
        minimize(FunctionProblem([1.0], residuals=nowhere_else), "levenberg_marquardt")


def test_bad_candidates_are_stepped_around():
    """The optimum is at 1; beyond 1.5 nothing can be simulated, and Gauss-Newton steps from -3 lead there."""

    def residuals(x: torch.Tensor) -> torch.Tensor:
        if x[0] > 1.5:
            raise SimulationError("blew up")
        if x[0] < -4.0:
            raise RangeError("out of range")
        return torch.stack([torch.atan(x[0] - 1), 0.1 * (x[0] - 1)])

    result = minimize(FunctionProblem([-3.0], residuals=residuals), "levenberg_marquardt", radius=10.0)
    assert result.x.item() == pytest.approx(1.0) and result.dropped > 0
    with pytest.raises(SimulationError, match="blew up"):
        minimize(FunctionProblem([3.0], residuals=residuals), "levenberg_marquardt")


def test_derivatives_are_one_sided_beside_what_cannot_be_simulated():
    """The optimum is within half a difference of where the simulation fails, and of a second way to fail."""

    def residuals(x: torch.Tensor) -> torch.Tensor:
        if x[0] > 1.0 + 1e-7:
            raise RangeError("out of range", [0])
        return torch.stack([x[0] - 1, torch.where(x[1] < 2.0, torch.nan, x[1] - 2), x[0] * x[1] - 2])

    result = minimize(FunctionProblem([0.5, 3.0], residuals=residuals), "levenberg_marquardt")
    assert result.loss < 1e-12
    np.testing.assert_allclose(result.x.numpy(), [1.0, 2.0], atol=1e-6)


def test_what_no_data_determine_is_never_certain():
    data = noisy()

    def residuals(x: torch.Tensor) -> torch.Tensor:
        return decay(torch.cat([x[:1] + x[3:4], x[1:3]])) - data

    names = ("part", "damping", "rate", "other", "color")
    problem = FunctionProblem([0.5, 0.2, 2.7, 0.5, 3.0], residuals=lambda x: residuals(x) + 0 * x[4], names=names)
    report = minimize(problem, "levenberg_marquardt").report
    assert report.determined.tolist() == [False, True, True, False, False]
    assert torch.isinf(report.deviation[[0, 3, 4]]).all()
    sure = FunctionProblem([1.0, 0.2, 2.7], residuals=lambda x: decay(x) - data)
    expected = minimize(sure, "levenberg_marquardt").report.deviation
    torch.testing.assert_close(report.deviation[1:3], expected[1:3], rtol=1e-4, atol=0)
    spread = report.covariance_of(lambda x: torch.stack([x[0], x[1], x[1] + x[4]])).diagonal()
    assert torch.isfinite(spread).tolist() == [False, True, False]
    shown = str(report)
    assert "part: " in shown and "±" not in shown.splitlines()[0]
    assert torch.equal(report.correlation.diagonal(), torch.ones(5, dtype=torch.float64))


def test_a_value_at_its_bound_is_named_and_has_no_deviation():
    """The others are no surer for it: their deviations are those of a fit in which it is free."""
    data = noisy()
    problem = FunctionProblem([1.0, 0.2, 2.7], residuals=lambda x: decay(x) - data, upper=[torch.inf, 0.3, torch.inf])
    result = minimize(problem, "levenberg_marquardt")
    report = result.report
    assert report.sentences == ("x1 is held by its bound.",)
    assert report.deviation.isinf().tolist() == [False, True, False]
    jacobian = torch.autograd.functional.jacobian(decay, result.x)
    noise = (2 * result.loss / (len(TIMES) - 3)) ** 0.5
    expected = noise * torch.linalg.inv(jacobian.T @ jacobian).diagonal().sqrt()
    torch.testing.assert_close(report.deviation[[0, 2]], expected[[0, 2]], rtol=1e-4, atol=0)
    assert report.noise == pytest.approx(noise)


def test_a_fit_far_above_the_stated_noise_says_so():
    """A model that lacks the damping: the residuals are what it lacks."""
    data = noisy()
    poor = FunctionProblem([1.0, 2.9], residuals=lambda x: decay(torch.stack([x[0], 0 * x[0], x[1]])) - data)
    report = minimize(poor, "levenberg_marquardt", noise=0.02).report
    assert report.at_noise_level is False
    assert f"The residuals are {report.noise / 0.02:.3g} times the stated noise" in report.sentences[0]
    assert report.noise > 0.2 and (report.deviation > 0.02).all()  # scaled by the residuals
    right = FunctionProblem([1.0, 0.2, 2.7], residuals=lambda x: decay(x) - data)
    report = minimize(right, "levenberg_marquardt", noise=0.02).report
    assert report.at_noise_level and report.sentences == ("The data determine all 3 parameters.",)
    assert minimize(right, "levenberg_marquardt").report.at_noise_level is None


def test_a_rough_loss_is_no_optimum():
    """The slope says that larger x is better, and every step but the shortest is refused."""

    def residuals(x: torch.Tensor) -> torch.Tensor:
        return (2.0 - x) + 5.0 * (x > 1.0)

    result = minimize(FunctionProblem([1.0], residuals=residuals), "levenberg_marquardt")
    assert result.stopped == "stalled" and not result.converged


def test_parameters_that_cannot_be_told_apart_do_not_break_a_long_search():
    """Each of fifty good steps lowers the damping; two columns of J are the same."""
    problem = FunctionProblem([3.0, 4.0], residuals=lambda x: ((x[0] + x[1]).reshape(1) - 1.0) ** 3)
    result = minimize(problem, "levenberg_marquardt", gradient=0.0, change=0.0, iterations=60, patience=100)
    assert result.loss < 1e-20


def test_a_fit_that_was_cut_off_says_so():
    data = noisy()
    problem = FunctionProblem([1.0, 0.2, 2.7], residuals=lambda x: decay(x) - data)
    report = minimize(problem, "levenberg_marquardt", iterations=2).report
    assert report.sentences[0].startswith("The search ended before its optimum")
