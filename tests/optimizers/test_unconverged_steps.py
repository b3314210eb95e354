"""Searches whose candidates meet steps that do not converge step around them, and never move by such a slope."""

from __future__ import annotations

import json

import mujoco
import pytest
import torch

from warpsim.core.errors import UnconvergedError
from warpsim.io.mjcf import scene_from_mjmodel
from warpsim.optimizers import ControlProblem, FunctionProblem, ilqr, minimize, multi_start
from warpsim.optimizers.expansion import expand
from warpsim.optimizers.ilqr import ILQR
from warpsim.scene import convergence
from warpsim.sim.simulator import Simulator

CART = """<mujoco>
  <option timestep="0.02" gravity="0 0 0" iterations="1"/>
  <worldbody>
    <body name="cart"><joint name="x" type="slide" axis="1 0 0"/><geom type="box" size=".1 .1 .1" mass="1"/></body>
    <body name="crate" pos=".4 .03 .02"><freejoint/><geom type="box" size=".1 .1 .1" mass="1"/></body>
  </worldbody>
  <actuator><motor joint="x"/></actuator>
</mujoco>"""
"""A cart that converges in one iteration; a crate floats in its way, from 0.2 m, where one is mostly not enough."""

KNOTS, HOLD = 5, 8


@pytest.fixture
def sim(monkeypatch) -> Simulator:
    monkeypatch.setattr(convergence, "MIN_ITERATIONS", 1)
    return Simulator(scene_from_mjmodel(mujoco.MjModel.from_xml_string(CART)))


def to_the_crate(sim: Simulator, wanted: float = 1.0) -> ControlProblem:
    """The cart should come to rest at a place, beyond the crate unless said otherwise."""

    def running(states, controls):
        return 1e-3 * controls

    def terminal(states):
        return torch.cat([states.q[..., :1] - wanted, 0.1 * states.qd[..., :1]], -1)

    return ControlProblem(sim, KNOTS, running=running, terminal=terminal, hold=HOLD, lower=[-0.5], upper=[4.0])


def has_gradient(problem: ControlProblem, x: torch.Tensor) -> bool:
    leaf = x.detach().clone().requires_grad_()
    try:
        problem.loss(leaf).backward()
    except UnconvergedError:
        assert leaf.grad is None
        return False
    return True


def test_the_crate_is_where_gradients_end(sim):
    """What the tests below rest on."""
    problem = to_the_crate(sim)
    for push, reached in ((0.2, True), (2.0, False)):
        assert has_gradient(problem, torch.full((KNOTS,), push, dtype=torch.float64)) is reached


def test_ilqr_takes_other_steps_where_the_best_has_no_derivatives(sim):
    problem = to_the_crate(sim)
    result = minimize(problem, "ilqr", iterations=2)
    assert result.history[-1].dropped > 0 and "could not be simulated" in result.message
    assert result.loss < problem.loss(problem.start).item() and has_gradient(problem, result.x)


def test_ilqr_says_why_it_ends_where_no_step_has_derivatives(sim, monkeypatch):
    """As if every candidate met the crate: from the start, all that is left is to say so."""
    problem, made = to_the_crate(sim), []

    def expanded_once(problem, x):
        if made:
            raise UnconvergedError("step 7 did not converge", step=7, world=0, residual=1.0)
        made.append((yield from expand(problem, x)))
        return made[0]

    monkeypatch.setattr(ilqr, "expand", expanded_once)
    result = minimize(problem, ILQR(maximum_regularization=1e-5), iterations=5)
    assert result.stopped == "stalled" and "no derivatives: step 7 did not converge" in result.message
    assert torch.equal(result.x, problem.start) and result.history[-1].dropped > 0


def test_ilqr_does_not_begin_without_derivatives(sim):
    problem = to_the_crate(sim)
    with pytest.raises(UnconvergedError, match="step"):
        minimize(problem, "ilqr", start=torch.full((KNOTS,), 2.0, dtype=torch.float64))


