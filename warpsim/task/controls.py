"""Controls as functions of time with few numbers: per step, knots, harmonics; and feedback gains.

All but the feedback are linear in their values: the signal is B·V, with a fixed basis B (steps, coefficients) and
values V (coefficients, targets).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from warpsim.core.errors import InputError

CHANNELS = ("actuator", "drive_target", "drive_velocity", "joint_force")
"""What controls can drive; see `Simulator`."""


MAXIMUM_KNOTS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Control(ABC):
    """A control that the optimizer chooses.

    Attributes:
        name: Path of its prim, or any name.
        channel: One of `CHANNELS`; None: the simulator's own.
        targets: Actuators or joints that are driven; empty: all of the channel.
        values: First guess: nothing, one number, one for each target, or coefficients·targets, all targets of
            the first coefficient first.
        lower: Least value: one number, one for each target, or in open loop one for each value; None: from the scene.
        upper: Largest, likewise.
        scale: Typical change; None: half the range, or 1.
    """

    name: str = "control"
    channel: str | None = None
    targets: tuple[str, ...] = ()
    values: Sequence[float] | None = None
    lower: Sequence[float] | None = None
    upper: Sequence[float] | None = None
    scale: float | None = None

    def __post_init__(self) -> None:
        if self.channel is not None and self.channel not in CHANNELS:
            raise InputError(f"{self.name}: channel {self.channel!r}; use one of {', '.join(CHANNELS)}")

    @abstractmethod
    def coefficients(self, steps: int) -> int:
        """Rows of values."""


@dataclass(frozen=True, kw_only=True)
class OpenLoop(Control):
    """A control that does not look at the state."""

    clipped: ClassVar[bool] = True
    """Whether values within the bounds may give a signal beyond them, which is then cut off."""

    @abstractmethod
    def basis(self, times: np.ndarray, duration: float) -> np.ndarray | None:
        """B (steps, coefficients) at the steps' times, s; None: the identity."""

    def offsets(self, coefficients: int) -> np.ndarray:
        """(coefficients,) 1 where coefficients are values of the control, 0 where they are departures from it."""
        return np.ones(coefficients)


@dataclass(frozen=True, kw_only=True)
class Steps(OpenLoop):
    """A value for each step."""

    clipped: ClassVar[bool] = False

    def coefficients(self, steps: int) -> int:
        """One for each step."""
        return steps

    def basis(self, times: np.ndarray, duration: float) -> None:
        """The identity."""
        return None


@dataclass(frozen=True, kw_only=True)
class Knots(OpenLoop):
    """Values at evenly spaced times.

    Attributes:
        count: Number of knots.
        interpolation: "hold", "linear" or "cubic" (the natural cubic spline).
        metric: How far apart two choices are, for methods that ask: by their "values", or by their "rates" of change.
    """

    count: int = 10
    interpolation: str = "linear"
    metric: str = "values"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.interpolation not in ("hold", "linear", "cubic"):
            raise InputError(f"{self.name}: interpolation {self.interpolation!r}; use hold, linear or cubic")
        if self.metric not in ("values", "rates"):
            raise InputError(f"{self.name}: metric {self.metric!r}; use values or rates")
        if self.count < (1 if self.interpolation == "hold" else 2):
            raise InputError(f"{self.name}: {self.count} knots; at least 2 are needed, or 1 to hold")
        if self.count > MAXIMUM_KNOTS:
            raise InputError(f"{self.name}: {self.count} knots; at most {MAXIMUM_KNOTS} can be searched, use fewer")

    def coefficients(self, steps: int) -> int:
        """One for each knot."""
        return self.count

    def basis(self, times: np.ndarray, duration: float) -> np.ndarray:
        """Influence of each knot on each step."""
        if self.interpolation == "hold":
            place = np.minimum((times / duration * self.count + 1e-9).astype(int), self.count - 1)
            return np.eye(self.count)[place]
        place = np.clip(times / duration * (self.count - 1), 0.0, self.count - 1)
        left = np.minimum(place.astype(int), self.count - 2)
        share = (place - left)[:, None]
        unit = np.eye(self.count)
        line = (1 - share) * unit[left] + share * unit[left + 1]
        if self.interpolation == "linear":
            return line
        bend = _second_derivatives(self.count)
        return line + ((1 - share) ** 3 - (1 - share)) / 6 * bend[left] + (share**3 - share) / 6 * bend[left + 1]


def inverse_of_rates(held: np.ndarray) -> np.ndarray:
    """(count, count) what a gradient by values becomes where distance is the sum of squared differences of neighbors.

    With M = DᵀD of the values that are free, a step along M⁻¹g changes a motion smoothly, and what comes later goes
    along with it, where a step along g would bend it only where g is (CHOMP's metric: Ratliff et al., 2009). Where no
    value is held, all of them may shift, which costs a little.

    Args:
        held: (count,) which values stay; their rows and columns are zero.
    """
    count, free = len(held), np.flatnonzero(~held)
    differences = np.diff(np.eye(count), axis=0)
    metric = (differences.T @ differences)[np.ix_(free, free)]
    if len(free) == count:
        metric += np.eye(count) / count**2
    inverse = np.zeros((count, count))
    inverse[np.ix_(free, free)] = np.linalg.inv(metric)
    return inverse


def _second_derivatives(count: int) -> np.ndarray:
    """(count, count): second derivatives at the knots of a natural cubic spline through values, knots one apart."""
    left, right = np.eye(count), np.zeros((count, count))
    for i in range(1, count - 1):
        left[i, i - 1 : i + 2] = 1 / 6, 2 / 3, 1 / 6
        right[i, i - 1 : i + 2] = 1.0, -2.0, 1.0
    return np.linalg.solve(left, right)


@dataclass(frozen=True, kw_only=True)
class Periodic(OpenLoop):
    """A mean and harmonics of a period; the coefficients are mean, cos 1, sin 1, cos 2, sin 2 and so on.

    Attributes:
        period: s.
        harmonics: How many.
    """

    period: float = 1.0
    harmonics: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.period > 0 or self.harmonics < 1:
            raise InputError(f"{self.name}: period {self.period} s and {self.harmonics} harmonics; both above 0")

    def coefficients(self, steps: int) -> int:
        """The mean and two for each harmonic."""
        return 1 + 2 * self.harmonics

    def basis(self, times: np.ndarray, duration: float) -> np.ndarray:
        """Fourier's functions at each step."""
        phase = 2 * np.pi * times / self.period
        waves = [f(k * phase) for k in range(1, self.harmonics + 1) for f in (np.cos, np.sin)]
        return np.stack([np.ones_like(times), *waves], axis=1)

    def offsets(self, coefficients: int) -> np.ndarray:
        """Only the mean is a value."""
        return np.eye(coefficients)[0]


@dataclass(frozen=True, kw_only=True)
class Feedback(Control):
    """kp·(reference − q) − kd·qd for each target; coefficients kp, kd.

    Attributes:
        joints: Hinges or slides that are measured, one for each target; empty: the targets.
        reference: Wanted coordinates, rad or m; None: those at the start.
    """

    joints: tuple[str, ...] = ()
    reference: Sequence[float] | None = None

    def coefficients(self, steps: int) -> int:
        """Two."""
        return 2
