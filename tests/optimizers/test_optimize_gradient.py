"""Adam and L-BFGS against known optima and scipy; stopping, interruption and resumption, for every method."""

from __future__ import annotations

import json
import math
import os
import signal

import numpy as np
import pytest
import scipy.optimize
import torch

from warpsim.core.errors import InputError, SimulationError, UnconvergedError, UnknownNameError
from warpsim.optimizers import FunctionProblem, minimize


def rosenbrock(x: torch.Tensor) -> torch.Tensor:
    return (100 * (x[1:] - x[:-1] ** 2).square() + (1 - x[:-1]).square()).sum()


def rosenbrock_residuals(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([10 * (x[1:] - x[:-1] ** 2), 1 - x[:-1]])


def oracle(problem: FunctionProblem):
    """scipy's L-BFGS-B on the same problem."""

    def function(x):
        leaf = torch.tensor(x, requires_grad=True)
        loss = problem.loss(leaf)
        return loss.item(), torch.autograd.grad(loss, leaf)[0].numpy()

    bounds = list(zip(problem.lower.tolist(), problem.upper.tolist(), strict=True))
    options = dict(ftol=1e-15, gtol=1e-10, maxiter=5000, maxfun=50000)
    start = problem.start.numpy()
    return scipy.optimize.minimize(function, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)


def quadratic(seed: int, n: int = 12) -> FunctionProblem:
    """A convex quadratic whose optimum lies on several bounds."""
    rng = np.random.default_rng(seed)
    root = torch.tensor(rng.normal(size=(n, n)))
    matrix, vector = root @ root.T + 0.1 * torch.eye(n), torch.tensor(3 * rng.normal(size=n))
    low, high = -rng.uniform(size=n), rng.uniform(size=n)
    low[0], high[1] = -np.inf, np.inf
    start = np.clip(rng.normal(size=n), low, high)
    return FunctionProblem(start, loss=lambda x: 0.5 * x @ matrix @ x + vector @ x, lower=low, upper=high)


@pytest.mark.parametrize("n", [2, 10])
def test_lbfgs_solves_rosenbrock(n):
    problem = FunctionProblem([-1.2, 1.0] * (n // 2), loss=rosenbrock)
    result = minimize(problem, "lbfgs", iterations=500)
    assert result.stopped == "converged" and result.converged
    torch.testing.assert_close(result.x, torch.ones(n, dtype=torch.float64), rtol=0, atol=1e-6)
    assert result.evaluations < 3 * oracle(problem).nfev
    losses = [row.loss for row in result.history]
    assert losses == sorted(losses, reverse=True)
    assert [row.iteration for row in result.history] == list(range(result.iterations + 1))


@pytest.mark.parametrize("seed", range(6))
def test_lbfgs_within_bounds(seed):
    problem = quadratic(seed)
    result = minimize(problem, "lbfgs", iterations=500, gradient=1e-9, change=0.0)
    expected = oracle(problem)
    held = (result.x == problem.lower) | (result.x == problem.upper)
    assert held.sum() >= 2
    assert ((problem.lower <= result.x) & (result.x <= problem.upper)).all()
    np.testing.assert_allclose(result.x.numpy(), expected.x, atol=1e-5)
    assert result.loss <= expected.fun + 1e-12 * abs(expected.fun)


def test_lbfgs_on_rosenbrock_with_its_optimum_cut_off():
    # With x0 ≤ 0.5 the optimum is x1 = 0.25, x0 = 0.5.
    problem = FunctionProblem([-1.2, 1.0], loss=rosenbrock, upper=[0.5, 5.0])
    result = minimize(problem, "lbfgs")
    np.testing.assert_allclose(result.x.numpy(), [0.5, 0.25], atol=1e-7)
    assert result.loss == pytest.approx(0.25)


def test_lbfgs_follows_a_kinked_valley():
    # |x0² − x1| + (1 − x0)²/4: not differentiable along the valley's floor; the optimum is (1, 1).
    problem = FunctionProblem([-1.0, 0.5], loss=lambda x: (x[0] ** 2 - x[1]).abs() + 0.25 * (1 - x[0]) ** 2)
    assert minimize(problem, "lbfgs", iterations=500).loss < 1e-6


class Unconverged(torch.autograd.Function):
    """The square of x; where x is above 2, a loss without a gradient."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square().sum()

    @staticmethod
    def backward(ctx, adjoint):
        (x,) = ctx.saved_tensors
        if bool((x > 2.0).any()):
            raise UnconvergedError("no gradient here", step=3, world=0, residual=1.0)
        return adjoint * 2.0 * x


def test_lbfgs_steps_around_a_gradient_through_steps_that_did_not_converge():
    # The optimum, 3, lies where no gradient is: the search comes as near to it as it can.
    problem = FunctionProblem([-1.0], loss=lambda x: Unconverged.apply(x) - 6.0 * x.sum(), upper=[5.0])
    result = minimize(problem, "lbfgs", iterations=40)
    assert result.loss < problem.loss(problem.start).item()
    assert float(result.x) <= 2.0
    with pytest.raises(UnconvergedError):
        minimize(FunctionProblem([3.0], loss=Unconverged.apply), "lbfgs")


@pytest.mark.parametrize("seed", range(2))
def test_adam_within_bounds(seed):
    problem = quadratic(seed)
    result = minimize(problem, "adam", rate=0.1, decay=0.99, iterations=600)
    expected = oracle(problem)
    assert result.loss - expected.fun < 1e-4 * (problem.loss(problem.start).item() - expected.fun)
    at_bound = (expected.x == problem.lower.numpy()) | (expected.x == problem.upper.numpy())
    np.testing.assert_array_equal(result.x.numpy()[at_bound], expected.x[at_bound])


def test_adam_is_torchs():
    problem = FunctionProblem([-1.2, 1.0, 0.3], loss=rosenbrock)
    x = problem.start.clone().requires_grad_()
    optimizer = torch.optim.Adam([x], lr=0.02)
    for _ in range(25):
        optimizer.zero_grad()
        rosenbrock(x).backward()
        optimizer.step()
    last = {}
    minimize(problem, "adam", rate=0.02, iterations=25, callback=lambda seen: last.update(x=seen.x))
    assert torch.equal(last["x"], x.detach())


def test_clipping_bounds_the_gradient_that_adam_sees():
    cliff = FunctionProblem([1.0], loss=lambda x: 1e6 * (x[0] - 3).abs())
    moments = minimize(cliff, "adam", clip=2.0, iterations=1).state["iterate"]["memory"]["moments"]
    assert moments["exp_avg"]["__tensor__"] == [pytest.approx(-0.2)]


METHODS = [
    ("lbfgs", {}),
    ("adam", dict(rate=0.05, decay=0.99)),
    ("polyak", {}),
    ("levenberg_marquardt", {}),
    ("cem", dict(seed=3)),
]


@pytest.mark.parametrize(("method", "options"), METHODS)
def test_resuming_gives_the_same_bits(method, options):
    problem = FunctionProblem([-1.2, 1.0, -0.5, 0.8], residuals=rosenbrock_residuals, upper=[0.9, 5.0, 5.0, 5.0])
    whole = minimize(problem, method, iterations=17, **options)
    part = minimize(problem, method, iterations=6, **options)
    assert part.stopped == "iterations" and part.iterations == 6
    saved = json.loads(json.dumps(part.state))
    resumed = minimize(problem, method, iterations=17, resume=saved, **options)
    assert torch.equal(resumed.x, whole.x) and resumed.loss == whole.loss
    assert [r.loss for r in resumed.history] == [r.loss for r in whole.history]
    assert [r.evaluations for r in resumed.history] == [r.evaluations for r in whole.history]
    assert resumed.state["iterate"] == whole.state["iterate"]
    assert resumed.seconds >= part.seconds


@pytest.mark.parametrize(("method", "options"), METHODS)
def test_ctrl_c_keeps_the_best_and_can_go_on(method, options):
    calls = 0

    def residuals(x):
        nonlocal calls
        calls += 1
        if calls == 12:
            os.kill(os.getpid(), signal.SIGINT)
        return rosenbrock_residuals(x)

    problem = FunctionProblem([-1.2, 1.0], residuals=residuals)
    cut = minimize(problem, method, iterations=30, **options)
    assert cut.stopped == "interrupted"
    assert cut.loss == min(row.loss for row in cut.history) == problem.loss(cut.x).item()
    resumed = minimize(problem, method, iterations=30, resume=cut.state, **options)
    whole = minimize(problem, method, iterations=30, **options)
    assert torch.equal(resumed.x, whole.x) and resumed.iterations == whole.iterations


def test_the_best_is_kept_when_a_method_climbs():
    # Far too long steps: Adam overshoots the optimum at 0 and comes back later.
    problem = FunctionProblem([0.5], loss=lambda x: x[0] ** 2)
    result = minimize(problem, "adam", rate=0.4, iterations=8, change=0.0)
    assert result.loss == min(row.loss for row in result.history) < result.history[-1].loss
    assert result.x.item() ** 2 == result.loss


def test_stopping_rules():
    problem = FunctionProblem([-1.2, 1.0], loss=rosenbrock)
    target = minimize(problem, "lbfgs", target=1e-3)
    assert target.stopped == "target" and target.loss <= 1e-3 < target.history[-2].loss
    assert minimize(problem, "adam", seconds=1e-9).stopped == "time"
    assert minimize(problem, "adam", iterations=0).iterations == 0
    flat = minimize(problem, "adam", rate=1e-12, iterations=500, patience=7, change=1e-6)
    assert flat.stopped == "converged" and flat.iterations == 7
    assert minimize(problem, "lbfgs", gradient=1e6).iterations == 0
    ended = minimize(problem, "lbfgs", callback=lambda seen: seen.entry.iteration == 4)
    assert ended.stopped == "interrupted" and ended.iterations == 4
    wall = FunctionProblem([1.0], loss=lambda x: torch.where(x[0] < 1.0, torch.inf, x[0]).square())
    assert minimize(wall, "lbfgs").stopped == "stalled"


def test_the_callback_sees_what_is_reported():
    rows, states = [], []
    problem = FunctionProblem([-1.2, 1.0], loss=rosenbrock)
    result = minimize(
        problem, "lbfgs", iterations=5, callback=lambda s: (rows.append(s.entry), states.append(s.state()))[0]
    )
    assert rows == result.history
    assert states[-1] == result.state
    assert result.entries()[0]["loss"] == pytest.approx(24.2)


def test_a_progress_bar_shows_loss_and_gradient(capsys):
    minimize(FunctionProblem([-1.2, 1.0], loss=rosenbrock), "lbfgs", iterations=3, progress=True)
    shown = capsys.readouterr().err
    assert "loss=" in shown and "gradient=" in shown


def test_what_cannot_be_simulated_is_stepped_around():
    def loss(x):
        if x[0] > 1.5:
            raise SimulationError("blew up")
        return (x[0] - 1) ** 2

    result = minimize(FunctionProblem([-3.0], loss=loss), "lbfgs", first_step=10.0)
    assert result.x.item() == pytest.approx(1.0)
    with pytest.raises(SimulationError):
        minimize(FunctionProblem([3.0], loss=loss), "lbfgs")


@pytest.mark.parametrize("method", ["lbfgs", "adam", "levenberg_marquardt"])
def test_a_start_that_is_not_finite_says_so(method):
    bad = minimize(FunctionProblem([0.0], residuals=lambda x: torch.log(x)), method)
    assert bad.stopped == "non-finite" and "loss is not finite at iteration 0" in bad.message
    bad = minimize(FunctionProblem([0.0], residuals=lambda x: x.sqrt() + 1), method)
    assert bad.stopped == "non-finite" and "gradient is not finite" in bad.message
    assert math.isfinite(bad.loss)


def test_wrong_calls():
    problem = FunctionProblem([-1.2, 1.0], loss=rosenbrock)
    with pytest.raises(UnknownNameError, match="did you mean 'lbfgs'"):
        minimize(problem, "bfgs")
    with pytest.raises(UnknownNameError, match="no option of adam 'rat'; did you mean 'rate'"):
        minimize(problem, "adam", rat=1.0)
    with pytest.raises(InputError, match="iterations ≥ 0"):
        minimize(problem, "adam", iterations=-1)
    with pytest.raises(InputError, match="of method 'adam', not 'lbfgs'"):
        minimize(problem, "lbfgs", resume=minimize(problem, "adam", iterations=1).state)
    with pytest.raises(InputError, match="2 values, the problem 3"):
        resume = minimize(problem, "adam", iterations=1).state
        minimize(FunctionProblem([1.0, 1.0, 1.0], loss=rosenbrock), "adam", resume=resume)
    with pytest.raises(InputError, match="does not depend on x"):
        minimize(FunctionProblem([1.0], loss=lambda x: torch.tensor(1.0)), "lbfgs")
    with pytest.raises(InputError, match="must be one number"):
        minimize(FunctionProblem([1.0], loss=lambda x: x), "lbfgs")


@pytest.mark.parametrize("method", ["adam", "lbfgs"])
def test_a_search_goes_on_where_a_candidate_has_no_gradient(method):
    """Toward 3 from −1, without a gradient above 2: the best so far counts, and the dropped candidates are told."""
    problem = FunctionProblem([-1.0], loss=lambda x: Unconverged.apply(x) - 6.0 * x.sum(), upper=[5.0])
    options = {"rate": 0.7} if method == "adam" else {}
    result = minimize(problem, method, iterations=40, **options)
    assert 1.5 < float(result.x) <= 2.0
    assert result.stopped == "stalled" and result.message
    if method == "adam":
        assert "solver_status" in result.message and "could not be simulated" in result.message


@pytest.mark.parametrize("jacobian", ["differences", "reverse"])
def test_a_fit_goes_on_where_a_candidate_has_no_gradient(jacobian):
    """Residuals x² and x − 3: the steps toward their optimum that lead above 2 are shortened."""

    def residuals(x):
        return torch.cat([Unconverged.apply(x).reshape(1) * 0.01, x - 3.0])

    problem = FunctionProblem([0.5], residuals=residuals)
    result = minimize(problem, "levenberg_marquardt", iterations=40, jacobian=jacobian)
    assert 1.5 < float(result.x) <= 2.0
    with pytest.raises(UnconvergedError):
        minimize(FunctionProblem([3.0], residuals=residuals), "levenberg_marquardt", jacobian=jacobian)


@pytest.mark.parametrize("method", ["adam", "lbfgs", "levenberg_marquardt", "cem"])
def test_a_saved_search_that_lacks_something_says_so(method):
    def residuals(x):
        return x - torch.tensor([1.0, 2.0])

    problem = FunctionProblem([0.0, 0.0], residuals=residuals)
    state = json.loads(json.dumps(minimize(problem, method, iterations=1).state))
    minimize(problem, method, iterations=2, resume=state)
    state["iterate"]["memory"] = {}
    with pytest.raises(InputError, match="start anew"):
        minimize(problem, method, iterations=2, resume=state)
