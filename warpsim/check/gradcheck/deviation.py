"""How far a stage's adjoint is from differences of the stage along one direction."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpsim.check.gradcheck.differences import estimate

_SWEEP = (1e-3, 1e-4, 1e-5, 1e-6)
_TOLERANCE = 1e-5
_KNOWN = 0.05
"""Differences whose error is a larger share of the derivative accuse nobody."""

_UNIT = ("physical.body.rotation", "physical.joint.axis")
"""What the derivation makes unit and the kinematics takes as such: it moves on its sphere."""


def deviation(
    gradient: np.ndarray,
    direction: np.ndarray,
    start: np.ndarray,
    base: tuple[float, float],
    loss: Callable[[np.ndarray], tuple[float, float]],
) -> float:
    """Relative deviation of a gradient from differences of a loss along a direction; 0 where it is within error.

    The loss returns its value and the magnitude of its terms, which at the start are `base`.
    """
    products = gradient * direction
    if not products.any() and loss(start + _SWEEP[0] * direction) == base:
        return 0.0  # not read at all
    values = np.array([[loss(start + sign * h * direction)[0] for sign in (1.0, -1.0)] for h in _SWEEP])
    known = estimate(values[:, 0], values[:, 1], np.ones(len(_SWEEP), bool), _SWEEP, base[1])
    scale = max(float(np.abs(products).sum()), abs(known.value))
    off = abs(float(products.sum()) - known.value)
    # at a kink the two one-sided quotients differ, and their mean means nothing
    sides = abs(values[-2, 0] + values[-2, 1] - 2.0 * base[0]) / _SWEEP[-2]
    if known.error > _KNOWN * scale or sides > _KNOWN * scale + 10.0 * known.error:
        return 0.0
    return off / scale if off > _TOLERANCE * scale + 5.0 * known.error else 0.0


def random_direction(name: str, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Random, of the size of the numbers; unset and infinite ones stay."""
    finite = np.isfinite(value)
    sizes = np.where(finite, np.abs(np.where(finite, value, 0.0)), 0.0)
    item = sizes.max(axis=-1, keepdims=True) if value.ndim > 2 else sizes
    if name.startswith(("physical", "authored")):
        floor = 0.1 * item  # zeros of parameters are edges of what is allowed
    else:
        floor = np.where(item > 0.0, 0.1 * item, 0.1 * sizes.max(initial=0.0) or 0.01)
    direction = np.where(finite, 0.3 * rng.normal(size=value.shape) * np.maximum(sizes, floor), 0.0)
    if name in _UNIT:
        direction -= value * (value * direction).sum(axis=-1, keepdims=True)
    return direction
