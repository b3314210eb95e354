"""Kinds of sensors: what each measures, in which unit and frame.

Kinds and conventions are MuJoCo's, so that measurements equal its `sensordata` where it has the kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpsim.scene.description import CONTACT_DATA, Sensor


@dataclass(frozen=True)
class SensorKind:
    """What a kind of sensor measures."""

    code: int
    size: int
    unit: str
    frame: str
    targets: tuple[str, ...]


_FRAMES = ("site", "body", "shape", "inertia")
_BODIES = ("body", "inertia")
_TOUCHING = ("", "shape", "body", "subtree", "site")
KINDS: dict[str, SensorKind] = {
    "jointpos": SensorKind(0, 1, "rad or m", "joint", ("joint",)),
    "jointvel": SensorKind(1, 1, "rad/s or m/s", "joint", ("joint",)),
    "ballquat": SensorKind(2, 4, "1", "parent body", ("joint",)),
    "ballangvel": SensorKind(3, 3, "rad/s", "child body", ("joint",)),
    "tendonpos": SensorKind(4, 1, "m or rad", "tendon", ("tendon",)),
    "tendonvel": SensorKind(5, 1, "m/s or rad/s", "tendon", ("tendon",)),
    "actuatorfrc": SensorKind(6, 1, "N or N·m", "actuator", ("actuator",)),
    "framepos": SensorKind(7, 3, "m", "reference, or world", _FRAMES),
    "framequat": SensorKind(8, 4, "1", "reference, or world", _FRAMES),
    "framexaxis": SensorKind(9, 3, "1", "reference, or world", _FRAMES),
    "frameyaxis": SensorKind(10, 3, "1", "reference, or world", _FRAMES),
    "framezaxis": SensorKind(11, 3, "1", "reference, or world", _FRAMES),
    "framelinvel": SensorKind(12, 3, "m/s", "reference, or world", _FRAMES),
    "frameangvel": SensorKind(13, 3, "rad/s", "reference, or world", _FRAMES),
    "framelinacc": SensorKind(14, 3, "m/s², gravity included", "world", _FRAMES),
    "frameangacc": SensorKind(15, 3, "rad/s²", "world", _FRAMES),
    "velocimeter": SensorKind(16, 3, "m/s", "site", ("site",)),
    "gyro": SensorKind(17, 3, "rad/s", "site", ("site",)),
    "accelerometer": SensorKind(18, 3, "m/s², gravity included", "site", ("site",)),
    "contactforce": SensorKind(19, 3, "N", "world", ("shape",)),
    "jointacc": SensorKind(20, 1, "rad/s² or m/s²", "joint", ("joint",)),
    "rangefinder": SensorKind(21, 1, "m, -1 where nothing is met", "along the site's z axis", ("site",)),
    "subtreecom": SensorKind(22, 3, "m", "world", _BODIES),
    "subtreelinvel": SensorKind(23, 3, "m/s", "world", _BODIES),
    "subtreeangmom": SensorKind(24, 3, "N·m·s", "world, about the subtree's center of mass", _BODIES),
    "tendonactfrc": SensorKind(25, 1, "N or N·m", "tendon", ("tendon",)),
    "touch": SensorKind(26, 1, "N, normal forces in the site's volume", "site", ("site",)),
    "force": SensorKind(27, 3, "N, of the parent on the site's body", "site", ("site",)),
    "torque": SensorKind(28, 3, "N·m, of the parent on the site's body, about the site", "site", ("site",)),
    "jointactfrc": SensorKind(29, 1, "N·m or N, of all actuators", "joint", ("joint",)),
    "actuatorpos": SensorKind(30, 1, "rad or m, times gear", "actuator", ("actuator",)),
    "actuatorvel": SensorKind(31, 1, "rad/s or m/s, times gear", "actuator", ("actuator",)),
    "jointlimitpos": SensorKind(32, 1, "rad or m beyond a limit that acts, negative", "joint", ("joint",)),
    "jointlimitvel": SensorKind(33, 1, "rad/s or m/s out of a limit that acts", "joint", ("joint",)),
    "jointlimitfrc": SensorKind(34, 1, "N·m or N", "joint", ("joint",)),
    "tendonlimitpos": SensorKind(35, 1, "m or rad beyond a limit that acts, negative", "tendon", ("tendon",)),
    "tendonlimitvel": SensorKind(36, 1, "m/s or rad/s out of a limit that acts", "tendon", ("tendon",)),
    "tendonlimitfrc": SensorKind(37, 1, "N or N·m", "tendon", ("tendon",)),
    "contact": SensorKind(38, 0, "count, N, N·m, m", "contact; world of a net force", _TOUCHING),
}
"""By name; "contactforce", the sum of contact forces on a shape, and "jointacc" are ours, the others are MuJoCo's."""


def numbers_of(sensor: Sensor) -> int:
    """How many numbers a sensor of a known kind gives."""
    if sensor.kind == "contact":
        return sensor.slots * sum(CONTACT_DATA[name] for name in sensor.data)
    return KINDS[sensor.kind].size


def sensor_size(sensors: Sequence[Sensor]) -> int:
    """Numbers that sensors give, those of unknown kinds left out."""
    return sum(numbers_of(s) for s in sensors if s.kind in KINDS)
