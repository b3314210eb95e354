"""Equalities against MuJoCo and closed forms: rows, forces, accelerations, rollouts, gradients."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from random_models import random_state
from rigid_support import INTEGRATORS, ROBOTS, Rollout, inputs_of
from row_support import (
    check_gradients,
    compare_rows,
    constrained_model,
    evaluated,
    near_reference,
    our_path,
    our_rows,
    path_ratio,
    scene_to_solve,
)

TOLERANCE = 1e-9
EVERYTHING = dict(equalities=5, tendons=3, limits=True, friction_loss=True)
PANDA = [path for path in ROBOTS if path.stem == "panda"]


def assert_small(errors: dict[str, float], where: str, tolerance: float = TOLERANCE) -> None:
    assert all(error < tolerance for error in errors.values()), (where, errors)


def check_random(seed: int) -> None:
    model = constrained_model(seed, **EVERYTHING)
    for state in (near_reference(model, seed), random_state(model, seed, speed=3.0)):
        assert_small(compare_rows(model, state), f"seed {seed}")


@pytest.mark.parametrize("seed", range(8))
def test_random_rows_match_mujoco(seed):
    check_random(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8, 260))
def test_many_random_rows_match_mujoco(seed):
    check_random(seed)
