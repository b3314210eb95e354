"""Central differences of many directions at once, with a swept step and an account of what they can know.

One step is either too large (truncation, a contact that switches) or too small (round-off). So quotients are taken at
several steps, extrapolated to step zero by Neville's scheme in h² (Ridders 1982), and the entry is kept that its
neighbors in the table confirm best. Steps whose two runs left the mode of the run in the middle do not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpsim.core.precision import EPSILON, PRECISION

SWEEP = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7) if PRECISION == "float64" else (1e-1, 3e-2, 1e-2, 3e-3, 1e-3)
"""Steps of the sweep, in units of the direction, falling."""


@dataclass(frozen=True)
class Estimate:
    """A derivative by differences.

    Attributes:
        value: NaN where no two steps stayed within the mode.
        error: How far its neighbors in the table lie from it, plus round-off; absolute.
        steps: How many steps of the sweep stayed within the mode.
        nearest_switch: Least step of the sweep at which a run left the mode; None if none did.
    """

    value: float
    error: float
    steps: int
    nearest_switch: float | None


def estimate(
    plus: np.ndarray, minus: np.ndarray, same_mode: np.ndarray, sweep: tuple[float, ...], size: float
) -> Estimate:
    """The derivative along one direction.

    Args:
        plus: (K,) loss at +h of each step of the sweep.
        minus: (K,) at −h.
        same_mode: (K,) whether both runs took the same decisions as the run in the middle.
        sweep: The K steps, falling.
        size: Magnitude of the terms the loss is a sum of, or of what rounding of the state makes of it: differences
            cannot see below the rounding of either.
    """
    steps = np.asarray(sweep)
    left = [h for h, same in zip(sweep, same_mode, strict=True) if not same]
    usable = np.flatnonzero(same_mode & np.isfinite(plus) & np.isfinite(minus))
    if len(usable) < 2:
        return Estimate(np.nan, np.inf, len(usable), min(left, default=None))
    candidates: list[tuple[float, float]] = []
    previous: list[float] = []
    for i, k in enumerate(usable):
        h = steps[k]
        round_off = 2.0 * EPSILON * size / h
        row = [float(plus[k] - minus[k]) / (2.0 * h)]
        for j in range(1, i + 1):
            ratio = (steps[usable[i - j]] / h) ** 2
            row.append(row[j - 1] + (row[j - 1] - previous[j - 1]) / (ratio - 1.0))
            spread = max(abs(row[j] - row[j - 1]), abs(row[j] - previous[j - 1]))
            candidates.append((spread + round_off, row[j]))
        if i > 0:  # the plain quotient too: beside a kink only the smallest steps are right, and extrapolating harms
            candidates.append((abs(row[0] - previous[0]) + round_off, row[0]))
        previous = row
    error, value = min(candidates)
    return Estimate(value, error, len(usable), min(left, default=None))
