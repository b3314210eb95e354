"""What is known of attributes by their name: unit, range, and the values that mean "not set"."""

from __future__ import annotations

import re

import numpy as np

from warpsim.io.usd.units import StageUnits

_LENGTHS = {1.0: "m", 0.01: "cm", 0.001: "mm", 1000.0: "km", 0.0254: "in", 0.3048: "ft"}
_MASSES = {1.0: "kg", 0.001: "g", 1000.0: "t"}

# {L}, {M}: the stage's units; {F} force, {T} torque or force, {G} gain per {A}, {A} the joint's coordinate
_UNITS = (
    (r"physics:velocity", "{L}/s"),
    (r"physics:angularVelocity", "deg/s"),
    (r"physics:mass", "{M}"),
    (r"physics:density|mjc:option:density", "{M}/{L}³"),
    (r"physics:diagonalInertia|newton:inertia", "{M}·{L}²"),
    (r"physics:(centerOfMass|localPos[01]|minDistance|maxDistance)", "{L}"),
    (r"physics:coneAngle[01]Limit", "deg"),
    (r"physics:gravityMagnitude", "{L}/s²"),
    (r"physics:(lower|upper)Limit|limit:.*:physics:(low|high)", "{A}"),
    (r"drive:.*:physics:targetPosition|state:.*:physics:position", "{A}"),
    (r"drive:.*:physics:targetVelocity|state:.*:physics:velocity", "{A}/s"),
    (r"drive:.*:physics:stiffness", "{T}/{A}"),
    (r"drive:.*:physics:damping|newton:damping|physxJointAxis:.*", "{T}·s/{A}"),
    (r"drive:.*:physics:maxForce|newton:(friction|maxEffort)|mjc:(frictionloss|forceRange:.*)", "{T}"),
    (r"(newton|mjc|physxJoint):armature", "{I}"),
    (r"mjc:stiffness", "{T}/{R}"),
    (r"mjc:damping", "{T}·s/{R}"),
    (r"mjc:springref", "{R}"),
    (r"newton:(torsionalFriction|rollingFriction|contactMargin|contactGap)|mjc:(margin|gap)", "{L}"),
    (r"newton:contactStiffness", "1/s²"),
    (r"newton:contactDamping", "1/s"),
    (r"mjc:option:viscosity", "{M}/({L}·s)"),
    (r"mjc:option:wind", "{L}/s"),
    (r"mjc:option:timestep", "s"),
    (r"radius(Top|Bottom)?|height|size|xformOp:translate.*", "{L}"),
    (r"xformOp:rotate.*", "deg"),
)

_POSITIVE = re.compile(r"physics:(mass|density|diagonalInertia)|radius(Top|Bottom)?|height|size|mjc:option:timestep$")
_NOT_NEGATIVE = re.compile(
    r"physics:(dynamicFriction|staticFriction|gravityMagnitude)|drive:.*:physics:(stiffness|damping|maxForce)|"
    r"newton:(armature|friction|damping|contactStiffness|contactDamping|torsionalFriction|rollingFriction|maxEffort)|"
    r"(mjc|physxJoint):(armature|frictionloss|jointFriction|damping|stiffness)|mjc:option:(density|viscosity)$"
)

_NOT_SET = {
    "physics:mass": "0 means 'not set': the mass follows from the colliders; author a mass on the prim",
    "physics:density": "0 means 'not set': a body's, a material's or 1000 kg/m³ counts; author a density on the prim",
    "physics:centerOfMass": "it is not set: the center follows from the colliders; author a finite one",
    "physics:diagonalInertia": "0 means 'not set': the inertia follows from the colliders; author one",
    "physics:principalAxes": "it is not set: the axes are the body's; author (1, 0, 0, 0) and a diagonalInertia",
    "physics:gravityMagnitude": "a negative value means earth's gravity; author it, e.g. 9.81 m/s² in stage units",
    "physics:gravityDirection": "(0, 0, 0) means downward; author a direction, e.g. (0, 0, -1)",
}


def unit_of(name: str, units: StageUnits, angular: bool) -> str:
    """The unit of an attribute's value in words; "" for pure numbers.

    Args:
        name: Of the attribute.
        units: The stage's.
        angular: Whether the joint the attribute is on turns (else it slides).
    """
    length, mass = _LENGTHS.get(units.length, f"({units.length:g} m)"), _MASSES.get(units.mass, f"({units.mass:g} kg)")
    force = "N" if (length, mass) == ("m", "kg") else f"{mass}·{length}/s²"
    torque = "N·m" if (length, mass) == ("m", "kg") else f"{mass}·{length}²/s²"
    words = {
        "L": length,
        "M": mass,
        "T": torque if angular else force,
        "A": "deg" if angular else length,
        "R": "rad" if angular else length,
        "I": f"{mass}·{length}²" if angular else mass,
    }
    for pattern, unit in _UNITS:
        if re.fullmatch(pattern, name):
            return unit.format(**words)
    return ""


def bounds_of(name: str) -> tuple[float, float]:
    """The least and largest value that means something."""
    if name == "physics:restitution":
        return 0.0, 1.0
    if _POSITIVE.match(name):
        return float(np.finfo(np.float64).tiny), np.inf
    return (0.0, np.inf) if _NOT_NEGATIVE.match(name) else (-np.inf, np.inf)


def not_set(name: str) -> str:
    """What to do about a value that means "not set"; "" where no value does."""
    return _NOT_SET.get(name, "")
