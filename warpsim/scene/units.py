"""Units of joints, actuators and controls, for people."""

from __future__ import annotations

import numpy as np

from warpsim.scene.actuation import Actuator, Drive
from warpsim.scene.description import Scene

POSITION = {"hinge": "rad", "slide": "m", "ball": "quaternion", "free": "m, quaternion"}
VELOCITY = {"hinge": "rad/s", "slide": "m/s", "ball": "rad/s", "free": "m/s, rad/s"}
FORCE = {"hinge": "N·m", "slide": "N", "ball": "N·m", "free": "N, N·m"}


def actuator_input_unit(scene: Scene, actuator: Actuator) -> str:
    """Unit of an actuator's input: of a position or velocity for a servo, of a force for a motor, else "1"."""
    kinds = {joint.name: joint.kind for joint in scene.joints}
    kind = kinds.get(actuator.target, "") if actuator.transmission == "joint" else ""
    gain, bias = actuator.gain, actuator.bias
    if gain[0] and gain[0] == -bias[1]:
        return POSITION.get(kind, "m")
    if gain[0] and gain[0] == -bias[2]:
        return VELOCITY.get(kind, "m/s")
    if gain[0] == 1.0 and not gain[1:].any() and not bias.any():
        return f"{FORCE[kind]} before the gear" if kind else "N before the gear"
    return "1"


def drive_limits(scene: Scene, drive: Drive) -> tuple[float, float] | None:
    """Bounds of the coordinate that a drive acts on, rad or m."""
    if drive.axis is None:
        return next(joint.limit for joint in scene.joints if joint.name == drive.joint)
    low, high = next(equality.limits[drive.axis] for equality in scene.equalities if equality.name == drive.joint)
    return None if np.isinf([low, high]).all() else (float(low), float(high))


def interval(limits: tuple[float, float] | None, unit: str) -> str:
    """A range with its unit."""
    return f"any {unit}" if limits is None else f"{limits[0]:.4g} … {limits[1]:.4g} {unit}"
