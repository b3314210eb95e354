"""How perturbations and adjoints grow along a rollout, from the Jacobians of its steps."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

EPSILONS = {"float64": float(np.finfo(np.float64).eps), "float32": float(np.finfo(np.float32).eps)}
NOISE = 0.01
"""Rounding that has grown to this size, in m, rad, m/s, rad/s, is taken for the end of what a gradient means: from then
on the motion itself depends on the last digit, and the gradient is that of another motion."""


@dataclass(frozen=True)
class Growth:
    """Growth along a rollout of N steps.

    Attributes:
        perturbation: (N + 1,) largest factor by which a perturbation of the initial state has grown; natural logarithm.
        adjoint: (N + 1,) norm of the adjoint of each state for a random form of the last one; natural logarithm.
        timestep: s.
    """

    perturbation: np.ndarray
    adjoint: np.ndarray
    timestep: float

    @property
    def lyapunov(self) -> float:
        """Finite-time Lyapunov exponent of the whole rollout, 1/s."""
        steps = len(self.perturbation) - 1
        return float(self.perturbation[-1]) / (steps * self.timestep) if steps else 0.0

    def valid_seconds(self, precision: str) -> float:
        """s: beyond it gradients are noise at a precision; inf: they never are, at this rate of growth."""
        limit = math.log(NOISE / EPSILONS[precision])
        over = np.flatnonzero(self.perturbation > limit)
        if len(over):
            return float(over[0]) * self.timestep
        # growth slower than a power law of the horizon does not go on exponentially
        half = len(self.perturbation) // 2
        rate = (self.perturbation[-1] - self.perturbation[half]) / max((len(self.perturbation) - 1 - half), 1)
        if rate * len(self.perturbation) < 2.0:
            return math.inf
        return (len(self.perturbation) - 1 + (limit - float(self.perturbation[-1])) / float(rate)) * self.timestep


def measure_growth(transitions: np.ndarray, timestep: float, seed: int = 0) -> Growth:
    """From A (N, n, n) of every step; products are rescaled as they grow."""
    steps, n = transitions.shape[:2]
    product, scale = np.eye(n), 0.0
    perturbation = np.zeros(steps + 1)
    for k in range(steps):
        product = transitions[k] @ product
        size = float(np.linalg.norm(product, 2))
        perturbation[k + 1] = scale + math.log(max(size, 1e-300))
        if not 1e-100 < size < 1e100 and size > 0.0:
            product, scale = product / size, scale + math.log(size)
    covector = np.random.default_rng(seed).normal(size=n)
    adjoint = np.zeros(steps + 1)
    adjoint[-1] = math.log(np.linalg.norm(covector))
    scale = 0.0
    for k in range(steps - 1, -1, -1):
        covector = transitions[k].T @ covector
        size = float(np.linalg.norm(covector))
        adjoint[k] = scale + math.log(max(size, 1e-300))
        if not 1e-100 < size < 1e100 and size > 0.0:
            covector, scale = covector / size, scale + math.log(size)
    return Growth(perturbation, adjoint, timestep)
