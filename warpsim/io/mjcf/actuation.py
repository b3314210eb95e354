"""Tendons and actuators of a MuJoCo model."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

import numpy as np

from warpsim.io.mjcf.bodies import joint_kind
from warpsim.io.mjcf.engine import mujoco
from warpsim.io.mjcf.source import MjSource, interval
from warpsim.scene.actuation import Actuator, DcMotor, Muscle, Tendon, TendonPoint
from warpsim.scene.description import Joint, Scene

_UNSUPPORTED_TENDON_FIELDS = {
    "stiffnesspoly": "only linear springs are modeled",
    "dampingpoly": "only linear damping is modeled",
    "springyield": "plastic springs are not modeled",
    "actfrclimited": "a limit on the summed actuator force along a tendon is not modeled",
}
_UNSUPPORTED_ACTUATOR_FIELDS = {
    "dampingpoly": "only linear damping is modeled",
    "delay": "delayed controls are not modeled",
    "history": "control histories are not modeled",
}
_TRANSMISSIONS = {
    mujoco.mjtTrn.mjTRN_JOINT: "joint",
    mujoco.mjtTrn.mjTRN_JOINTINPARENT: "joint",
    mujoco.mjtTrn.mjTRN_TENDON: "tendon",
    mujoco.mjtTrn.mjTRN_SITE: "site",
    mujoco.mjtTrn.mjTRN_BODY: "body",
    mujoco.mjtTrn.mjTRN_SLIDERCRANK: "tendon",
}
_DYNAMICS = {
    mujoco.mjtDyn.mjDYN_NONE: "none",
    mujoco.mjtDyn.mjDYN_INTEGRATOR: "integrator",
    mujoco.mjtDyn.mjDYN_FILTER: "filter",
    mujoco.mjtDyn.mjDYN_FILTEREXACT: "filterexact",
    mujoco.mjtDyn.mjDYN_MUSCLE: "muscle",
    mujoco.mjtDyn.mjDYN_DCMOTOR: "current",
}
_GAINS = tuple(getattr(mujoco.mjtGain, f"mjGAIN_{name}") for name in ("FIXED", "AFFINE", "MUSCLE", "DCMOTOR"))
_BIASES = tuple(getattr(mujoco.mjtBias, f"mjBIAS_{name}") for name in ("NONE", "AFFINE", "MUSCLE", "DCMOTOR"))


def read_tendons(source: MjSource) -> list[Tendon]:
    """All tendons, in MuJoCo's order, and one for each slider-crank that an actuator drives."""
    model = source.model
    source.unsupported_nonzero("tendon", range(model.ntendon), "tendon", _UNSUPPORTED_TENDON_FIELDS)
    tendons = [_read_tendon(source, index) for index in range(model.ntendon)]
    cranks = np.flatnonzero(model.actuator_trntype == mujoco.mjtTrn.mjTRN_SLIDERCRANK)
    return tendons + [_read_crank(source, int(index)) for index in cranks]


def _crank_name(source: MjSource, index: int) -> str:
    return f"{source.names['actuator'][index]}:crank"


def _read_crank(source: MjSource, index: int) -> Tendon:
    model = source.model
    pin, slider = (source.names["site"][site] for site in model.actuator_trnid[index])
    path = [TendonPoint("site", slider), TendonPoint("site", pin)]
    return Tendon(_crank_name(source, index), path=path, rod=float(model.actuator_cranklength[index]))


def _read_path(source: MjSource, index: int) -> list[TendonPoint]:
    """Sites, shapes and pulleys of a spatial tendon."""
    model, names = source.model, source.names
    first, points = model.tendon_adr[index], []
    for place in range(first, first + model.tendon_num[index]):
        kind, target, value = mujoco.mjtWrap(model.wrap_type[place]), model.wrap_objid[place], model.wrap_prm[place]
        if kind == mujoco.mjtWrap.mjWRAP_PULLEY:
            points.append(TendonPoint("pulley", divisor=float(value)))
        elif kind == mujoco.mjtWrap.mjWRAP_SITE:
            points.append(TendonPoint("site", names["site"][target]))
        else:
            side = names["site"][round(value)] if value >= 0 else None
            points.append(TendonPoint("shape", names["geom"][target], side))
    return points


