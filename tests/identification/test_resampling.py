"""Intervals of fits that were repeated with other recordings, of fits that ended early, and cross validation."""

from __future__ import annotations

import math

import numpy as np
import pytest

import warpsim as ws
from identification_support import GUESS, NOISE, PENDULUM, TRUTH, pendulum_recordings
from warpsim.core.errors import InputError

PARAMETERS = [
    ws.Parameter("joint.damping:hinge", lower=0.0, upper=5.0),
    ws.Parameter("body.mass:bob", lower=0.1, upper=9),
]
VALUES = np.array(list(TRUTH.values()))


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory):
    path = tmp_path_factory.mktemp("pendulum") / "pendulum.xml"
    path.write_text(PENDULUM.format(**GUESS))
    return path


def fitted(pendulum, recordings, **options):
    chosen = dict(noise={"joint:hinge": NOISE}, validation=0.0, robust=None, check=False, horizons=(), iterations=5)
    return ws.identify(recordings, pendulum, PARAMETERS, **{**chosen, **options})


@pytest.fixture(scope="module")
def both(pendulum):
    recordings = pendulum_recordings(12, 1, samples=30, common=0.02)
    return fitted(pendulum, recordings), fitted(pendulum, recordings, bootstrap=16, folds=3)


def test_the_bootstrap_agrees_with_the_sandwich_where_a_loss_is_smooth(both):
    first_order, resampled = (fit.uncertainty for fit in both)
    assert (both[0].values == both[1].values).all()
    ratio = resampled.half_width / first_order.half_width
    assert ((0.5 < ratio) & (ratio < 2.0)).all()  # 16 draws tell a deviation to about 18 %
    assert "Intervals are those of 16 fits of resampled recordings." in resampled.sentences


def test_folds_are_predicted_to_their_noise(both, tmp_path):
    folds = both[1].cross_validation
    assert len(folds) == 3
    counted = [len(f["left out, from the measured start"].by_recording["joint:hinge"]) for f in folds]
    assert sum(counted) == 12
    mean = np.mean([f["left out, from the measured start"].mean["joint:hinge"] for f in folds])
    expected = math.hypot(NOISE, 0.02) * math.sqrt(2 / math.pi)
    assert mean == pytest.approx(expected, rel=0.35)
    both[1].save(tmp_path)
    for name in ("report.md", "report.html"):
        assert "3 folds, left out, from the measured start" in (tmp_path / name).read_text()
    assert "3 folds" in str(both[1])


def test_a_fit_that_ended_early_says_how_far_it_has_to_go(pendulum):
    recordings = pendulum_recordings(8, 2, samples=30)
    early, whole = (fitted(pendulum, recordings, iterations=n) for n in (1, 8))
    assert (np.abs(early.values - whole.values) > whole.uncertainty.half_width).any()  # else nothing is shown here
    assert (np.abs(early.values - whole.values) <= early.uncertainty.half_width).all()
    assert (whole.uncertainty.left < 0.05 * whole.uncertainty.half_width).all()
    assert any("ended before its optimum" in s for s in early.uncertainty.sentences)


def test_too_few_recordings_are_refused(pendulum):
    recordings = pendulum_recordings(3, 2, samples=12)
    with pytest.raises(InputError, match=r"folds=4 of 3 recording"):
        fitted(pendulum, recordings, folds=4, iterations=1)
    with pytest.raises(InputError, match=r"bootstrap=1 of 3 recording"):
        fitted(pendulum, recordings, bootstrap=1, iterations=1)


@pytest.mark.long
def test_bootstrapped_intervals_cover_the_truth(pendulum):
    inside = []
    for seed in range(50):
        found = fitted(pendulum, pendulum_recordings(12, 300 + seed, samples=30, common=0.02), bootstrap=24)
        inside.append(np.abs(found.values - VALUES) < found.uncertainty.half_width)
    assert 0.90 <= np.mean(inside) <= 0.98