def test_a_gradient_method_stays_where_there_are_gradients(sim):
    problem = to_the_crate(sim)
    result = minimize(problem, "lbfgs", iterations=6)
    assert result.loss < problem.loss(problem.start).item()
    assert has_gradient(problem, result.x)


def test_one_start_without_a_gradient_does_not_end_the_others(sim):
    problem = to_the_crate(sim, wanted=0.15)
    result = multi_start(problem, seed=0, candidates=4, explore=3, rate=0.1, keep=2, iterations=4)
    blocked = [not has_gradient(problem, start) for start in result.report.starts]
    assert any(blocked) and not all(blocked)
    assert result.loss < float(result.report.before[0]) and has_gradient(problem, result.x)
    moved = (result.report.explored != result.report.starts).any(-1).tolist()
    assert not any(m for m, b in zip(moved, blocked, strict=True) if b)  # by no slope at all


# ---------------------------------------------------------------------------------------- of losses, without physics


class Walled(torch.autograd.Function):
    """The losses (x − 1)² of candidates (k, n); above 2 they are low, but one of them leaves none with a gradient."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where((x > 2.0).any(-1), -1.0, (x - 1.0).square().sum(-1))

    @staticmethod
    def backward(ctx, adjoint):
        (x,) = ctx.saved_tensors
        if bool((x > 2.0).any()):
            raise UnconvergedError("no gradient here", step=3, world=0, residual=1.0)
        return adjoint[:, None] * 2.0 * (x - 1.0)


class Batched(FunctionProblem):
    """Candidates share a backward pass, as worlds of a rollout do."""

    def losses(self, x: torch.Tensor) -> torch.Tensor:
        return Walled.apply(x)


def walled(start: float = 0.0, lower: float = -4.0) -> Batched:
    return Batched([start], loss=lambda x: Walled.apply(x[None])[0], lower=lower, upper=4.0)


def test_the_next_best_start_is_finished_where_the_best_has_no_gradient():
    result = multi_start(walled(), seed=0, candidates=12, explore=2, keep=2)
    report = result.report
    blind = (report.explored > 2.0).flatten()
    assert blind.any() and bool(blind[report.after.argmin()])
    assert set(report.skipped) == set(torch.nonzero(blind).flatten().tolist()) and len(report.finished) == 2
    assert not blind[list(report.finished)].any()
    assert float(result.x) == pytest.approx(1.0, abs=1e-6)
    assert torch.equal(report.explored[blind], report.starts[blind])
    assert sum("not finished: no gradient here" in line for line in report.lines()) == len(report.skipped)


def test_an_interrupted_search_goes_on_with_the_start_it_was_at():
    whole = multi_start(walled(), seed=0, candidates=12, explore=2, keep=2)
    seen = []

    def stop(progress) -> bool:
        seen.append(progress.state())
        return len(seen) == 5  # after three states of exploring, in the first finish

    cut = multi_start(walled(), seed=0, candidates=12, explore=2, keep=2, callback=stop)
    assert cut.stopped == "interrupted" and len(cut.report.finished) == 1
    for state in (seen[-1], cut.state):
        kept = json.loads(json.dumps(state))
        again = multi_start(walled(), seed=0, candidates=12, explore=2, keep=2, resume=kept)
        assert again.loss == whole.loss and torch.equal(again.x, whole.x)
        assert again.report.finished == whole.report.finished and again.report.skipped == whole.report.skipped


def test_without_any_gradient_the_error_comes_through():
    with pytest.raises(UnconvergedError, match="no gradient here"):
        multi_start(walled(3.0, lower=2.5), seed=0, candidates=3, explore=2)
    with pytest.raises(UnconvergedError, match="no gradient here"):
        multi_start(walled(3.0, lower=2.5), seed=0, candidates=3, explore=0)
