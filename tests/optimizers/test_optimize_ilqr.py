"""iLQR against Riccati's closed form, a bounded least-squares solver, and the gradients of rollouts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.linalg import block_diag, solve_discrete_are
from scipy.optimize import lsq_linear

from cart_problems import START, Q, R, carts_problem, linear_system
from simulator_support import arm, tumbler
from warpsim.core.driving import drive
from warpsim.core.errors import InputError
from warpsim.optimizers import ControlProblem, FunctionProblem, minimize, quadratic_cost
from warpsim.optimizers.expansion import expand
from warpsim.optimizers.ilqr import ILQR
from warpsim.rigid.model.tangent import difference, shift
from warpsim.sim.simulator import Simulator


def test_a_linear_system_gives_riccatis_solution_in_one_step():
    _, a, b = linear_system()
    p = solve_discrete_are(a, b, Q, R)
    gain = np.linalg.solve(R + b.T @ p @ b, b.T @ p @ a)
    result = minimize(carts_problem(30, terminal=p), "ilqr")
    assert result.stopped == "converged" and result.history[1].loss == pytest.approx(result.loss, rel=1e-12)
    assert result.loss == pytest.approx(0.5 * START @ p @ START, rel=1e-9)
    np.testing.assert_allclose(result.report.gains.numpy(), np.broadcast_to(-gain, (30, 2, 4)), atol=1e-8)
    x = START
    for control in result.report.controls.numpy():
        np.testing.assert_allclose(control, -gain @ x, atol=1e-8)
        x = a @ x + b @ control


@pytest.mark.parametrize("hold", [1, 3])
def test_limits_give_the_solution_of_the_quadratic_program(hold):
    _, a, b = linear_system()
    knots, limit = 20, 0.4
    powers = [np.linalg.matrix_power(a, i) for i in range(hold)]
    a, b = np.linalg.matrix_power(a, hold), sum(p @ b for p in powers)
    # All states as functions of all controls, so that the cost is one least-squares problem within a box.
    free = np.vstack([np.linalg.matrix_power(a, k) for k in range(knots + 1)])
    forced = np.zeros((4 * (knots + 1), 2 * knots))
    for k in range(1, knots + 1):
        for j in range(k):
            forced[4 * k : 4 * k + 4, 2 * j : 2 * j + 2] = np.linalg.matrix_power(a, k - 1 - j) @ b
    root_q = block_diag(*[np.linalg.cholesky(Q).T] * (knots + 1))
    root_r = block_diag(*[np.linalg.cholesky(R).T] * knots)
    design = np.vstack([root_q @ forced, root_r])
    target = np.concatenate([-root_q @ free @ START, np.zeros(2 * knots)])
    expected = lsq_linear(design, target, (-limit, limit), method="bvls", tol=1e-14)
    result = minimize(carts_problem(knots, limit=limit, hold=hold), "ilqr", gradient=1e-10)
    assert result.loss == pytest.approx(expected.cost, rel=1e-10)
    np.testing.assert_allclose(result.x.numpy(), expected.x, atol=1e-7)
    assert 5 < (result.x.abs() == limit).sum() < 2 * knots


def reach(outputs: bool = False, hold: int = 1, knots: int = 12) -> ControlProblem:
    """An arm with activations, asked to bring its forearm somewhere; costs are nonlinear."""
    sim = Simulator(arm())

    def running(states, controls):
        return torch.cat([0.3 * controls, 0.1 * torch.sin(states.q), 0.05 * states.qd * states.q], -1)

    def terminal(states):
        if not outputs:
            return torch.cat([3 * (torch.sin(states.q) - 0.4), states.activation - 0.1], -1)
        return torch.cat([5 * (states.body_position("fore") - 0.2), states.body_velocity("fore")], -1)

    shown = ("body_position", "body_velocity") if outputs else ()
    return ControlProblem(
        sim, knots, running=running, terminal=terminal, lower=[-1.5, -1.0], upper=[1.5, 1.0], hold=hold, q=[0.3, -0.2],
        qd=[0.5, 1.0], outputs=shown,
    )  # fmt: skip


@pytest.mark.parametrize(("outputs", "hold"), [(False, 1), (False, 4), (True, 1), (True, 2)])
def test_the_expansion_has_the_rollouts_loss_and_gradient(outputs, hold):
    problem = reach(outputs, hold)
    x = 0.5 * torch.randn(len(problem.start), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x.requires_grad_()
    loss = problem.loss(x)
    (gradient,) = torch.autograd.grad(loss, x)
    expansion = drive(expand(problem, x))
    assert expansion.loss == pytest.approx(loss.item(), rel=1e-13)
    assert expansion.gradient_norm(problem) == pytest.approx(gradient.abs().max().item(), rel=1e-9)
    assert problem.residuals(x.detach()).square().sum().item() / 2 == pytest.approx(loss.item(), rel=1e-13)
    both = problem.losses(torch.stack([x.detach(), 0 * x.detach()]))
    assert both[0].item() == pytest.approx(loss.item(), rel=1e-12)
    assert both[1].item() == pytest.approx(problem.loss(0 * x.detach()).item(), rel=1e-12)


@pytest.mark.parametrize("outputs", [False, True])
def test_a_nonlinear_problem_ends_where_a_gradient_method_ends(outputs):
    result = minimize(reach(outputs), "ilqr", iterations=100, gradient=1e-7)
    other = minimize(reach(outputs), "lbfgs", iterations=300, gradient=1e-7)
    assert result.converged and result.iterations < 40
    assert result.loss == pytest.approx(other.loss, rel=1e-8)
    losses = [row.loss for row in result.history]
    assert losses == sorted(losses, reverse=True)
    assert (result.x.abs() <= torch.tensor([1.5, 1.0]).repeat(12)).all()


def test_regularization_falls_faster_with_each_success():
    """Its factor shrinks by 1.6 from one success to the next, and from any growth to 1/1.6 at once."""
    problem, method = reach(), ILQR()
    expansion = drive(expand(problem, problem.start))
    for factor, expected in ((1.0, 1 / 1.6), (1 / 1.6, 1 / 1.6**2), (1.6**3, 1 / 1.6)):
        improved = drive(method.improve(problem, expansion, 1e-3, factor))
        assert improved.controls is not None and improved.loss < expansion.loss
        assert improved.factor == pytest.approx(expected) and improved.regularization == pytest.approx(1e-3 * expected)


def test_resuming_gives_the_same_bits():
    whole = minimize(reach(), "ilqr", iterations=6)
    part = minimize(reach(), "ilqr", iterations=2)
    resumed = minimize(reach(), "ilqr", iterations=6, resume=part.state)
    assert torch.equal(resumed.x, whole.x)
    assert [r.loss for r in resumed.history] == [r.loss for r in whole.history]


def test_free_bodies_and_ball_joints_on_their_tangent_space():
    sim = Simulator(tumbler(), controls=("joint_force",))
    layout, rng = sim.model.layout, np.random.default_rng(0)
    goal = shift(layout, sim.state.q[0], torch.tensor(0.1 * rng.normal(size=sim.nv)))
    lift = torch.zeros(sim.nv, dtype=torch.float64)
    lift[2] = sim.parameter("body.mass")[0].sum() * 9.81
    weights = dict(state=torch.full((18,), 1e-3), control=torch.full((9,), 1e-8), terminal=torch.full((18,), 10.0))
    running, terminal = quadratic_cost(sim, **weights, q=goal, u=lift)
    problem = ControlProblem(sim, 15, running=running, terminal=terminal, start=lift, hold=2)
    result = minimize(problem, "ilqr", iterations=20, change=1e-6, patience=2)
    last = result.report.states
    assert difference(layout, last.q[-1, 0], goal).abs().max() < 0.01
    assert last.qd[-1].abs().max() < 0.05
    x = (result.x + torch.tensor(rng.normal(size=len(result.x)))).requires_grad_()
    (gradient,) = torch.autograd.grad(problem.loss(x), x)
    assert drive(expand(problem, x)).gradient_norm(problem) == pytest.approx(gradient.abs().max().item(), rel=1e-9)


def test_the_tangent_difference_undoes_a_shift():
    layout = Simulator(tumbler()).model.layout
    rng = np.random.default_rng(1)
    q = shift(layout, Simulator(tumbler()).state.q[0], torch.tensor(rng.normal(size=layout.nv)))
    for scale in (0.5, 1e-2, 1e-5, 1e-9, 0.0):
        delta = torch.tensor(scale * rng.normal(size=(3, layout.nv)))
        moved = shift(layout, q.expand(3, -1), delta)
        torch.testing.assert_close(difference(layout, moved, q), delta, rtol=1e-12, atol=1e-15)
        torch.testing.assert_close(difference(layout, -moved, -q)[:, 3:], delta[:, 3:], rtol=1e-12, atol=1e-15)
        jacobian = torch.autograd.functional.jacobian(
            lambda d, at=moved[0]: difference(layout, shift(layout, q, d), q), delta[0] + 1e-12
        )
        torch.testing.assert_close(jacobian, torch.eye(layout.nv, dtype=torch.float64), rtol=0, atol=1e-6)


def test_parameters_in_force_are_the_models():
    problem = reach()
    before = problem.loss(problem.start).item()
    problem.sim.set_parameters({"world.gravity": 0.5 * problem.sim.parameter("world.gravity")[0]})
    changed = problem.loss(problem.start).item()
    assert changed != before
    problem.sim.set_parameters(None)
    assert problem.loss(problem.start).item() == before


def test_wrong_problems():
    with pytest.raises(InputError, match="ilqr needs a ControlProblem"):
        minimize(FunctionProblem([1.0], loss=lambda x: x.sum()), "ilqr")
    sim = Simulator(arm())
    with pytest.raises(InputError, match=r"lower has shape \(3,\); needed: \(2,\) or \(5, 2\)"):
        ControlProblem(sim, 5, running=lambda s, u: u, lower=[0.0, 0.0, 0.0])
    with pytest.raises(InputError, match="worlds=1"):
        ControlProblem(Simulator(arm(), worlds=2), 5, running=lambda s, u: u)
    with pytest.raises(InputError, match=r"running residuals have shape \(10,\)"):
        minimize(ControlProblem(sim, 5, running=lambda s, u: u.flatten()), "ilqr")
    with pytest.raises(InputError, match="negative eigenvalue"):
        quadratic_cost(sim, state=-torch.ones(4), control=torch.ones(2), q=[0.0, 0.0])
