"""Several starts: the global optimum of a function with many valleys, the same for the same seed."""

from __future__ import annotations

import json
import os
import signal

import pytest
import torch

from warpsim.core.errors import InputError
from warpsim.optimizers import FunctionProblem, minimize, multi_start
from warpsim.optimizers.multi_start import draw_starts


def rastrigin(x: torch.Tensor) -> torch.Tensor:
    """Valleys one apart; the deepest is at 0.7, with loss 0."""
    z = x - 0.7
    return (z.square() + 2 * (1 - torch.cos(2 * torch.pi * z))).sum()


def problem(**bounds) -> FunctionProblem:
    return FunctionProblem([2.8, -1.4], loss=rastrigin, **bounds)


def test_it_finds_the_deepest_of_many_valleys():
    assert minimize(problem(), "lbfgs").loss > 1
    result = multi_start(problem(lower=-2.0, upper=3.0), seed=0, candidates=40, explore=10, keep=3)
    assert result.loss < 1e-12 and result.converged
    assert torch.allclose(result.x, torch.full((2,), 0.7, dtype=torch.float64))
    report = result.report
    assert report.starts.shape == report.explored.shape == (40, 2) and len(report.finished) == 3
    assert (report.after <= report.before).all()
    assert list(report.finished)[0] == int(report.after.argmin())
    assert min(report.finished.values()) == result.loss


def test_starts_are_seeded_and_within_bounds():
    mixed = FunctionProblem(
        [4.0, -3.0, 0.0], loss=rastrigin, lower=[-5.0, -torch.inf, -1.0], upper=[5.0, -2.9, torch.inf]
    )
    drawn = draw_starts(mixed, 200, 0.5, seed=3)
    assert torch.equal(drawn, draw_starts(mixed, 200, 0.5, seed=3))
    assert not torch.equal(drawn, draw_starts(mixed, 200, 0.5, seed=4))
    assert torch.equal(drawn[0], mixed.start)
    assert ((drawn >= mixed.lower) & (drawn <= mixed.upper)).all()
    assert drawn[:, 0].std() == pytest.approx(10 / 12**0.5, rel=0.1)
    assert drawn[1:, 2].clamp(-1, 5).std() == pytest.approx(0.5, rel=0.1)


def test_candidates_that_fail_do_not_spoil_the_others():
    def loss(x):
        return torch.where(x[0] > 0, torch.inf, rastrigin(x - 2))

    result = multi_start(FunctionProblem([-3.0], loss=loss, lower=-5.0, upper=5.0), seed=1, explore=10)
    assert torch.isinf(result.report.before).any()
    assert result.x.item() == pytest.approx(-0.223, abs=0.01)  # the valley nearest to 2.7 that can be simulated


@pytest.mark.parametrize("at", [50, 285])
def test_an_interrupted_search_goes_on_to_the_same_end(at):
    calls = 0

    def loss(x):
        nonlocal calls
        calls += 1
        if calls == at:
            os.kill(os.getpid(), signal.SIGINT)
        return rastrigin(x)

    cut_problem = FunctionProblem([2.8, -1.4], loss=loss)
    options = dict(seed=0, candidates=12, explore=20, keep=2)
    cut = multi_start(cut_problem, **options)
    assert cut.stopped == "interrupted"
    assert rastrigin(cut.x).item() == cut.loss
    resumed = multi_start(cut_problem, resume=json.loads(json.dumps(cut.state)), **options)
    whole = multi_start(problem(), **options)
    assert torch.equal(resumed.x, whole.x) and resumed.report.finished == whole.report.finished


def test_a_killed_search_goes_on_from_what_its_callback_was_told():
    options = dict(seed=0, candidates=6, explore=5, keep=2)
    states, best = [], []

    def keep(seen):
        states.append(json.dumps(seen.state()))
        best.append(seen.best_loss)
        assert rastrigin(seen.best_x).item() == seen.best_loss

    whole = multi_start(problem(), callback=keep, **options)
    assert best == sorted(best, reverse=True) and best[-1] == whole.loss
    for state in states:
        resumed = multi_start(problem(), resume=json.loads(state), **options)
        assert torch.equal(resumed.x, whole.x) and resumed.report.finished == whole.report.finished


def test_wrong_calls():
    with pytest.raises(InputError, match="keep ≤ candidates"):
        multi_start(problem(), seed=0, candidates=2, keep=3)
    with pytest.raises(InputError, match="not 'multi_start'"):
        multi_start(problem(), seed=0, resume=minimize(problem(), iterations=1).state)
