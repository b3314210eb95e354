"""What numbers of a scene may be: one table for files and for arrays given in Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np


@dataclass(frozen=True)
class Range:
    """What each number of a field may be.

    Attributes:
        minimum: The smallest.
        maximum: The largest.
        open: Whether the smallest itself is too small.
    """

    minimum: float = -np.inf
    maximum: float = np.inf
    open: bool = False

    def outside(self, values: np.ndarray) -> np.ndarray:
        """Which numbers are out of range."""
        below = values <= self.minimum if self.open else values < self.minimum
        return below | (values > self.maximum)

    @property
    def words(self) -> str:
        """What they must be."""
        if np.isfinite(self.maximum):
            return f"it lies between {self.minimum:g} and {self.maximum:g}"
        return "it must be above zero" if self.open else "it must not be negative"


POSITIVE, NOT_NEGATIVE, SHARE = Range(0.0, open=True), Range(0.0), Range(0.0, 1.0)

Field = Range | Literal["ordered", "lengths", "direction"]
"""A range; "ordered": (lower, upper) pairs; "lengths": such pairs that are not negative; "direction": a vector or
quaternion that is not zero."""

FIELDS: Mapping[str, Mapping[str, Field]] = {
    "body": {"mass": NOT_NEGATIVE, "rotation": "direction"},
    "joint": {
        **dict.fromkeys(("stiffness", "damping", "armature", "friction_loss"), NOT_NEGATIVE),
        **dict.fromkeys(("limit", "actuator_force_limit"), "ordered"),
        "axis": "direction",
    },
    "shape": {
        **dict.fromkeys(("density", "friction", "solmix", "mass"), NOT_NEGATIVE),
        "restitution": SHARE,
        "size": POSITIVE,
        "rotation": "direction",
    },
    "site": {"rotation": "direction"},
    "tendon": {
        **dict.fromkeys(("stiffness", "damping", "armature", "friction_loss", "rod"), NOT_NEGATIVE),
        **dict.fromkeys(("limit", "spring_range"), "ordered"),
    },
    "actuator": {
        **dict.fromkeys(("control_range", "force_range", "activation_range"), "ordered"),
        "time_constant": POSITIVE,
        "damping_ratio": NOT_NEGATIVE,
    },
    "drive": dict.fromkeys(("stiffness", "damping", "max_force"), NOT_NEGATIVE),
    "equality": {"torque_scale": NOT_NEGATIVE, "distance_range": "lengths", "axes": "direction"},
    "contact_override": {"friction": NOT_NEGATIVE},
    "sensor": dict.fromkeys(("noise", "cutoff"), NOT_NEGATIVE),
    "options": {
        **dict.fromkeys(("timestep", "impratio", "impact_speed"), POSITIVE),
        **dict.fromkeys(("solver_iterations", "solver_tolerance", "contact_softening"), NOT_NEGATIVE),
    },
    "medium": dict.fromkeys(("density", "viscosity"), NOT_NEGATIVE),
}
"""Kind of item → field → what it may be."""

INFINITE_ALLOWED = frozenset(
    {
        "limit",
        "limits",
        "turn_limit",
        "max_force",
        "distance_range",
        "spring_range",
        "control_range",
        "force_range",
        "activation_range",
        "actuator_force_limit",
    }
)
"""Fields whose numbers may be infinite: limits and ranges that may be open."""
