"""A double pendulum identified from MuJoCo's noisy data, as plain, positive and bounded variables.

`tools/bench/identification.py` describes the case; `docs/bench/identification.md` is the table of all its runs.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tools.bench.identification import Run, cases, experiment, fit, honest, problem, simulator
from warpsim.optimizers import minimize
from warpsim.sim.simulator import Simulator

QUICK = [
    (1.3, 250, "plain", 0),
    (1.3, 500, "positive", 1),
    (1.3, 1000, "bounded", 3),
    (3.0, 250, "bounded", 4),
    (3.0, 500, "plain", 5),
    (3.0, 1000, "positive", 6),
]


@pytest.fixture(scope="module")
def sim(tmp_path_factory) -> Simulator:
    return simulator(Path(tmp_path_factory.mktemp("pendulum")))


def check(run: Run) -> None:
    assert honest(run), run
    if run.found:
        assert 0.8 < run.level < 1.2
        # Six errors over 180 runs, roughly normal: five deviations have a chance of one in a thousand.
        assert run.worst < 5.0, run


def test_the_links_swing():
    for seed in range(3):
        torques, angles = experiment(250, seed)
        assert torques.shape == (250, 2) and (np.abs(angles).max(0) > 1.0).all()


@pytest.mark.parametrize(("factor", "steps", "kind", "seed"), QUICK)
def test_six_parameters_are_found(sim, factor, steps, kind, seed):
    run = fit(sim, factor, steps, kind, seed)
    assert run.found
    check(run)


def test_a_fit_in_the_wrong_valley_says_so(sim):
    """All data at once, from guesses off by 3×: this one ends far above the noise."""
    made = problem(sim, 3.0, 1000, "plain", 1)
    result = minimize(made, "levenberg_marquardt", horizons=(), noise=1.0, iterations=40)
    report = result.report
    assert not result.converged and report.at_noise_level is False and report.noise > 10
    assert f"The residuals are {report.noise:.3g} times the stated noise" in report.sentences[0]


@pytest.mark.long
def test_nine_of_ten_fits_reach_the_noise_and_the_others_say_that_they_do_not(sim):
    runs = [fit(sim, *case) for case in cases(10)]
    assert len(runs) == 180
    for run in runs:
        check(run)
    assert sum(run.found for run in runs) >= 162
