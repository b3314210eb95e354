"""The cube-toss protocol: splits that do not mix, errors that mean what they say, MuJoCo started from given states."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

from tools.reality.cma import minimize
from tools.reality.halvings import compared, summary
from tools.reality.mujoco_side import authors_model, rollouts
from tools.reality.protocol import RATE, SAMPLES, SPLITS, WIDTH, errors, split
from tools.reality.windows import one_impact


def test_development_tosses_are_in_no_test():
    developed = set(split(0)[1].tolist())
    for seed in SPLITS:
        train, test = (set(part.tolist()) for part in split(seed))
        assert len(train) == len(test) == 128
        assert not train & test and not (train | test) & developed
    assert not np.array_equal(split(1)[1], split(2)[1])


def test_errors_of_a_known_shift_and_rotation():
    truth = np.zeros((3, SAMPLES, 13))
    truth[..., 3] = 1.0
    made = truth.copy()
    made[:, 1:, 1] = 0.1 * WIDTH
    made[:, 1:, 3:7] = -np.array([np.cos(0.1), 0.0, np.sin(0.1), 0.0])  # −q is the same rotation, by 0.2 rad
    assert errors(made, truth) == pytest.approx((10.0, np.degrees(0.2)))


def test_mujoco_flies_before_it_lands():
    start = np.array([0, 0, 0.5, 1, 0, 0, 0, 0.3, 0, 1.0, 0, 0, 0])
    made = rollouts(authors_model(4), start[None])[0]
    time = np.arange(20) / RATE
    step = 1 / RATE / 4
    assert made[:20, 0] == pytest.approx(0.3 * time)
    assert made[:20, 2] == pytest.approx(0.5 + time - 9.81 / 2 * time * (time + step))  # semi-implicit steps, exactly
    assert not np.isnan(made).any()


def test_a_window_ends_before_the_second_touch():
    """A cube on its corner that falls, rises and falls again: rows up to the second touch count."""
    tilt = np.array([np.cos(0.3), np.sin(0.3) / np.sqrt(2), np.sin(0.3) / np.sqrt(2), 0.0])
    rotation = np.zeros((3, 3))
    mujoco.mju_quat2Mat(rotation.reshape(9), tilt)
    corners = WIDTH / 2 * np.array(list(product((-1.0, 1.0), repeat=3)))
    reach = -(corners @ rotation.T)[:, 2].min()
    truth = np.zeros((1, 12, 13))
    truth[0, :, 3:7] = tilt
    truth[0, :, 2] = reach + np.array([0.05, 0.02, 0.001, 0.001, 0.01, 0.02, 0.01, 0.002, 0.01, 0.02, 0.02, 0.02])
    assert np.flatnonzero(one_impact(truth)[0]).tolist() == [1, 2, 3, 4, 5, 6]
    assert np.flatnonzero(one_impact(truth, flight=False)[0]).tolist() == [2, 3, 4, 5, 6]


def test_cma_finds_a_bent_valley_within_bounds():
    def losses(x):
        return 100 * (x[:, 1] - x[:, 0] ** 2) ** 2 + (1 - x[:, 0]) ** 2

    found = minimize(
        losses, np.array([-1.0, 1.0]), np.full(2, -2.0), np.full(2, 2.0), sigma=0.3, target=1e-10, generations=300
    )
    assert found.x == pytest.approx([1.0, 1.0], abs=1e-4) and found.loss <= 1e-10
    held = minimize(losses, np.array([-1.0, 1.0]), np.full(2, -2.0), np.array([0.5, 2.0]), sigma=0.3)
    assert held.x[0] == pytest.approx(0.5, abs=1e-3) and held.candidates == 600


def test_halvings_count_both_halves():
    def made(values, half):
        sure = SimpleNamespace(
            determined=np.isfinite(half), half_width=np.array(half), repeat_half_width=1.5 * np.array(half)
        )
        return SimpleNamespace(values=np.array(values), names=("a", "b", "c"), uncertainty=sure)

    row = compared(made([1.0, 2.0, 3.0], [0.2, 0.4, np.inf]), made([1.3, 2.5, 3.0], [0.35, 0.4, 1.0]))
    assert (row["known"], row["held"], row["repeated"], row["held_by_both"]) == (4, 1, 4, 4)
    assert row["at_bound"] == ["c"]


def test_the_interval_for_another_set_answers_a_halving():
    """Two values that err alike differ by √2 as much as one from the truth: 2Φ(1.96/√2) − 1 = 83.4 %, not 95 %."""
    rng, names = np.random.default_rng(0), tuple(f"p{i}" for i in range(20000))

    def half():
        sure = SimpleNamespace(
            determined=np.ones(len(names), dtype=bool),
            half_width=np.full(len(names), 1.96),
            repeat_half_width=np.full(len(names), 1.96 * np.sqrt(2)),
        )
        return SimpleNamespace(values=rng.normal(size=len(names)), names=names, uncertainty=sure)

    row = compared(half(), half())
    assert row["held"] / row["known"] == pytest.approx(0.834, abs=0.01)
    assert row["repeated"] / row["known"] == pytest.approx(0.95, abs=0.005)
    assert "of those for another set's value do" in summary([row])
