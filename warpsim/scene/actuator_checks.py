"""Checks of actuators: what they act on, and laws that only some of them may have."""

from __future__ import annotations

import numpy as np

from warpsim.core.errors import SceneError
from warpsim.scene.actuation import Actuator
from warpsim.scene.checks import check_fields, check_reference, place
from warpsim.scene.description import Scene


def check_actuators(scene: Scene) -> None:
    """Each acts on something there is, by a law that is modeled there."""
    known = {
        "joint": {joint.name for joint in scene.joints},
        "tendon": {tendon.name for tendon in scene.tendons},
        "site": {site.name for site in scene.sites},
        "body": {body.name for body in scene.bodies},
    }
    kinds = {joint.name: joint.kind for joint in scene.joints}
    for actuator in scene.actuators:
        _check_target(actuator, known)
        check_fields(actuator, "damping_ratio")
        kind = kinds.get(actuator.target, actuator.transmission)
        servo = actuator.gain[0] == -actuator.bias[1] > 0 and kind in ("hinge", "slide", "tendon")
        if actuator.damping_ratio > 0 and not servo:
            raise SceneError(
                f"{place(actuator)}: damping_ratio is for servos with gain[0] = -bias[1] > 0 on a hinge, slide or "
                "tendon; set bias[2] instead"
            )
        check_fields(actuator, "control_range", "force_range", "activation_range")
        if actuator.dynamics in ("filter", "filterexact", "muscle", "current"):
            check_fields(actuator, "time_constant")
        if actuator.muscle is not None and actuator.transmission == "site":
            raise SceneError(f"{place(actuator)}: a muscle pulls at a joint or a tendon, not at a site")
        _check_motor(actuator)
        if actuator.transmission == "body":
            _check_adhesion(scene, actuator)


def _check_motor(actuator: Actuator) -> None:
    motor = actuator.motor
    if motor is None:
        if actuator.dynamics == "current":
            raise SceneError(f"{place(actuator)}: a current flows in a motor; set motor, or another dynamics")
        return
    if actuator.transmission in ("site", "body") or actuator.muscle is not None:
        raise SceneError(f"{place(actuator)}: a motor turns a joint or pulls a tendon, and is no muscle")
    if actuator.dynamics not in ("none", "current"):
        raise SceneError(f'{place(actuator)}: the dynamics of a motor is "none" or "current"')
    if not (np.isfinite(motor.resistance) and motor.resistance > 0):
        raise SceneError(f"{place(actuator)}: a motor's resistance is {motor.resistance:g}; it must be above zero")
    if not np.isfinite([motor.constant, *motor.cogging]).all():
        raise SceneError(f"{place(actuator)}: a motor's constant and cogging must be finite")


def _check_adhesion(scene: Scene, actuator: Actuator) -> None:
    muscular = actuator.muscle is not None or actuator.dynamics == "muscle"
    if muscular or np.any(actuator.gain[1:]) or np.any(actuator.bias[1:]):
        raise SceneError(
            f"{place(actuator)}: a body's adhesion has neither length nor velocity and is no muscle; set gain[1:] and "
            "bias[1:] to 0"
        )
    if scene.options.impacts:
        raise SceneError(f"{place(actuator)}: adhesion is not modeled together with Options.impacts; set one aside")


def _check_target(actuator: Actuator, known: dict[str, set[str]]) -> None:
    where = f"{place(actuator)}, target"
    elsewhere = [kind for kind, names in known.items() if actuator.target in names]
    if elsewhere and actuator.transmission not in elsewhere:
        raise SceneError(
            f"{where} {actuator.target!r} is a {elsewhere[0]}, but the transmission is {actuator.transmission!r}; "
            f"set transmission to {elsewhere[0]!r} or name a {actuator.transmission}"
        )
    check_reference(where, actuator.transmission, actuator.target, known[actuator.transmission])
