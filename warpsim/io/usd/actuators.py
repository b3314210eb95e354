"""Sites, tendons, actuators and key frames, which only MuJoCo's and Newton's schemas have.

Their numbers are in the stage's units with radians. A control keeps the unit it was authored for; gains and gears
carry the conversion, so forces come out in SI.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pxr import Usd

from warpsim.core.errors import SceneError
from warpsim.io.usd.context import Context
from warpsim.io.usd.ledger_scan import applied_apis
from warpsim.io.usd.physics_objects import PhysicsObjects
from warpsim.io.usd.spatial_tendons import read_crank, read_motor, read_muscle, read_path
from warpsim.scene import Actuator, Site, Tendon
from warpsim.scene.description import JOINT_DOF_SIZE, JOINT_Q_SIZE

_SITE_APIS = ("MjcSiteAPI", "NewtonSiteAPI")
_DYNAMICS = ("none", "integrator", "filter", "filterexact", "muscle")


def add_sites(context: Context, objects: PhysicsObjects) -> None:
    """Adds every prim that carries a site API."""
    for path in context.order:
        prim = context.prim(path)
        if not any(name in _SITE_APIS for name in applied_apis(prim)):
            continue
        owner = objects.owner(prim)
        pose = context.frame(prim).pose
        if owner is not None:
            pose = context.frame(objects.bodies[owner]).pose.inverse() @ pose
        site = Site(str(path), str(owner) if owner is not None else None, pose.position, pose.rotation)
        context.scene.sites.append(site)


def add_tendons(context: Context) -> None:
    """Adds fixed and spatial tendons."""
    for path in context.order:
        prim = context.prim(path)
        if prim.GetTypeName() == "MjcTendon":
            _add_tendon(context, prim)


def _add_tendon(context: Context, prim: Usd.Prim) -> None:
    kind = context.read.token(prim, "mjc:type") or "spatial"
    if kind == "spatial":
        path = read_path(context, prim)
        if path is not None:
            tendon = Tendon(str(prim.GetPath()), path=path)
            _tendon_values(context, prim, tendon, False, context.units.length)
            context.scene.tendons.append(tendon)
        return
    if kind != "fixed":
        context.ledger.unsupported(prim, "mjc:type", f"{kind} tendons are not modeled")
        return
    targets = context.read.targets(prim, "mjc:path")
    order = context.read.array(prim, "mjc:path:indices")
    coefficients = context.read.array(prim, "mjc:path:coef")
    order = np.arange(len(targets)) if order is None else order.astype(int)
    coefficients = np.ones(len(order)) if coefficients is None else coefficients
    if len(order) != len(coefficients) or (len(order) and not 0 <= order.min() <= order.max() < len(targets)):
        raise SceneError(f"{prim.GetPath()}: mjc:path, mjc:path:indices and mjc:path:coef do not fit together")
    joints = [str(targets[i]) for i in order]
    kinds = {joint.name: joint.kind for joint in context.scene.joints}
    if not joints or any(kinds.get(name) not in ("hinge", "slide") for name in joints):
        context.ledger.unsupported(prim, "mjc:path", "a fixed tendon runs over single hinges and slides")
        return
    tendon = Tendon(str(prim.GetPath()), joints, coefficients)
    angular = all(kinds[name] == "hinge" for name in joints)
    length = 1.0 if angular else context.units.length
    _tendon_values(context, prim, tendon, angular, length)
    context.scene.tendons.append(tendon)


def _tendon_values(context: Context, prim: Usd.Prim, tendon: Tendon, angular: bool, length: float) -> None:
    units = context.units
    context.take(tendon, "stiffness", prim, "mjc:stiffness", units.gain(angular))
    context.take(tendon, "damping", prim, "mjc:damping", units.gain(angular))
    context.take(tendon, "armature", prim, "mjc:armature", units.gain(angular))
    context.take(tendon, "friction_loss", prim, "mjc:frictionloss", units.force(angular))
    context.take(tendon, "limit_margin", prim, "mjc:margin", length)
    _take_range(context, tendon, "limit", prim, "range", "limited", length)
    spring = context.read.array(prim, "mjc:springlength")
    if spring is not None and spring.shape == (2,) and (spring >= 0).any():
        tendon.spring_range = (length * spring[0], length * (spring[1] if spring[1] >= 0 else spring[0]))
    for field in ("limit", "friction"):
        context.take(tendon, f"{field}_solref", prim, f"mjc:solref{field}", scale=(1, 1))
        context.take(tendon, f"{field}_solimp", prim, f"mjc:solimp{field}", scale=(1, 1, length, 1, 1))


def _take_range(
    context: Context, item: Actuator | Tendon, field: str, prim: Usd.Prim, name: str, limited: str, factor: float = 1.0
) -> None:
    """Reads a range that acts if its flag is "true", or "auto" and the range is authored."""
    flag = context.read.token(prim, f"mjc:{limited}", choices=("auto", "true", "false")) or "auto"
    low, high = (context.read.number(prim, f"mjc:{name}:{side}") for side in ("min", "max"))
    if flag == "false" or (low is None and high is None):
        return
    setattr(item, field, (factor * (low or 0.0), factor * (high or 0.0)))


def add_actuators(context: Context) -> None:
    """Adds every MjcActuator and NewtonActuator prim."""
    for path in context.order:
        prim = context.prim(path)
        if prim.GetTypeName() == "MjcActuator":
            _add_actuator(context, prim)
        elif prim.GetTypeName() == "NewtonActuator":
            _add_servos(context, prim)


def _add_servos(context: Context, prim: Usd.Prim) -> None:
    """A NewtonActuator: force = kp·(control − q) − kd·q̇ in radians, within ± maxEffort, on each joint it names."""
    targets = [str(target) for target in context.read.targets(prim, "newton:targets")]
    kinds = {joint.name: joint.kind for joint in context.scene.joints}
    if not targets or any(kinds.get(target) not in ("hinge", "slide") for target in targets):
        context.ledger.unsupported(prim, "newton:targets", "points at something that is no single hinge or slide")
        return
    gains = [context.read.number(prim, f"newton:{name}") or 0.0 for name in ("kp", "kd")]
    effort = context.read.number(prim, "newton:maxEffort", finite=False)
    for target in targets:
        angular = kinds[target] == "hinge"
        stiffness, damping = (context.units.gain(angular) * gain for gain in gains)
        name = str(prim.GetPath()) if len(targets) == 1 else f"{prim.GetPath()}:{target}"
        actuator = Actuator(name, "joint", target)
        actuator.gain, actuator.bias = np.array([stiffness, 0.0, 0.0]), np.array([0.0, -stiffness, -damping])
        force = context.units.force(angular)
        if effort is not None and np.isfinite(effort):
            actuator.force_range = (-force * effort, force * effort)
        context.scene.actuators.append(actuator)


def _add_actuator(context: Context, prim: Usd.Prim) -> None:
    targets = context.read.targets(prim, "mjc:target")
    name = str(prim.GetPath())
    transmission: tuple[str, bool] | None
    sliders = [str(path) for path in context.read.targets(prim, "mjc:sliderSite")]
    if sliders and len(targets) == 1:
        crank = read_crank(context, prim, sliders, str(targets[0]))
        if crank is None:
            return
        context.scene.tendons.append(crank)
        transmission, target = ("tendon", False), crank.name
    else:
        transmission = _transmission(context, str(targets[0])) if len(targets) == 1 else None
        target = str(targets[0]) if targets else ""
    if transmission is None:
        shown = ", ".join(map(str, targets)) or "nothing"
        context.ledger.unsupported(prim, "mjc:target", f"points at {shown}: no single joint, tendon, site or body")
        return
    kind, angular = transmission
    actuator = Actuator(name, kind, target)
    if _law(context, prim, actuator) is None:
        return
    if kind == "body" and (np.any(actuator.gain[1:]) or np.any(actuator.bias[1:]) or actuator.muscle is not None):
        context.ledger.unsupported(prim, "mjc:gainPrm", "a body's adhesion depends on neither length nor velocity")
        return
    _scale(context, actuator, angular)
    _take_range(context, actuator, "control_range", prim, "ctrlRange", "ctrlLimited")
    if actuator.control_range is None:
        actuator.control_range = _inherited(context, prim, actuator)
    _take_range(context, actuator, "force_range", prim, "forceRange", "forceLimited", context.units.force(angular))
    _take_range(context, actuator, "activation_range", prim, "actRange", "actLimited")
    actuator.activation_early = context.read.flag(prim, "mjc:actEarly", False)
    context.scene.actuators.append(actuator)


def _transmission(context: Context, target: str) -> tuple[str, bool] | None:
    """(kind, whether its coordinate is an angle) of what an actuator acts on."""
    for joint in context.scene.joints:
        if joint.name == target:
            return "joint", joint.kind in ("hinge", "ball")
    kinds = {joint.name: joint.kind for joint in context.scene.joints}
    for tendon in context.scene.tendons:
        if tendon.name == target:
            return "tendon", not tendon.path and all(kinds[name] == "hinge" for name in tendon.joints)
    if any(site.name == target for site in context.scene.sites):
        return "site", False
    return ("body", False) if any(body.name == target for body in context.scene.bodies) else None


@dataclass(frozen=True)
class _Law:
    """Which of the three numbers of gain and bias act, 1 or 0."""

    gain: tuple[int, int, int]
    bias: tuple[int, int, int]


def _law(context: Context, prim: Usd.Prim, actuator: Actuator) -> _Law | None:
    """Sets gear, gain, bias and activation dynamics; None if the actuator's law is not modeled."""
    types = {
        "gainType": ("fixed", "affine", "muscle", "dcmotor"),
        "biasType": ("none", "affine", "muscle", "dcmotor"),
        "dynType": (*_DYNAMICS, "dcmotor"),
    }
    chosen = {}
    for name, known in types.items():
        value = context.read.token(prim, f"mjc:{name}") or known[0]
        if value not in known:
            context.ledger.unsupported(prim, f"mjc:{name}", f"{value!r} is not modeled; the actuator is left out")
            return None
        chosen[name] = value
    if "dcmotor" in chosen.values():
        return _Law((0, 0, 0), (0, 0, 0)) if read_motor(context, prim, actuator, set(chosen.values())) else None
    active, passive = chosen["gainType"] == "muscle", chosen["biasType"] == "muscle"
    if (active or passive) and not read_muscle(context, prim, actuator, active=active, passive=passive):
        return None
    for field, name, size in (("gear", "gear", 6), ("gain", "gainPrm", 3), ("bias", "biasPrm", 3)):
        values = context.read.array(prim, f"mjc:{name}")
        if values is not None:
            padded = np.zeros(size)
            padded[: min(size, len(values))] = values[:size]
            setattr(actuator, field, padded)
    law = _Law({"fixed": (1, 0, 0), "affine": (1, 1, 1), "muscle": (0, 0, 0)}[chosen["gainType"]], (0, 0, 0))
    actuator.gain = actuator.gain * np.array(law.gain, float)
    if chosen["biasType"] == "affine":
        law = _Law(law.gain, (1, 1, 1))
        if actuator.bias[2] > 0 and actuator.gain[0] == -actuator.bias[1]:
            law = _Law(law.gain, (1, 1, 0))
            _read_damping_ratio(context, prim, actuator)
    actuator.bias = actuator.bias * np.array(law.bias, float)
    actuator.dynamics = chosen["dynType"]
    constants = context.read.array(prim, "mjc:dynPrm")
    if constants is not None and len(constants):
        actuator.time_constant = float(constants[0])
    if actuator.dynamics == "muscle" and constants is not None:
        if len(constants) > 1:
            actuator.deactivation_time = float(constants[1])
        if len(constants) > 2:
            actuator.activation_smoothing = float(constants[2])
    return law


