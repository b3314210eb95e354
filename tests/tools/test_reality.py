"""The cube-toss protocol: splits that do not mix, errors that mean what they say, MuJoCo started from given states."""

from __future__ import annotations

import numpy as np
import pytest

from tools.reality.mujoco_side import authors_model, rollouts
from tools.reality.protocol import RATE, ROWS, SPLITS, WIDTH, errors, split


def test_development_tosses_are_in_no_test():
    developed = set(split(0)[1].tolist())
    for seed in SPLITS:
        train, test = (set(part.tolist()) for part in split(seed))
        assert len(train) == len(test) == 128
        assert not train & test and not (train | test) & developed
    assert not np.array_equal(split(1)[1], split(2)[1])


def test_errors_of_a_known_shift_and_rotation():
    truth = np.zeros((3, ROWS, 13))
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