def _read_tendon(source: MjSource, index: int) -> Tendon:
    model = source.model
    path = slice(model.tendon_adr[index], model.tendon_adr[index] + model.tendon_num[index])
    fixed = bool(np.all(model.wrap_type[path] == mujoco.mjtWrap.mjWRAP_JOINT))
    limited = bool(model.tendon_limited[index]) and not source.disabled("limit")
    return Tendon(
        name=source.names["tendon"][index],
        joints=[source.names["joint"][joint] for joint in model.wrap_objid[path]] if fixed else [],
        coefficients=model.wrap_prm[path].copy() if fixed else np.zeros(0),
        path=[] if fixed else _read_path(source, index),
        stiffness=0.0 if source.disabled("spring") else float(model.tendon_stiffness[index]),
        damping=0.0 if source.disabled("damper") else float(model.tendon_damping[index]),
        armature=float(model.tendon_armature[index]),
        spring_range=interval(model.tendon_lengthspring[index]),
        limit=interval(model.tendon_range[index]) if limited else None,
        limit_margin=float(model.tendon_margin[index]),
        limit_solref=model.tendon_solref_lim[index].copy(),
        limit_solimp=model.tendon_solimp_lim[index].copy(),
        friction_loss=0.0 if source.disabled("frictionloss") else float(model.tendon_frictionloss[index]),
        friction_solref=model.tendon_solref_fri[index].copy(),
        friction_solimp=model.tendon_solimp_fri[index].copy(),
    )


def read_actuators(source: MjSource) -> list[Actuator]:
    """Actuators that can be modeled, in MuJoCo's order; the others are noted as unsupported and left out."""
    model = source.model
    source.unsupported_nonzero("actuator", range(model.nactuator), "actuator", _UNSUPPORTED_ACTUATOR_FIELDS)
    if model.nactuator and source.disabled("actuation"):
        source.unsupported("option", "flag actuation", "actuation cannot be switched off; remove the actuators")
    actuators = []
    for index in range(model.nactuator):
        troubles = list(_actuator_troubles(source, index))
        for attribute, reason in troubles:
            source.unsupported(source.path("actuator", index), attribute, reason)
        if not troubles:
            actuators.append(_read_actuator(source, index))
    return actuators


def _actuator_troubles(source: MjSource, index: int) -> Iterator[tuple[str, str]]:
    """Yields (attribute, reason) for all that keeps an actuator from being read."""
    model = source.model
    group = int(model.actuator_group[index])
    if 0 <= group < 31 and model.opt.disableactuator & (1 << group):
        yield "group", f"group {group} is disabled; remove its actuators instead"
    if model.actuator_plugin[index] >= 0:
        yield "plugin", "engine plugins are not modeled"
    transmission = mujoco.mjtTrn(model.actuator_trntype[index])
    target, reference = model.actuator_trnid[index]
    if transmission not in _TRANSMISSIONS:
        yield f"transmission {_word(transmission)}", "modeled are joints, tendons, slider-cranks, sites and bodies"
    elif transmission == mujoco.mjtTrn.mjTRN_SITE and reference >= 0:
        yield "refsite", "site transmissions are modeled in the site's own frame"
    elif transmission == mujoco.mjtTrn.mjTRN_JOINTINPARENT and joint_kind(source, target) in ("ball", "free"):
        yield "jointinparent", "ball and free joints are driven in the child's frame"
    elif transmission == mujoco.mjtTrn.mjTRN_BODY:
        yield from _adhesion_troubles(model, index)
    for field, supported in (("dyntype", _DYNAMICS), ("gaintype", _GAINS), ("biastype", _BIASES)):
        enum = {"dyntype": mujoco.mjtDyn, "gaintype": mujoco.mjtGain, "biastype": mujoco.mjtBias}[field]
        value = enum(getattr(model, f"actuator_{field}")[index])
        if value not in supported:
            yield f"{field} {_word(value)}", f"modeled are {', '.join(map(_word, supported))}"

    if model.actuator_gaintype[index] == mujoco.mjtGain.mjGAIN_DCMOTOR:
        yield from _motor_troubles(model, index)
    gain, bias = _muscular(model, index)
    if (gain or bias) and transmission == mujoco.mjtTrn.mjTRN_SITE:
        yield "muscle", "muscles at sites are not modeled"
    if gain and bias and not np.array_equal(model.actuator_gainprm[index, :9], model.actuator_biasprm[index, :9]):
        yield "biasprm", "a muscle's active and passive force have the same parameters"


