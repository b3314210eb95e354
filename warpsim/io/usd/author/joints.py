"""Joints with frames computed from where the bodies stand, drives, sites and actuators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from pxr import Gf, Usd, UsdGeom, UsdPhysics

from warpsim.core.errors import InputError
from warpsim.io.usd.author.attributes import set_attributes
from warpsim.io.usd.author.stages import Vector, define, place

_DRIVE_KEYS = {
    "stiffness": "stiffness",
    "damping": "damping",
    "target": "targetPosition",
    "target_velocity": "targetVelocity",
    "max_force": "maxForce",
    "type": "type",
}


def _joint(
    kind: str,
    parent: Usd.Prim,
    name: str,
    body0: Usd.Prim | None,
    body1: Usd.Prim,
    *,
    anchor: Vector | None = None,
    turn: Gf.Quatd | None = None,
    collides: bool = False,
    closes_loop: bool = False,
    attributes: Mapping[str, Any] | None = None,
) -> Usd.Prim:
    """A joint whose two frames coincide now: both sit at the anchor, turned by `turn` in body1's frame."""
    prim = define(parent, name, kind)
    joint = UsdPhysics.Joint(prim)
    cache = UsdGeom.XformCache()
    pose1 = cache.GetLocalToWorldTransform(body1)
    point = Gf.Vec3d(*map(float, anchor)) if anchor is not None else pose1.ExtractTranslation()
    turn = turn or Gf.Quatd(1.0)
    in_world = _rotation(pose1) * turn
    for index, end in ((0, body0), (1, body1)):
        pose = cache.GetLocalToWorldTransform(end) if end is not None else Gf.Matrix4d(1.0)
        local_point = pose.GetInverse().Transform(point)
        local_turn = _rotation(pose).GetInverse() * in_world
        if end is not None:
            (joint.CreateBody0Rel() if index == 0 else joint.CreateBody1Rel()).SetTargets([end.GetPath()])
        imaginary = local_turn.GetImaginary()
        set_attributes(
            prim,
            {
                f"physics:localPos{index}": local_point,
                f"physics:localRot{index}": (local_turn.GetReal(), *imaginary),
            },
        )
    set_attributes(prim, {"physics:collisionEnabled": collides or None})
    set_attributes(prim, {"physics:excludeFromArticulation": closes_loop or None, **(attributes or {})})
    return prim


def _rotation(matrix: Gf.Matrix4d) -> Gf.Quatd:
    return matrix.RemoveScaleShear().ExtractRotationQuat().GetNormalized()


def _axis(axis: str | Vector) -> tuple[str, Gf.Quatd]:
    """(axis token, turn of the joint's frame in body1's) for a token or a vector in body1's frame."""
    if isinstance(axis, str):
        return axis, Gf.Quatd(1.0)
    vector = np.asarray(axis, dtype=float)
    if vector.shape != (3,) or not np.linalg.norm(vector) > 0:
        raise InputError(f"axis {axis!r} must be 'X', 'Y', 'Z' or three numbers that are not all zero")
    return "X", Gf.Rotation(Gf.Vec3d(1, 0, 0), Gf.Vec3d(*vector)).GetQuat()


def drive(prim: Usd.Prim, axis: str, settings: Mapping[str, Any]) -> None:
    """Applies a drive to a joint.

    Args:
        prim: The joint.
        axis: "angular", "linear", or "rotX" … "transZ" on a generic joint.
        settings: stiffness, damping (per degree on angular axes), target, target_velocity (degrees), max_force, type.
    """
    unknown = set(settings) - set(_DRIVE_KEYS)
    if unknown:
        raise InputError(f"drive of {prim.GetPath()}: unknown {sorted(unknown)}; use {', '.join(_DRIVE_KEYS)}")
    UsdPhysics.DriveAPI.Apply(prim, axis)
    set_attributes(prim, {f"drive:{axis}:physics:{_DRIVE_KEYS[key]}": value for key, value in settings.items()})


def _one_dof(kind: str, drive_axis: str, parent, name, body0, body1, axis, limits, drive_settings, options) -> Usd.Prim:
    token, turn = _axis(axis)
    prim = _joint(kind, parent, name, body0, body1, turn=turn, **options)
    low, high = limits if limits is not None else (None, None)
    set_attributes(prim, {"physics:axis": token, "physics:lowerLimit": low, "physics:upperLimit": high})
    if drive_settings is not None:
        drive(prim, drive_axis, drive_settings)
    return prim


def revolute(
    parent: Usd.Prim,
    name: str,
    body0: Usd.Prim | None,
    body1: Usd.Prim,
    axis: str | Vector,
    *,
    limits: tuple[float, float] | None = None,
    drive: Mapping[str, Any] | None = None,
    **options: Any,
) -> Usd.Prim:
    """A hinge, at zero where the bodies stand now.

    Args:
        parent: Prim the joint goes under.
        name: Of the joint.
        body0: The parent body; None is the world.
        body1: The child body.
        axis: "X", "Y", "Z" or a vector, in body1's frame.
        limits: Degrees.
        drive: Settings of an angular drive, see `drive`.
        options: anchor (a point in the world; body1's origin by default), collides (whether the two bodies do),
            closes_loop, attributes.
    """
    return _one_dof("PhysicsRevoluteJoint", "angular", parent, name, body0, body1, axis, limits, drive, options)


