"""Steps to success: the count itself, and the order that the published table shows."""

from __future__ import annotations

import json

import pytest
import torch

from tools.evidence import steps_to_success
from tools.evidence.counted import CountedProblem
from tools.evidence.steps_to_success import CASES, ROOT, Run, median_steps


def test_every_step_in_every_world_is_counted():
    counted = CountedProblem(steps_to_success.throw())
    counted.losses(torch.zeros(3, 3, dtype=torch.float64))
    assert (counted.forward, counted.adjoint) == (3 * 400, 0)
    x = counted.start.clone().requires_grad_()
    counted.loss(x).backward()
    assert (counted.forward, counted.adjoint) == (4 * 400, 400)


def test_a_median_counts_failures_as_infinite():
    runs = [
        Run("throw", "CEM", seed, solved, 1, 100 * seed, 0, 0.0) for seed, solved in enumerate((True, False, False))
    ]
    assert median_steps(runs[:2], "throw", "CEM") == float("inf")
    assert median_steps(runs[:1], "throw", "CEM") == 0


def assert_ordered(runs: list[Run]) -> None:
    for case in {run.case for run in runs}:
        first, zeroth, cem = (median_steps(runs, case, name) for name in NAMES)
        assert 10 * first < zeroth, (case, first, zeroth)  # infinite, where Adam does not get there
        assert 10 * first < cem < float("inf"), (case, first, cem)
        costs = [median_steps(runs, case, name, cost=True) for name in NAMES]
        assert 3 * costs[0] < min(costs[1:]), (case, costs)


NAMES = ("first-order, L-BFGS", "zeroth-order, Adam", "CEM")


def test_the_published_table_shows_the_order():
    data = json.loads((ROOT / "docs" / "evidence" / "steps_to_success.json").read_text())
    runs = [Run(**run) for run in data["runs"]]
    assert {run.case for run in runs} == {case.name for case in CASES}
    assert {run.seed for run in runs} == set(range(5))
    assert_ordered(runs)


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_first_order_gradients_need_fewest_steps(case, tmp_path):
    """Two seeds of the published table, run again: the order holds, and first-order steps are the same to the last."""
    steps_to_success.main(["--case", case.name, "--seeds", "2", "--output", str(tmp_path)])
    made = [Run(**run) for run in json.loads((tmp_path / "steps_to_success.json").read_text())["runs"]]
    assert_ordered(made)
    kept = json.loads((ROOT / "docs" / "evidence" / "steps_to_success.json").read_text())["runs"]
    steps = {(r["case"], r["contestant"], r["seed"]): r["steps"] for r in kept}
    for run in made:
        if run.contestant == NAMES[0]:
            assert run.steps == steps[run.case, run.contestant, run.seed]
