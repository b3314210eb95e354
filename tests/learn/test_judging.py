"""What a policy is worth, world gradients and moments, from numbers that are given; nothing is simulated."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from warpsim.core.errors import InputError
from warpsim.core.kernels import initialize
from warpsim.learn.judge import Judge, Score
from warpsim.learn.normalizer import Normalizer
from warpsim.learn.returns import blended_returns, step_weights
from warpsim.learn.windows import Timing
from warpsim.learn.world_gradients import WorldGradients
from warpsim.tape.diagnostics import NonFiniteError


def judge(motion, *, failed=None, hold: int = 2, seconds: float = 0.06, cost=None) -> tuple[Judge, list]:
    """A judge whose rollouts are what is given; and how it asked for them."""
    model = SimpleNamespace(layout=None, sensors=None, worlds=2)
    sim = SimpleNamespace(timestep=0.01, worlds=2, model=model)
    drawn = []
    made = Judge(
        sim,
        cost or (lambda s, u: s["x"] + u),
        lambda n: drawn.append(n) or {"x": n},
        failed,
        hold=hold,
        seconds=seconds,
    )

    def roll(policy, steps, **options):
        drawn.append((steps, options))
        if isinstance(motion, Exception):
            raise motion
        return motion

    made._roll = roll
    return made, drawn


def policy(states) -> torch.Tensor:
    return 10.0 * states["x"]


X = torch.arange(7.0).repeat_interleave(2).reshape(7, 2) + torch.tensor([0.0, 0.5])
"""Of every step; every second is a control's."""


def test_a_cost_is_that_of_the_states_reached_under_the_controls_before_them():
    made, drawn = judge({"x": X})
    seen = X[::2]
    expected = (seen[1:] + 10.0 * seen[:-1]).mean()
    assert made(policy) == Score(pytest.approx(float(expected)), 0)
    assert drawn == [1_000_000, (6, {"start": {"x": 1_000_000}, "hold": 2})]


def test_after_a_failure_nothing_costs_anything():
    def failed(states) -> torch.Tensor:
        return states["x"] == 4.0  # world 0 in the second state reached

    made, _ = judge({"x": X}, failed=failed, cost=lambda s, u: torch.ones_like(s["x"]))
    assert made(policy) == Score(pytest.approx((2 + 3) / 6), 1)


def test_numbers_that_are_not_finite_cost_infinitely_much():
    made, _ = judge(NonFiniteError("gone", 1, None))
    assert made(policy) == Score(float("inf"), 2)


@pytest.mark.parametrize(("seconds", "steps"), [(0.06, 6), (0.069, 6), (0.071, 8), (0.001, 2)])
def test_a_rollout_is_whole_controls_long(seconds, steps):
    assert judge({"x": X}, seconds=seconds)[0]._steps == steps


def test_gradients_of_worlds_are_bounded_by_the_median_and_summed():
    initialize()
    owner = WorldGradients(4, 2.0)
    weights = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    each = owner(weights)
    assert each.shape == (4, 2)
    given = torch.tensor([[3.0, 4.0], [0.0, 4.0], [30.0, 40.0], [float("nan"), 1.0]]).double()
    each.backward(given)
    assert (owner.dropped, owner.median, owner.clipped) == (1, 5.0, 0.25)
    assert weights.grad.tolist() == pytest.approx([3.0 + 6.0, 4.0 + 4.0 + 8.0])
    free = WorldGradients(2, None)
    assert free.gather(torch.tensor([[1.0, 2.0], [float("inf"), 0.0]]).double()).tolist() == [1.0, 2.0]
    assert (free.clipped, free.dropped) == (0.0, 1)
    assert free.gather(torch.full((2, 2), float("nan")).double()).tolist() == [0.0, 0.0] and free.median == 0.0


def test_moments_forget_nothing_and_leave_out_what_is_not_finite(rng):
    seen = torch.as_tensor(rng.normal(3.0, 2.0, (4, 50, 2)))
    made = Normalizer(2, freeze=4)
    for k, batch in enumerate(seen):
        assert made.batches == k and not made.frozen
        spoiled = torch.cat([batch, torch.tensor([[float("nan"), 0.0], [float("inf"), 1.0]])])
        made.see(spoiled)
    everything = seen.flatten(0, 1)
    torch.testing.assert_close(made.mean, everything.mean(0), rtol=1e-12, atol=0.0)
    torch.testing.assert_close(made.variance, everything.var(0, correction=0), rtol=1e-12, atol=0.0)
    torch.testing.assert_close(made.deviation, everything.std(0, correction=0), rtol=1e-12, atol=0.0)
    made.see(torch.full((3, 2), 100.0).double())
    assert made.frozen and made.batches == 4 and made.mean.max() < 10.0
    empty = Normalizer(1)
    empty.see(torch.full((2, 1), float("nan")))
    assert empty.batches == 0
    empty.see(torch.ones(5, 1).double())
    assert empty.deviation.tolist() == [1e-2] and empty.mean.tolist() == [1.0]


def test_returns_by_hand():
    costs, values = torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([[10.0], [20.0], [30.0]])
    none = torch.zeros(3, 1, dtype=torch.bool)
    found = blended_returns(costs, values, none, none, 0.5, 0.25)
    last = 4.0 + 0.5 * 30.0
    middle = 2.0 + 0.5 * (0.75 * 20.0 + 0.25 * last)
    assert found.flatten().tolist() == pytest.approx([1.0 + 0.5 * (0.75 * 10.0 + 0.25 * middle), middle, last])
    failed = none.clone()
    failed[1] = True
    found = blended_returns(costs, values, failed, none, 0.5, 0.25)
    assert found[1].item() == 2.0 and found[0].item() == pytest.approx(1.0 + 0.5 * (7.5 + 0.5))
    found = blended_returns(costs, values, none, failed, 0.5, 0.25)
    assert found[1].item() == 2.0 + 0.5 * 20.0
    assert step_weights(failed, 0.5).flatten().tolist() == [1.0, 0.5, 1.0]
    ended = torch.tensor([[False], [False], [False], [True], [False], [False]])
    assert step_weights(ended, 0.5).flatten().tolist() == [1.0, 0.5, 0.25, 0.125, 1.0, 0.5]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"period": 0.005}, "period=0.005 s is not a whole number"),
        ({"period": 0.015}, "period=0.015 s is not a whole number"),
        ({"parts": 3}, "cannot be cut into parts=3"),
        ({"parts": 0}, "parts=0"),
        ({"parts": 16}, "parts=16"),
        ({"episode": 0.1}, "episode=0.1 s is shorter"),
    ],
)
def test_lengths_that_do_not_fit_are_refused(changes, words):
    given = dict(period=0.02, window=0.16, parts=2, episode=0.5)
    assert Timing.of(0.01, **given) == Timing(2, 4, 2, 25)
    assert Timing.of(0.01, **{**given, "episode": 0.16, "parts": 8}) == Timing(2, 1, 8, 8)
    with pytest.raises(InputError, match=words):
        Timing.of(0.01, **{**given, **changes})
