"""Tendons, actuators, drives, equalities and sensors of a scene → elements of MJCF."""

from __future__ import annotations

import numpy as np

from warpsim.io.mjcf_export.document import Document, add, softness
from warpsim.scene.actuation import Actuator, DcMotor, Drive, Tendon
from warpsim.scene.constraints import Equality
from warpsim.scene.description import Sensor

_TAGS = {"jointactfrc": "jointactuatorfrc", "tendonactfrc": "tendonactuatorfrc"}
_OBJECTS = {"body": "xbody", "inertia": "body", "shape": "geom", "site": "site"}
_TOUCHING = {"body": "body", "subtree": "subtree", "shape": "geom", "site": "site"}
_OURS = ("contactforce", "jointacc")


def add_tendon(document: Document, tendon: Tendon) -> None:
    """A fixed or spatial tendon; a slider-crank is written with its actuators."""
    if tendon.rod > 0:
        if tendon.stiffness or tendon.damping or tendon.limit is not None or tendon.friction_loss:
            reason = "MuJoCo's slider-cranks have neither spring, damper, limit nor friction"
            document.lost("tendon", tendon.name, "rod", reason)
        return
    made = add(
        document.section("tendon"),
        "spatial" if tendon.path else "fixed",
        name=tendon.name,
        stiffness=tendon.stiffness or None,
        damping=tendon.damping or None,
        armature=tendon.armature or None,
        springlength=tendon.spring_range,
        limited=tendon.limit is not None,
        range=tendon.limit,
        margin=tendon.limit_margin or None,
        frictionloss=tendon.friction_loss or None,
        **softness(tendon.limit_solref, tendon.limit_solimp, "limit"),
        **softness(tendon.friction_solref, tendon.friction_solimp, "friction"),
    )
    for joint, coefficient in zip(tendon.joints, tendon.coefficients, strict=True):
        add(made, "joint", joint=joint, coef=float(coefficient))
    for point in tendon.path:
        if point.kind == "pulley":
            add(made, "pulley", divisor=float(point.divisor))
        elif point.kind == "site":
            add(made, "site", site=point.name)
        else:
            add(made, "geom", geom=point.name, sidesite=point.side)


def _transmission(document: Document, actuator: Actuator) -> dict[str, object]:
    rods = {tendon.name: tendon for tendon in document.scene.tendons if tendon.rod > 0}
    crank = rods.get(actuator.target) if actuator.transmission == "tendon" else None
    if crank is None:
        return {actuator.transmission: actuator.target}
    return {"slidersite": crank.path[0].name, "cranksite": crank.path[1].name, "cranklength": crank.rod}


def _add_motor(document: Document, actuator: Actuator, motor: DcMotor) -> None:
    inductance = actuator.time_constant * motor.resistance if actuator.dynamics == "current" else None
    forces = actuator.force_range
    if forces is not None and forces[0] != -forces[1]:
        document.lost("actuator", actuator.name, "force_range", "that of a dcmotor is the same on both sides")
    if actuator.activation_range is not None:
        document.lost("actuator", actuator.name, "activation_range", "a dcmotor has none")
    if actuator.dynamics == "current" and not actuator.activation_early:
        document.lost("actuator", actuator.name, "activation_early", "the current of a dcmotor acts at the step's end")
    add(
        document.section("actuator"),
        "dcmotor",
        name=actuator.name,
        **_transmission(document, actuator),
        gear=actuator.gear,
        motorconst=motor.constant,
        resistance=motor.resistance,
        inductance=inductance,
        cogging=motor.cogging if any(motor.cogging) else None,
        saturation=forces[1] if forces is not None else None,
        ctrllimited=actuator.control_range is not None,
        ctrlrange=actuator.control_range,
    )


def add_actuator(document: Document, actuator: Actuator) -> None:
    """A general actuator; the law of a muscle or a motor where it has one."""
    if actuator.motor is not None:
        _add_motor(document, actuator, actuator.motor)
        return
    muscle = actuator.muscle
    gain, bias = list(actuator.gain), list(actuator.bias)
    if actuator.damping_ratio:
        bias[2] = actuator.damping_ratio
    if muscle is not None:
        law = [*muscle.range, muscle.force, 200.0, muscle.lmin, muscle.lmax, muscle.vmax, muscle.fpmax, muscle.fvmax]
        gain, bias = (law if muscle.active else gain), (law if muscle.passive else bias)
    dynamics = {
        "muscle": [actuator.time_constant, actuator.deactivation_time, actuator.activation_smoothing],
        "filter": [actuator.time_constant],
        "filterexact": [actuator.time_constant],
    }
    add(
        document.section("actuator"),
        "general",
        name=actuator.name,
        **_transmission(document, actuator),
        gear=actuator.gear,
        gaintype="muscle" if muscle is not None and muscle.active else "affine" if np.any(gain[1:]) else "fixed",
        gainprm=gain,
        biastype="muscle" if muscle is not None and muscle.passive else "affine" if np.any(bias) else "none",
        biasprm=bias,
        dyntype=actuator.dynamics,
        dynprm=dynamics.get(actuator.dynamics),
        lengthrange=muscle.length_range if muscle is not None else None,
        ctrllimited=actuator.control_range is not None,
        ctrlrange=actuator.control_range,
        forcelimited=actuator.force_range is not None,
        forcerange=actuator.force_range,
        actlimited=actuator.activation_range is not None,
        actrange=actuator.activation_range,
        actearly=actuator.activation_early or None,
    )


