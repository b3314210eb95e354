"""One paragraph of advice from what was measured; every sentence has a rule."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from warpsim.check.validity.growth import Growth
from warpsim.core.precision import PRECISION

_EXPLODING = math.log(1e2)
_DEEP, _DRIFT = 0.1, 0.05


@dataclass(frozen=True)
class Facts:
    """What advice depends on.

    Attributes:
        seconds: Horizon.
        steps: Horizon in steps.
        timestep: s.
        growth: Of perturbations and adjoints.
        switches: Changes of mode.
        failures: Solves that did not converge.
        depth: Deepest penetration over the smallest size of a shape.
        gain: Energy an unforced run gains, over its largest kinetic energy.
        softened: Whether contacts are already softened or resolved as impacts.
    """

    seconds: float
    steps: int
    timestep: float
    growth: Growth
    switches: int
    failures: int
    depth: float
    gain: float
    softened: bool


def explodes(growth: Growth) -> bool:
    """Whether a perturbation has grown by more than a factor of a hundred at the end of the rollout.

    On its way is not enough: a stiff contact turns a millimeter into a meter per second within a few steps and damps
    it out after that, which is no reason to cut the horizon.
    """
    return bool(growth.perturbation[-1] > _EXPLODING)


def tame_steps(growth: Growth) -> int:
    """Most steps over which a perturbation grows by less than a factor of a hundred."""
    over = np.flatnonzero(growth.perturbation > _EXPLODING)
    return max(1, int(over[0]) - 1) if len(over) else len(growth.perturbation) - 1


def advise(f: Facts) -> str:
    """The paragraph."""
    parts = []
    if f.gain > _DRIFT or f.depth > _DEEP or f.failures:
        what = [
            (f.gain > _DRIFT, f"the run gains energy ({100 * f.gain:.0f} % of the kinetic)"),
            (f.depth > _DEEP, f"shapes sink into each other ({100 * f.depth:.0f} % of the smallest)"),
            (f.failures > 0, f"{f.failures} solves did not converge"),
        ]
        listed = " and ".join(text for is_so, text in what if is_so)
        parts.append(f"Take a smaller step ({f.timestep / 4:g} s): {listed}.")
    limit = f.growth.valid_seconds(PRECISION)
    if limit < f.seconds:
        other = "" if PRECISION == "float64" else " or compute in float64 (WARPSIM_PRECISION=float64)"
        parts.append(f"Shorten the horizon to {0.7 * limit:.3g} s{other}: beyond {limit:.3g} s the gradient is noise.")
    if explodes(f.growth):
        largest = float(f.growth.perturbation.max())
        window = tame_steps(f.growth)
        parts.append(
            f"Differentiate truncated windows of {window} steps (memory=Memory(schedule=Windows({window}))), or start "
            f"from a shorter horizon and lengthen it: perturbations grow by {math.exp(min(largest, 700.0)):.1g}."
        )
    if f.switches and not f.softened:
        parts.append(
            f"Soften contacts (options.contact_softening = 0.01) or resolve impacts (impacts=True): the mode switches "
            f"{f.switches} times, and the gradient knows only the modes it passed."
        )
    return " ".join(parts) or "Nothing speaks against this gradient."
