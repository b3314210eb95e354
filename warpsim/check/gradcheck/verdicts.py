"""The plain verdict on one derivative, from the gradient, the differences and the decisions of the runs."""

from __future__ import annotations

from dataclasses import dataclass

from warpsim.check.gradcheck.differences import Estimate
from warpsim.check.gradcheck.directions import Direction
from warpsim.core.precision import EPSILON, PRECISION

EXACT = "exact"
SMOOTHED = "smoothed"
SWITCH = "unreliable across a mode switch"
ZERO = "zero"
NOISY = "noisy"
WRONG = "wrong"
VERDICTS = (WRONG, SWITCH, NOISY, SMOOTHED, EXACT, ZERO)
"""From worst to least."""

TOLERANCE = 1e-5 if PRECISION == "float64" else 2e-2
"""Relative deviation up to which gradient and differences agree."""
_KNOWN = 0.05
"""Differences whose error is a larger share of the derivative decide nothing."""
_NEGLIGIBLE = 1e-8 if PRECISION == "float64" else 1e-3
"""Share of the largest derivative below which one drowns in rounding."""
_ROUNDING = 100.0 * EPSILON
"""Share of the largest derivative below which one is made of rounding alone."""


@dataclass(frozen=True)
class Derivative:
    """One directional derivative, by the gradient and by differences.

    Attributes:
        direction: What moves.
        gradient: By the tape.
        terms: Sum of the magnitudes of the products it is a sum of.
        differences: By central differences.
    """

    direction: Direction
    gradient: float
    terms: float
    differences: Estimate


@dataclass(frozen=True)
class Finding:
    """A derivative and what to think of it.

    Attributes:
        derivative: The numbers.
        verdict: One of `VERDICTS`.
        reason: Why, where there is something to say.
        deviation: Of the gradient from the differences, relative to the size of the derivative.
    """

    derivative: Derivative
    verdict: str
    reason: str = ""
    deviation: float = float("nan")


@dataclass(frozen=True)
class Circumstances:
    """What a verdict depends on beside the numbers.

    Attributes:
        largest: Largest derivative by any input in this window.
        saturated: Whether the input belongs to an actuator or drive that is cut in every step of the window.
        softened: Whether softened contacts take part in this window.
        without_path: What the window lacks that the input could act through.
    """

    largest: float
    saturated: bool = False
    softened: bool = False
    without_path: str = ""


def judge(found: Derivative, c: Circumstances) -> Finding:
    """The verdict; `WRONG` where gradient and differences disagree within one mode."""
    value, error = found.differences.value, found.differences.error
    if found.differences.steps < 2:
        return Finding(found, SWITCH, "every move changes a contact, an impact, a cone's zone, a limit or a saturation")
    if found.terms == 0.0 and abs(value) <= 3.0 * error:
        if c.saturated:
            return Finding(found, ZERO, "saturated: its actuator or drive is at its limit in every step")
        return Finding(found, ZERO, f"no path{c.without_path}")
    if max(found.terms, abs(value)) <= 3.0 * error <= _NEGLIGIBLE * c.largest:
        return Finding(found, ZERO, f"less than {_NEGLIGIBLE:g} of the largest derivative: below rounding")
    scale = max(found.terms, abs(value))
    if scale <= _ROUNDING * c.largest:  # of a motion that is zero but for rounding, and its differences with it
        return Finding(found, ZERO, f"less than {_ROUNDING:.0e} of the largest derivative: below rounding")
    off = abs(found.gradient - value)
    if error > _KNOWN * scale:
        return Finding(found, NOISY, "differences do not settle", off / scale)
    if off <= TOLERANCE * scale + 3.0 * error:
        verdict, reason = (SMOOTHED, "of softened contacts") if c.softened else (EXACT, "")
        return Finding(found, verdict, reason, off / scale)
    return Finding(found, WRONG, f"off by {off / scale:.1e}", off / scale)