def _read_damping_ratio(context: Context, prim: Usd.Prim, actuator: Actuator) -> None:
    """A servo's positive biasPrm[2] is a ratio of the critical damping, by MuJoCo's rule."""
    kind = next((joint.kind for joint in context.scene.joints if joint.name == actuator.target), actuator.transmission)
    if kind in ("hinge", "slide", "tendon") and actuator.gain[0] > 0:
        actuator.damping_ratio = float(actuator.bias[2])
    else:
        reason = "a damping ratio needs a hinge, slide or tendon and a positive gain; the servo is not damped"
        context.ledger.unsupported(prim, "mjc:biasPrm", reason)


def _scale(context: Context, actuator: Actuator, angular: bool) -> None:
    """Stage units → SI: the gains take the units of force and length, the gear those of a site's torque."""
    units = context.units
    force, length = units.force(angular), 1.0 if angular else units.length
    per = 1.0 / np.array([1.0, length, length])
    actuator.gain = force * actuator.gain * per
    actuator.bias = force * actuator.bias * per
    turn = units.length if actuator.transmission == "site" else 1.0
    gear = np.array([1.0, 1.0, 1.0, turn, turn, turn])
    actuator.gear = actuator.gear * gear


def _inherited(context: Context, prim: Usd.Prim, actuator: Actuator) -> tuple[float, float] | None:
    """`mjc:inheritRange`: the joint's limits about their middle, times the number, as the control range."""
    factor = context.read.number(prim, "mjc:inheritRange")
    joint = next((joint for joint in context.scene.joints if joint.name == actuator.target), None)
    if not factor or joint is None or joint.limit is None or not np.isfinite(joint.limit).all():
        return None
    middle, half = 0.5 * (joint.limit[0] + joint.limit[1]), 0.5 * (joint.limit[1] - joint.limit[0])
    return middle - factor * half, middle + factor * half


