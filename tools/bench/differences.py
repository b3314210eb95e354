"""Is a gradient right? Along one random direction, against central differences of the loss itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np


def directional_error(
    gradient: np.ndarray,
    at: np.ndarray,
    loss: Callable[[np.ndarray], float],
    *,
    steps: Iterable[float],
    seed: int,
) -> float:
    """Relative error of a gradient.

    Args:
        gradient: dloss/dx.
        at: x.
        loss: Of x.
        steps: Lengths of central differences. The best counts: long ones straddle contacts, short ones round.
        seed: Of the direction.
    """
    direction = np.random.default_rng(seed).normal(size=at.shape).astype(at.dtype)
    value = float((gradient * direction).sum())
    errors = []
    for step in steps:
        ahead, behind = (loss(at + sign * step * direction) for sign in (1.0, -1.0))
        estimate = (ahead - behind) / (2 * step)
        errors.append(abs(value - estimate) / max(abs(value), abs(estimate)))
    return float(min(errors))
