"""Prints a fingerprint of a rollout and its gradients; run by tests in processes of their own."""

from __future__ import annotations

import hashlib
import json
import sys

import numpy as np
import warp as wp

from core_scenes import rich_scene, rich_state
from rigid_support import Rollout, initial_state
from warpsim.tape.memory import Memory

CONTROLS = ("joint_force", "actuator", "drive_target", "drive_velocity", "wrench")
PARAMETERS = ("body.mass", "joint.damping", "actuator.gear", "drive.stiffness", "world.gravity", "shape.size")


def rollout_of(integrator: str, *, worlds: int = 2, capture: bool = True, steps: int = 5) -> Rollout:
    options = {"memory": Memory(segment=2), "capture": capture}
    return Rollout(rich_scene(integrator), steps, CONTROLS, PARAMETERS, worlds=worlds, options=options)


def inputs_of(rollout: Rollout) -> dict[str, np.ndarray]:
    """Inputs that differ from world to world."""
    rng = np.random.default_rng(4)
    state = rich_state("random")
    inputs = initial_state(rollout.model, state["q"], state["qd"], state["activation"])
    inputs |= rollout.random_controls() | rollout.parameter_values()
    return {name: value * (1.0 + 0.01 * rng.normal(size=value.shape)) for name, value in inputs.items()}


def results(rollout: Rollout, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """States and gradients by name."""
    found = {f"state {name}": value for name, value in rollout.states(inputs).items()}
    return found | {f"gradient {name}": value for name, value in rollout.gradient(inputs).items()}


def fingerprint(integrator: str) -> dict[str, str]:
    rollout = rollout_of(integrator)
    found = results(rollout, inputs_of(rollout))
    return {name: hashlib.sha256(np.ascontiguousarray(value)).hexdigest() for name, value in found.items()}


if __name__ == "__main__":
    wp.config.log_level = wp.LOG_ERROR
    print(json.dumps(fingerprint(sys.argv[1])))