def apply_keyframe(context: Context) -> None:
    """Starts from the first MjcKeyframe, whose arrays follow MuJoCo's order of joints: depth first, as here."""
    frames = [context.prim(path) for path in context.order if context.prim(path).GetTypeName() == "MjcKeyframe"]
    for other in frames[1:]:
        context.ledger.ignored(other, "MjcKeyframe", f"the start is {frames[0].GetPath()}")
    if not frames:
        return
    joints = context.scene.joints
    for field, name, sizes in (("initial_q", "mjc:qpos", JOINT_Q_SIZE), ("initial_qd", "mjc:qvel", JOINT_DOF_SIZE)):
        values = context.read.array(frames[0], name)
        if values is None or not len(values):
            continue
        total = sum(sizes[joint.kind] for joint in joints)
        if len(values) != total:
            raise SceneError(f"{frames[0].GetPath()}.{name} holds {len(values)} numbers; the joints need {total}")
        at = 0
        for joint in joints:
            size = sizes[joint.kind]
            setattr(joint, field, _to_si(context, joint.kind, values[at : at + size]))
            at += size


def _to_si(context: Context, kind: str, values: np.ndarray) -> np.ndarray:
    values = values.copy()
    if kind == "slide":
        return context.units.length * values
    if kind == "free":
        values[:3] = context.units.length * (context.units.to_world @ values[:3])
    return values