def _motor_troubles(model: mujoco.MjModel, index: int) -> Iterator[tuple[str, str]]:
    gain, dynamics = model.actuator_gainprm[index], model.actuator_dynprm[index]
    types = (model.actuator_biastype[index], model.actuator_dyntype[index])
    if types != (mujoco.mjtBias.mjBIAS_DCMOTOR, mujoco.mjtDyn.mjDYN_DCMOTOR):
        yield "biastype, dyntype", "a dcmotor's gain, bias and dynamics are modeled together only"
    if _TRANSMISSIONS.get(mujoco.mjtTrn(model.actuator_trntype[index])) not in ("joint", "tendon"):
        yield "dcmotor", "motors are modeled at joints, tendons and slider-cranks"
    if dynamics[1] > 0:
        yield "saturation", "a limit on the rate of a motor's current is not modeled"
    if dynamics[2] > 0 or gain[2]:
        yield "thermal", "a motor's temperature is not modeled"
    if dynamics[5] > 0:
        yield "lugre", "a motor's bristle friction is not modeled; use the joint's frictionloss"
    if gain[4:].any() or dynamics[7:].any() or model.actuator_ctrlnum[index] != 1:
        yield "controller, input", "a motor's control is its voltage; its own controller is not modeled"


def _adhesion_troubles(model: mujoco.MjModel, index: int) -> Iterator[tuple[str, str]]:
    if model.actuator_trnid[index, 0] == 0:
        yield "body", "adhesion of the world is not modeled; name the bodies that touch it"
    affine_gain = model.actuator_gaintype[index] == mujoco.mjtGain.mjGAIN_AFFINE
    affine_bias = model.actuator_biastype[index] == mujoco.mjtBias.mjBIAS_AFFINE
    varying = affine_gain and model.actuator_gainprm[index, 1:3].any()
    if varying or (affine_bias and model.actuator_biasprm[index, 1:3].any()):
        yield "gainprm, biasprm", "adhesion that depends on the velocity of its contacts is not modeled"
    if any(_muscular(model, index)) or model.actuator_dyntype[index] == mujoco.mjtDyn.mjDYN_MUSCLE:
        yield "muscle", "a body's adhesion is no muscle"


def _muscular(model: mujoco.MjModel, index: int) -> tuple[bool, bool]:
    """Whether an actuator's gain and bias are a muscle's."""
    gain = model.actuator_gaintype[index] == mujoco.mjtGain.mjGAIN_MUSCLE
    return bool(gain), bool(model.actuator_biastype[index] == mujoco.mjtBias.mjBIAS_MUSCLE)


def _read_motor(model: mujoco.MjModel, index: int) -> DcMotor | None:
    if model.actuator_gaintype[index] != mujoco.mjtGain.mjGAIN_DCMOTOR:
        return None
    resistance, constant = model.actuator_gainprm[index, :2]
    force, number, phase = (float(x) for x in model.actuator_biasprm[index, :3])
    return DcMotor(float(resistance), float(constant), (force, number, phase))


def _dynamics(model: mujoco.MjModel, index: int) -> str:
    """A motor without inductance has none."""
    found = _DYNAMICS[mujoco.mjtDyn(model.actuator_dyntype[index])]
    return "none" if found == "current" and not model.actuator_actnum[index] else found


