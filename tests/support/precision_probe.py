"""Rollouts, gradients and accelerations in the precision of this process, saved for a comparison with the other one."""

from __future__ import annotations

import sys

import numpy as np
import warp as wp

from core_fingerprint import inputs_of, results, rollout_of
from random_models import random_state
from rigid_support import INTEGRATORS, evaluation, random_model, scene_of
from rigid_support import inputs_of as controls_of
from warpsim.core.precision import PRECISION, numpy_real

SEEDS = range(6)


def probe() -> dict[str, np.ndarray]:
    """By name: accelerations of random models; states and gradients of a scene with everything."""
    found = {"type": np.zeros(0, numpy_real)}
    for seed in SEEDS:
        model = random_model(seed)
        e = evaluation(scene_of(model), controls_of(random_state(model, seed)))
        found[f"acceleration {seed}"] = e.forward().qdd.numpy()
    for integrator in INTEGRATORS:
        rollout = rollout_of(integrator)
        found |= {f"{integrator} {name}": value for name, value in results(rollout, inputs_of(rollout)).items()}
    return found


if __name__ == "__main__":
    wp.config.log_level = wp.LOG_ERROR
    np.savez(sys.argv[1], **probe())
    print(PRECISION)
