"""USD attributes chosen by what a rollout does: candidates over worlds, gradients, and a fit with a known answer."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from warpsim.core.errors import InputError
from warpsim.optimizers import RolloutProblem, Variable, Variables, minimize
from warpsim.sim.simulator import Simulator

PENDULUM = Path(__file__).resolve().parents[2] / "scenes" / "pendulum.usda"
BOB, GRAVITY = "/World/Pendulum/Bob.physics:mass", "/World/Physics.physics:gravityMagnitude"


@pytest.fixture(scope="module")
def problem() -> RolloutProblem:
    """The pendulum's swing under a gravity of 12 m/s², to be explained by gravity and the bob's mass."""
    sim = Simulator(PENDULUM)
    with torch.no_grad():
        data = sim.rollout(steps=200, parameters={GRAVITY: 12.0}, keep_every=10).q
    variables = Variables([Variable(sim.attribute(path), positive=True) for path in (GRAVITY, BOB)])
    return RolloutProblem(sim, variables, lambda t: (t.q - data).transpose(0, 1).flatten(1), steps=200, keep_every=10)


def test_candidates_side_by_side_are_candidates_alone(problem):
    x = torch.tensor([[0.1, -0.2], [0.0, 0.0], [-0.3, 0.5]], dtype=torch.float64)
    rows, losses = problem.batched_residuals(x), problem.losses(x)
    assert rows.shape == (3, 21)
    for k in range(3):
        assert torch.equal(rows[k], problem.residuals(x[k]))
        torch.testing.assert_close(losses[k], problem.loss(x[k]), rtol=1e-14, atol=0)


def test_gradients_are_those_of_differences(problem):
    x = torch.tensor([0.1, -0.2], dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(problem.loss(x), x)
    moves = 1e-5 * torch.eye(2, dtype=torch.float64)
    with torch.no_grad():
        expected = (problem.losses(x + moves) - problem.losses(x - moves)) / 2e-5
    torch.testing.assert_close(gradient, expected, rtol=1e-6, atol=1e-9)


def test_a_fit_says_that_a_swing_shows_one_number_only(problem):
    # The angle obeys θ̈ = −g·Σmc/ΣI·sin θ: gravity and the bob's mass enter through one factor.
    result = minimize(problem, "levenberg_marquardt", gradient=1e-11)
    assert result.loss < 1e-18
    (said,) = result.report.sentences
    assert f"cannot tell apart {GRAVITY} and {BOB}" in said


def test_a_fit_finds_gravity(problem):
    sim = Simulator(PENDULUM)
    with torch.no_grad():
        data = sim.rollout(steps=200, parameters={GRAVITY: 12.0}, keep_every=10).q
    gravity = Variables([Variable(sim.attribute(GRAVITY), positive=True)])
    alone = RolloutProblem(sim, gravity, lambda t: (t.q - data).transpose(0, 1).flatten(1), steps=200, keep_every=10)
    (found,) = alone.values(minimize(alone, "levenberg_marquardt").x).values()
    assert found.item() == pytest.approx(12.0, rel=1e-8)


def test_a_short_horizon_has_the_first_residuals(problem):
    x = torch.tensor([0.1, -0.2], dtype=torch.float64)
    short = problem.shortened(0.25)
    assert torch.equal(short.residuals(x), problem.residuals(x)[:6])  # rows 0, 10 … 50 of 200 steps
    leaf = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(short.residuals(leaf).square().sum(), leaf)
    (expected,) = torch.autograd.grad(problem.residuals(leaf)[:6].square().sum(), leaf)
    torch.testing.assert_close(gradient, expected, rtol=1e-10, atol=1e-14)
    assert problem.shortened(1.0) is None
    sim = Simulator(PENDULUM)
    last = RolloutProblem(sim, problem.variables, lambda t: t.q[-1], steps=200)
    assert last.shortened(0.5) is None  # nothing of it depends on the first half alone


def test_wrong_residuals(problem):
    sim = Simulator(PENDULUM)
    wrong = RolloutProblem(sim, problem.variables, lambda t: t.q.flatten(), steps=3)
    with pytest.raises(InputError, match=r"needed: \(1, m\), worlds first"):
        wrong.loss(wrong.start)
    with pytest.raises(InputError, match="worlds=1"):
        RolloutProblem(Simulator(PENDULUM, worlds=2), problem.variables, lambda t: t.q, steps=3)