def _read_muscle(model: mujoco.MjModel, index: int) -> Muscle | None:
    active, passive = _muscular(model, index)
    if not active and not passive:
        return None
    prm = (model.actuator_gainprm if active else model.actuator_biasprm)[index]
    force = prm[2] if prm[2] >= 0 else prm[3] / max(1e-15, model.actuator_acc0[index])
    return Muscle(
        force=float(force),
        range=interval(prm[:2]),
        length_range=interval(model.actuator_lengthrange[index]),
        **{name: float(prm[4 + k]) for k, name in enumerate(("lmin", "lmax", "vmax", "fpmax", "fvmax"))},
        active=active,
        passive=passive,
    )


def _word(value: Enum) -> str:
    """The MJCF word of an enum value, e.g. mjDYN_FILTER → "filter"."""
    return value.name.split("_", 1)[1].lower()


def _read_actuator(source: MjSource, index: int) -> Actuator:
    model = source.model
    transmission = _TRANSMISSIONS[mujoco.mjtTrn(model.actuator_trntype[index])]
    control = model.actuator_ctrladr[index]
    affine_gain = model.actuator_gaintype[index] == mujoco.mjtGain.mjGAIN_AFFINE
    affine_bias = model.actuator_biastype[index] == mujoco.mjtBias.mjBIAS_AFFINE
    gain = model.actuator_gainprm[index, :3]
    muscle, dynamics = _read_muscle(model, index), model.actuator_dynprm[index]
    motor = _read_motor(model, index)
    crank = model.actuator_trntype[index] == mujoco.mjtTrn.mjTRN_SLIDERCRANK
    target = _crank_name(source, index) if crank else source.names[transmission][model.actuator_trnid[index, 0]]
    clamped = bool(model.actuator_ctrllimited[control]) and not source.disabled("clampctrl")
    return Actuator(
        name=source.names["actuator"][index],
        transmission=transmission,
        target=target,
        gear=model.actuator_gear[model.actuator_outadr[index]].copy(),
        gain=gain.copy() if affine_gain else np.array([0.0 if muscle or motor else gain[0], 0.0, 0.0]),
        bias=model.actuator_biasprm[index, :3].copy() if affine_bias else np.zeros(3),
        dynamics=_dynamics(model, index),
        time_constant=float(dynamics[0]),
        deactivation_time=float(dynamics[1]),
        activation_smoothing=float(dynamics[2]),
        control_range=interval(model.actuator_ctrlrange[control]) if clamped else None,
        force_range=interval(model.actuator_forcerange[index]) if model.actuator_forcelimited[index] else None,
        activation_range=interval(model.actuator_actrange[index]) if model.actuator_actlimited[index] else None,
        activation_early=bool(model.actuator_actearly[index]),
        muscle=muscle,
        motor=motor,
    )


def add_rotors(source: MjSource, scene: Scene) -> None:
    """Adds the armature and damping that actuators bring to the joints and tendons they act on, times gear²."""
    model = source.model
    joints, tendons = ({item.name: item for item in list_} for list_ in (scene.joints, scene.tendons))
    for index in range(model.nactuator):
        brought = {"armature": model.actuator_armature[index], "damping": model.actuator_damping[index]}
        if not any(brought.values()):
            continue
        transmission, target = mujoco.mjtTrn(model.actuator_trntype[index]), model.actuator_trnid[index, 0]
        items = {mujoco.mjtTrn.mjTRN_TENDON: ("tendon", tendons), mujoco.mjtTrn.mjTRN_JOINT: ("joint", joints)}
        kind, known = items.get(transmission, ("", {}))
        item = known.get(source.names[kind][target]) if kind else None
        if item is None or (isinstance(item, Joint) and item.kind not in ("hinge", "slide")):
            for name, value in brought.items():
                if value:
                    reason = f"{name} brought by an actuator is modeled at hinges, slides and tendons"
                    source.unsupported(source.path("actuator", index), name, reason)
            continue
        square = float(model.actuator_gear[model.actuator_outadr[index], 0]) ** 2
        item.armature += square * float(brought["armature"])
        item.damping += 0.0 if source.disabled("damper") else square * float(brought["damping"])
