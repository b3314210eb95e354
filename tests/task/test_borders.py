"""Small rules of commands, trainings and files, at their borders."""

from __future__ import annotations

import argparse
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from warpsim.cli.arguments.common import natural
from warpsim.deformable.usd_reader import _volume
from warpsim.gym.environment import VectorEnv
from warpsim.task.bound_training import BoundTraining


def test_whole_numbers_of_a_command_line_are_zero_or_more():
    assert (natural("0"), natural("7")) == (0, 7)
    with pytest.raises(argparse.ArgumentTypeError, match="-1: give a whole number, 0 or more"):
        natural("-1")


def test_draws_of_two_seeds_do_not_meet():
    seeds = [BoundTraining.seed(SimpleNamespace(training=SimpleNamespace(seed=s)), n) for s in (0, 2) for n in (0, 5)]
    assert seeds == [0, 5, 20_000_000, 20_000_005]


def test_worlds_begin_anew_whatever_the_shape_of_their_state():
    old = {"q": torch.zeros(3, 2), "points": torch.zeros(3, 4, 3), "count": torch.zeros(3)}
    fresh = {name: value + 1.0 for name, value in old.items()}
    environment = SimpleNamespace(_state=old, _age=torch.tensor([5, 6, 7]), _drawn=lambda: fresh)
    VectorEnv._begin_anew(environment, torch.tensor([True, False, True]))
    for value in environment._state.values():
        assert value.flatten(1).mean(1).tolist() == [1.0, 0.0, 1.0] if value.ndim > 1 else value.tolist() == [1, 0, 1]
    assert environment._age.tolist() == [0, 6, 0]


def test_volumes_at_rest():
    points = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 2.0, 0.0], [5.0, 5.0, 5.0], [5.0, 5.0, 5.5]])
    cable = _volume("curve", points, {"counts": np.array([3, 2])}, 0.2)
    assert cable == pytest.approx(3.5 * np.pi * 0.1**2)  # two curves, 3 m and 0.5 m: nothing between them
    square = np.array([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [2.0, 3.0, 0.0], [0.0, 3.0, 0.0]])
    two = {"elements": np.array([[0, 1, 2, 0], [0, 2, 3, 0]])}
    assert _volume("surface", square, two, 0.01) == pytest.approx(0.06)
    corner = {"elements": np.array([[0, 1, 2, 3]])}
    assert _volume("volume", np.vstack([np.zeros(3), np.diag([1.0, 2.0, 3.0])]), corner, None) == pytest.approx(1.0)
    assert _volume("curve", points, {"counts": np.array([3, 2])}, None) == 0.0