def prismatic(
    parent: Usd.Prim,
    name: str,
    body0: Usd.Prim | None,
    body1: Usd.Prim,
    axis: str | Vector,
    *,
    limits: tuple[float, float] | None = None,
    drive: Mapping[str, Any] | None = None,
    **options: Any,
) -> Usd.Prim:
    """A slide; arguments as for `revolute`, limits in stage units, the drive linear."""
    return _one_dof("PhysicsPrismaticJoint", "linear", parent, name, body0, body1, axis, limits, drive, options)


def fixed(parent: Usd.Prim, name: str, body0: Usd.Prim | None, body1: Usd.Prim, **options: Any) -> Usd.Prim:
    """Holds two bodies as they stand (body0 None: fixes a robot's base to the world); options as for `revolute`."""
    return _joint("PhysicsFixedJoint", parent, name, body0, body1, **options)


def spherical(parent: Usd.Prim, name: str, body0: Usd.Prim | None, body1: Usd.Prim, **options: Any) -> Usd.Prim:
    """A ball joint; options as for `revolute`."""
    return _joint("PhysicsSphericalJoint", parent, name, body0, body1, **options)


def distance(
    parent: Usd.Prim,
    name: str,
    body0: Usd.Prim | None,
    body1: Usd.Prim,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    **options: Any,
) -> Usd.Prim:
    """Keeps body1's anchor within a range of distances from body0's origin (the world's, if None)."""
    prim = _joint("PhysicsDistanceJoint", parent, name, body0, body1, **options)
    set_attributes(prim, {"physics:localPos0": (0, 0, 0)})
    set_attributes(prim, {"physics:minDistance": minimum, "physics:maxDistance": maximum})
    return prim


def generic(
    parent: Usd.Prim,
    name: str,
    body0: Usd.Prim | None,
    body1: Usd.Prim,
    *,
    limits: Mapping[str, tuple[float, float] | None],
    drives: Mapping[str, Mapping[str, Any]] | None = None,
    **options: Any,
) -> Usd.Prim:
    """A six-dof joint: axes in `limits` with a range are limited, with None locked; axes not named are free."""
    prim = _joint("PhysicsJoint", parent, name, body0, body1, **options)
    for axis, bounds in limits.items():
        low, high = bounds if bounds is not None else (1.0, -1.0)
        UsdPhysics.LimitAPI.Apply(prim, axis)
        set_attributes(prim, {f"limit:{axis}:physics:low": low, f"limit:{axis}:physics:high": high})
    for axis, settings in (drives or {}).items():
        drive(prim, axis, settings)
    return prim


def mimic(follower: Usd.Prim, leader: Usd.Prim, *, offset: float = 0.0, ratio: float = 1.0) -> None:
    """Makes a joint follow another: q = offset + ratio·q_leader (degrees on angular joints)."""
    set_attributes(follower, {"newton:mimicCoef0": offset, "newton:mimicCoef1": ratio})
    follower.CreateRelationship("newton:mimicJoint", custom=False).SetTargets([leader.GetPath()])


def site(parent: Usd.Prim, name: str, *, position: Vector = (0, 0, 0), rotation: Vector = (1, 0, 0, 0)) -> Usd.Prim:
    """A named frame on a body, for actuators and sensors."""
    prim = define(parent, name, "Xform")
    place(prim, position, rotation)
    prim.AddAppliedSchema("MjcSiteAPI")
    return prim


def sensor(
    parent: Usd.Prim,
    name: str,
    kind: str,
    target: Usd.Prim | None,
    *,
    target_kind: str | None = None,
    reference: Usd.Prim | None = None,
    reference_kind: str | None = None,
    noise: float = 0.0,
    cutoff: float = 0.0,
) -> Usd.Prim:
    """A sensor on a body, site, collider, joint, tendon or actuator; kinds as in `Scene.sensors`, e.g. "gyro"."""
    prim = define(parent, name, "Scope")
    for end, prim_there in (("target", target), ("reference", reference)):
        if prim_there is not None:
            prim.CreateRelationship(f"warpsim:sensor:{end}", custom=True).SetTargets([prim_there.GetPath()])
    values: dict[str, Any] = {"kind": kind, "targetKind": target_kind, "referenceKind": reference_kind}
    values |= {"noise": noise or None, "cutoff": cutoff or None}
    set_attributes(prim, {f"warpsim:sensor:{key}": value for key, value in values.items()})
    return prim


def actuator(
    parent: Usd.Prim,
    name: str,
    target: Usd.Prim,
    *,
    gear: Vector = (1, 0, 0, 0, 0, 0),
    gain: Vector | None = None,
    bias: Vector | None = None,
    control_range: tuple[float, float] | None = None,
    force_range: tuple[float, float] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> Usd.Prim:
    """An `MjcActuator` on a joint, tendon or site: force = gain·control + bias (constant, per length, per velocity)."""
    prim = define(parent, name, "MjcActuator")
    prim.CreateRelationship("mjc:target", custom=False).SetTargets([target.GetPath()])
    values: dict[str, Any] = {
        "mjc:gear": gear,
        "mjc:gainPrm": gain,
        "mjc:biasPrm": bias,
        "mjc:biasType": "affine" if bias is not None else None,
    }
    for key, bounds in (("ctrlRange", control_range), ("forceRange", force_range)):
        if bounds is not None:
            values |= {f"mjc:{key}:min": bounds[0], f"mjc:{key}:max": bounds[1]}
    set_attributes(prim, {**values, **(attributes or {})})
    return prim