def add_drive(document: Document, drive: Drive) -> bool:
    """A drive as a servo whose control is the target; whether it was written."""
    if drive.axis is not None or drive.acceleration:
        what = "it drives a joint that closes a loop" if drive.axis is not None else "its gains are per inertia"
        document.lost("drive", drive.name, "drive", f"{what}, which no actuator does")
        return False
    document.lost("drive", drive.name, "drive", "a servo, which MuJoCo's Euler steps take explicitly")
    add(
        document.section("actuator"),
        "general",
        name=drive.name,
        joint=drive.joint,
        gaintype="fixed",
        gainprm=[drive.stiffness, 0.0, 0.0],
        biastype="affine",
        biasprm=[drive.damping * drive.target_velocity, -drive.stiffness, -drive.damping],
        forcelimited=bool(np.isfinite(drive.max_force)),
        forcerange=(-drive.max_force, drive.max_force) if np.isfinite(drive.max_force) else None,
    )
    return True


def add_equality(document: Document, equality: Equality) -> None:
    """connect, weld, joint, tendon."""
    values = dict(name=equality.name, active=equality.active, **softness(equality.solref, equality.solimp))
    section = document.section("equality")
    if equality.kind in ("joint", "tendon"):
        ends = {f"{equality.kind}1": equality.a, f"{equality.kind}2": equality.b}
        add(section, equality.kind, **values, **ends, polycoef=equality.polynomial)
    elif equality.kind == "connect" and equality.anchor_b is None:
        add(section, "connect", **values, body1=equality.a or "world", body2=equality.b, anchor=equality.anchor)
    elif equality.kind == "connect":
        sites = {f"site{k}": f"{equality.name}:point{k}" for k in (1, 2)}
        for body, point, name in zip(
            (equality.a, equality.b), (equality.anchor, equality.anchor_b), sites.values(), strict=True
        ):
            add(document.bodies[body or None], "site", name=name, pos=point)
        add(section, "connect", **values, **sites)
    elif equality.kind == "weld":
        pose = equality.relative_pose
        add(
            section,
            "weld",
            **values,
            body1=equality.a or "world",
            body2=equality.b,
            anchor=equality.anchor,
            relpose=pose,
            torquescale=equality.torque_scale,
        )
    else:
        document.lost("equality", equality.name, f"kind {equality.kind}", "MuJoCo has no such equality")


def add_sensor(document: Document, sensor: Sensor) -> None:
    """A sensor, where MuJoCo has the kind."""
    if sensor.kind in _OURS:
        document.lost("sensor", sensor.name, sensor.kind, "MuJoCo has no such sensor")
        return
    ends: dict[str, object] = {}
    if sensor.kind == "contact":
        ends = _contact_ends(sensor)
    elif sensor.kind.startswith("frame"):
        ends = {"objtype": _OBJECTS[sensor.target_kind], "objname": sensor.target or "world"}
        if sensor.reference is not None:
            ends |= {"reftype": _OBJECTS[sensor.reference_kind], "refname": sensor.reference or "world"}
    elif sensor.target_kind:
        word = "body" if sensor.target_kind == "inertia" else sensor.target_kind
        ends = {word: sensor.target or "world"}
    tag = _TAGS.get(sensor.kind, sensor.kind)
    noise, cutoff = sensor.noise or None, sensor.cutoff or None
    add(document.section("sensor"), tag, name=sensor.name, **ends, noise=noise, cutoff=cutoff)


def _contact_ends(sensor: Sensor) -> dict[str, object]:
    ends: dict[str, object] = {"data": " ".join(sensor.data), "reduce": sensor.reduce, "num": sensor.slots}
    if sensor.target_kind:
        word = _TOUCHING[sensor.target_kind]
        ends[word if word == "site" else f"{word}1"] = sensor.target or "world"
    if sensor.reference is not None and sensor.reference_kind:
        ends[f"{_TOUCHING[sensor.reference_kind]}2"] = sensor.reference or "world"
    return ends
