"""Stage units and up axis, and their factors to the SI, Z-up world of a `Scene`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pxr import Usd, UsdGeom, UsdPhysics

from warpsim.core.errors import SceneError

DEGREE = np.pi / 180.0
EARTH_GRAVITY = 9.81
"""m/s², for a stage that leaves gravity to the engine."""

_HALF = np.sqrt(0.5)


@dataclass(frozen=True)
class StageUnits:
    """A stage's units: scene value = factor · stage value; see the properties for each dimension."""

    length: float
    """m per stage unit (metersPerUnit)."""
    mass: float
    """kg per stage unit (kilogramsPerUnit)."""
    up_axis: str
    """"Y" or "Z"."""

    @property
    def to_world(self) -> np.ndarray:
        """(3, 3) permutation from stage axes to the Z-up world: exact, unlike a quaternion."""
        if self.up_axis == "Z":
            return np.eye(3)
        return np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])

    @property
    def up(self) -> np.ndarray:
        """Unit vector of the up axis in stage axes."""
        return np.array([0.0, 0.0, 1.0]) if self.up_axis == "Z" else np.array([0.0, 1.0, 0.0])

    @property
    def density(self) -> float:
        """kg/m³ per stage unit."""
        return self.mass / self.length**3

    @property
    def inertia(self) -> float:
        """kg·m² per stage unit."""
        return self.mass * self.length**2

    def coordinate(self, angular: bool) -> float:
        """Rad per degree, or m per stage unit: of joint positions, limits and targets."""
        return DEGREE if angular else self.length

    def force(self, angular: bool) -> float:
        """N·m or N per stage unit, of torques or forces along a joint."""
        return self.inertia if angular else self.mass * self.length

    def gain(self, angular: bool, *, degrees: bool = False) -> float:
        """Force per coordinate or per its rate: N·m/rad or N/m (and with s) per stage unit.

        Args:
            angular: Of a rotation.
            degrees: The stage value is per degree.
        """
        if not angular:
            return self.mass
        return self.inertia / DEGREE if degrees else self.inertia


SI = StageUnits(1.0, 1.0, "Z")


_UNIT_RANGE = (1e-12, 1e12)
"""Beyond it, inertias and densities leave the numbers."""


def stage_units(stage: Usd.Stage) -> StageUnits:
    """Reads units and up axis; unauthored ones have USD's fallbacks (0.01 m, 1 kg, Y).

    Raises:
        SceneError: A unit that is not a positive number, or an up axis other than Y and Z.
    """
    length = float(UsdGeom.GetStageMetersPerUnit(stage))
    mass = float(UsdPhysics.GetStageKilogramsPerUnit(stage))
    up_axis = str(UsdGeom.GetStageUpAxis(stage))
    place = stage.GetRootLayer().identifier
    for name, value in (("metersPerUnit", length), ("kilogramsPerUnit", mass)):
        if not (np.isfinite(value) and value > 0):
            raise SceneError(f"{place}: {name} is {value}; it must be a positive number")
        if not _UNIT_RANGE[0] <= value <= _UNIT_RANGE[1]:
            raise SceneError(
                f"{place}: {name} is {value:g}, which no scene is made in; correct it, e.g. 1 or 0.01 (from "
                f"{_UNIT_RANGE[0]:g} to {_UNIT_RANGE[1]:g} can be read)"
            )
    if up_axis not in ("Y", "Z"):
        raise SceneError(f"{place}: upAxis is {up_axis!r}; use 'Y' or 'Z'")
    return StageUnits(length, mass, up_axis)


def axis_vector(token: str) -> np.ndarray:
    """Unit vector of "X", "Y" or "Z"."""
    return np.eye(3)["XYZ".index(token)]


def axis_rotation(token: str) -> np.ndarray:
    """Quaternion that turns +z into the axis "X", "Y" or "Z": places shapes that the scene builds along z."""
    return {
        "X": np.array([_HALF, 0.0, _HALF, 0.0]),
        "Y": np.array([_HALF, -_HALF, 0.0, 0.0]),
        "Z": np.array([1.0, 0.0, 0.0, 0.0]),
    }[token]
