"""Joints, drives, actuators, tendons and equalities of a scene → prims."""

from __future__ import annotations

from typing import Any

import numpy as np
from pxr import Gf, Usd, UsdGeom, UsdPhysics

from warpsim.core.numpy_quaternions import unit
from warpsim.io.usd import author
from warpsim.io.usd.export.bodies import mark_joint_collisions, zero_frame
from warpsim.io.usd.export.state import Export
from warpsim.io.usd.frames import Pose
from warpsim.io.usd.state_names import D6_AXES
from warpsim.io.usd.units import DEGREE
from warpsim.scene import Actuator, Body, Drive, Equality, Joint, Tendon
from warpsim.scene.defaults import DEFAULT_SOLIMP, DEFAULT_SOLREF


def add_joints(export: Export, body: Body, joints: list[Joint]) -> None:
    """Adds the joint prims between a body and its parent, under the body's prim; bodies stand at their zero poses."""
    child, parent = export.prims[("body", body.name)], export.body(body.parent)
    if not joints:
        prim = author.fixed(child, export.name(child, "Fixed"), parent, child)
        mark_joint_collisions(export, prim, body.parent, body.name)
    for place, joint in enumerate(joints):
        if joint.kind == "free":
            export.prims[("joint", joint.name)] = child
            for field in ("stiffness", "damping", "armature", "friction_loss"):
                if getattr(joint, field):
                    export.lost("joint", joint.name, field, "USD has no joint on a free body that could hold it")
            continue
        frame = zero_frame(joints, place)
        prim = _joint(export, joint, parent, child, frame)
        mark_joint_collisions(export, prim, body.parent, body.name)
        export.prims[("joint", joint.name)] = prim


def _joint(export: Export, joint: Joint, parent: Usd.Prim | None, child: Usd.Prim, frame: Pose) -> Usd.Prim:
    to_world = UsdGeom.XformCache().GetLocalToWorldTransform(child)
    anchor = to_world.Transform(Gf.Vec3d(*map(float, frame.apply(joint.anchor))))
    name = export.name(child, joint.name)
    options = {"anchor": anchor, "attributes": _passive(joint)}
    if joint.kind == "ball":
        prim = author.spherical(child, name, parent, child, **options)
        if joint.limit is not None:
            angle = joint.limit[1] / DEGREE
            author.set_attributes(prim, {"physics:coneAngle0Limit": angle, "physics:coneAngle1Limit": angle})
        return prim
    angular = joint.kind == "hinge"
    limits = None
    if joint.limit is not None:
        per = DEGREE if angular else 1.0
        limits = (joint.limit[0] / per, joint.limit[1] / per)
    make = author.revolute if angular else author.prismatic
    return make(child, name, parent, child, frame.matrix @ unit(np.asarray(joint.axis)), limits=limits, **options)


def _passive(joint: Joint) -> dict[str, Any]:
    per = DEGREE if joint.kind != "slide" else 1.0
    values: dict[str, Any] = {
        "newton:armature": joint.armature or None,
        "newton:damping": joint.damping * per or None,
        "newton:friction": joint.friction_loss or None,
        "mjc:stiffness": joint.stiffness or None,
        "mjc:margin": joint.limit_margin or None,
    }
    if joint.stiffness and joint.kind in ("hinge", "slide"):
        values["mjc:springref"] = joint.reference if joint.rest is None else joint.rest[0]
    if joint.actuator_force_limit is not None:
        low, high = joint.actuator_force_limit
        values |= {"mjc:actuatorfrcrange:min": low, "mjc:actuatorfrcrange:max": high}
    for field in ("limit", "friction"):
        values[f"mjc:solref{field}"] = _unless(getattr(joint, f"{field}_solref"), DEFAULT_SOLREF)
        values[f"mjc:solimp{field}"] = _unless(getattr(joint, f"{field}_solimp"), DEFAULT_SOLIMP)
    return values


def _unless(value: np.ndarray, default: tuple[float, ...]) -> np.ndarray | None:
    return None if np.array_equal(value, default) else value


def add_initial_state(export: Export, joint: Joint) -> None:
    """Double arrays beside the poses, which are less exact."""
    prim = export.prims[("joint", joint.name)]
    author.set_attributes(prim, {"warpsim:q": joint.initial_q, "warpsim:qd": joint.initial_qd})


def add_drive(export: Export, drive: Drive) -> None:
    """Adds a DriveAPI to the joint's prim."""
    if drive.axis is None:
        joint = next(joint for joint in export.scene.joints if joint.name == drive.joint)
        angular = joint.kind == "hinge"
        prim, token = export.prims[("joint", drive.joint)], "angular" if angular else "linear"
    elif ("equality", drive.joint) in export.prims:
        angular = drive.axis >= 3
        prim, token = export.prims[("equality", drive.joint)], D6_AXES[drive.axis]
    else:
        export.lost("drive", drive.name, "joint", f"equality {drive.joint!r} is not in the file")
        return
    per = DEGREE if angular else 1.0
    settings = {
        "stiffness": drive.stiffness * per,
        "damping": drive.damping * per,
        "target": drive.target / per,
        "target_velocity": drive.target_velocity / per,
        "max_force": drive.max_force if np.isfinite(drive.max_force) else None,
        "type": "acceleration" if drive.acceleration else "force",
    }
    author.drive(prim, token, settings)


def add_tendon(export: Export, tendon: Tendon) -> None:
    """Adds an MjcTendon; a slider-crank is written with its actuators."""
    if tendon.rod > 0:
        if tendon.stiffness or tendon.damping or tendon.limit is not None or tendon.friction_loss:
            export.lost("tendon", tendon.name, "rod", "a slider-crank has neither spring, damper, limit nor friction")
        return
    if any((p.kind, p.name) not in export.prims for p in tendon.path if p.kind != "pulley"):
        export.lost("tendon", tendon.name, "path", "it runs over a shape that is not in the file")
        return
    parent = _scope(export, "Tendons")
    prim = parent.GetStage().DefinePrim(parent.GetPath().AppendChild(export.name(parent, tendon.name)), "MjcTendon")
    values = {
        **(_spatial(export, prim, tendon) if tendon.path else _fixed(export, prim, tendon)),
        "mjc:stiffness": tendon.stiffness or None,
        "mjc:damping": tendon.damping or None,
        "mjc:armature": tendon.armature or None,
        "mjc:frictionloss": tendon.friction_loss or None,
        "mjc:margin": tendon.limit_margin or None,
        "mjc:springlength": tendon.spring_range,
    }
    if tendon.limit is not None:
        values |= {"mjc:range:min": tendon.limit[0], "mjc:range:max": tendon.limit[1]}
    for field in ("limit", "friction"):
        values[f"mjc:solref{field}"] = _unless(getattr(tendon, f"{field}_solref"), DEFAULT_SOLREF)
        values[f"mjc:solimp{field}"] = _unless(getattr(tendon, f"{field}_solimp"), DEFAULT_SOLIMP)
    author.set_attributes(prim, values)
    export.prims[("tendon", tendon.name)] = prim


def _fixed(export: Export, prim: Usd.Prim, tendon: Tendon) -> dict[str, Any]:
    targets = [export.prims[("joint", name)].GetPath() for name in tendon.joints]
    prim.CreateRelationship("mjc:path", custom=False).SetTargets(targets)
    return {"mjc:type": "fixed", "mjc:path:coef": tendon.coefficients, "mjc:path:indices": range(len(targets))}


def _spatial(export: Export, prim: Usd.Prim, tendon: Tendon) -> dict[str, Any]:
    """The path as `spatial_tendons` reads it."""
    places: dict[Any, int] = {}
    sides: dict[Any, int] = {}
    order, segments, side, divisors = [], [], [], [1.0]
    for n, point in enumerate(tendon.path):
        if point.kind == "pulley":
            divisors = [point.divisor] if n == 0 else [*divisors, point.divisor]
            continue
        order.append(places.setdefault(export.prims[(point.kind, point.name)].GetPath(), len(places)))
        segments.append(len(divisors) - 1)
        beside = export.prims[("site", point.side)].GetPath() if point.side is not None else None
        side.append(-1 if beside is None else sides.setdefault(beside, len(sides)))
    prim.CreateRelationship("mjc:path", custom=False).SetTargets(list(places))
    if sides:
        prim.CreateRelationship("mjc:sideSites", custom=False).SetTargets(list(sides))
    return {
        "mjc:type": "spatial",
        "mjc:path:indices": order,
        "mjc:path:segments": segments,
        "mjc:path:divisors": divisors,
        "mjc:sideSites:indices": side if sides else None,
    }


def _muscle(actuator: Actuator) -> dict[str, Any]:
    """Attributes of a muscle's law."""
    x = actuator.muscle
    if x is None:
        return {}
    law = [*x.range, x.force, 200.0, x.lmin, x.lmax, x.vmax, x.fpmax, x.fvmax]
    active = {"mjc:gainType": "muscle", "mjc:gainPrm": law} if x.active else {}
    passive = {"mjc:biasType": "muscle", "mjc:biasPrm": law} if x.passive else {}
    return {
        **active,
        **passive,
        "mjc:lengthRange:min": x.length_range[0],
        "mjc:lengthRange:max": x.length_range[1],
    }


def _motor(actuator: Actuator) -> dict[str, Any]:
    """Attributes of a motor's law."""
    x = actuator.motor
    if x is None:
        return {}
    return {
        **{f"mjc:{name}": "dcmotor" for name in ("gainType", "biasType", "dynType")},
        "mjc:gainPrm": [x.resistance, x.constant],
        "mjc:biasPrm": x.cogging,
        "mjc:dynPrm": [actuator.time_constant] if actuator.dynamics == "current" else None,
    }


def _scope(export: Export, name: str) -> Usd.Prim:
    key = ("scope", name)
    if key not in export.prims:
        export.prims[key] = author.frame(export.world, export.name(export.world, name))
    return export.prims[key]


def _constants(actuator: Actuator) -> list[float] | None:
    """Of the activation's dynamics."""
    if actuator.dynamics == "muscle":
        return [actuator.time_constant, actuator.deactivation_time, actuator.activation_smoothing]
    return [actuator.time_constant] if actuator.dynamics.startswith("filter") else None


def add_actuator(export: Export, actuator: Actuator) -> None:
    """Adds an MjcActuator."""
    parent = _scope(export, "Actuators")
    target = export.prims.get((actuator.transmission, actuator.target))
    rods = {tendon.name: tendon for tendon in export.scene.tendons if tendon.rod > 0}
    crank = rods.get(actuator.target) if actuator.transmission == "tendon" else None
    if crank is not None:
        target = export.prims[("site", crank.path[1].name)]
    if target is None:
        export.lost("actuator", actuator.name, "transmission", "what it acts on is not in the file")
        return
    attributes: dict[str, Any] = {
        "mjc:gainType": "affine" if np.any(actuator.gain[1:]) else None,
        "mjc:dynType": actuator.dynamics if actuator.dynamics not in ("none", "current") else None,
        "mjc:dynPrm": _constants(actuator),
        "mjc:actEarly": actuator.activation_early or None,
        **_muscle(actuator),
        **_motor(actuator),
        "mjc:crankLength": crank.rod if crank is not None else None,
    }
    if actuator.activation_range is not None:
        low, high = actuator.activation_range
        attributes |= {"mjc:actRange:min": low, "mjc:actRange:max": high}
    if actuator.transmission == "joint" and target.HasAPI(UsdPhysics.RigidBodyAPI):
        export.lost("actuator", actuator.name, "target", "USD cannot point at a free body's joint")
        return
    bias = actuator.bias + np.array([0.0, 0.0, actuator.damping_ratio])
    if actuator.bias[2] > 0 and actuator.gain[0] == -actuator.bias[1]:
        export.lost("actuator", actuator.name, "bias", "a positive third number would be read as a damping ratio")
    prim = export.prims[("actuator", actuator.name)] = author.actuator(
        parent,
        export.name(parent, actuator.name),
        target,
        gear=actuator.gear,
        gain=actuator.gain.tolist() if actuator.motor is None else None,
        bias=bias.tolist() if np.any(bias) else None,
        control_range=actuator.control_range,
        force_range=actuator.force_range,
        attributes=attributes,
    )
    if crank is not None:
        slider = export.prims[("site", crank.path[0].name)].GetPath()
        prim.CreateRelationship("mjc:sliderSite", custom=False).SetTargets([slider])
    if actuator.initial_activation:
        export.lost("actuator", actuator.name, "initial_activation", "there is no attribute for it")


def add_equality(export: Export, equality: Equality) -> None:
    """Adds a joint that closes a loop, or a mimic joint; bodies stand at their zero poses."""
    softness = {"mjc:solref": equality.solref, "mjc:solimp": equality.solimp}
    if not equality.active:
        export.lost("equality", equality.name, "active", "switched off, so it is left out")
    elif equality.kind == "joint" and equality.b is not None:
        prim = export.prims[("joint", str(equality.a))]
        prim.CreateRelationship("mjc:target", custom=False).SetTargets([export.prims[("joint", equality.b)].GetPath()])
        author.set_attributes(prim, {f"mjc:coef{power}": value for power, value in enumerate(equality.polynomial)})
        author.set_attributes(prim, softness)
    elif equality.kind == "distance" and equality.anchor_b is not None:
        _hold(export, equality, "PhysicsDistanceJoint", softness)
    elif equality.kind == "connect" and equality.anchor_b is not None:
        _hold(export, equality, "PhysicsSphericalJoint", softness)
    elif equality.kind == "weld" and equality.relative_pose is not None:
        _hold(export, equality, "PhysicsFixedJoint", softness)
    elif equality.kind == "axes" and equality.relative_pose is not None:
        _hold_axes(export, equality, softness)
    else:
        export.lost("equality", equality.name, equality.kind, "USD has no joint for it as it is given")


def _hold_axes(export: Export, equality: Equality, softness: dict[str, Any]) -> None:
    softness = {
        **softness,
        "mjc:solreflimit": _unless(equality.limit_solref, DEFAULT_SOLREF),
        "mjc:solimplimit": _unless(equality.limit_solimp, DEFAULT_SOLIMP),
    }
    cone = np.isfinite(equality.turn_limit)
    if cone and equality.locked == (True, True, True, False, False, False):
        prim, angle = _hold(export, equality, "PhysicsSphericalJoint", softness), equality.turn_limit / DEGREE
        author.set_attributes(prim, {"physics:coneAngle0Limit": angle, "physics:coneAngle1Limit": angle})
        return
    prim = _hold(export, equality, "PhysicsJoint", softness)
    export.prims[("equality", equality.name)] = prim
    if cone:
        export.lost("equality", equality.name, "turn_limit", "only a joint without slides can hold it")
    for axis, (token, held) in enumerate(zip(D6_AXES, equality.locked, strict=True)):
        bounds = (1.0, -1.0) if held else equality.limits[axis] / (DEGREE if axis >= 3 else 1.0)
        sides = {"low": bounds[0], "high": bounds[1]}
        values = {f"limit:{token}:physics:{side}": bound for side, bound in sides.items() if np.isfinite(bound)}
        if values:
            UsdPhysics.LimitAPI.Apply(prim, token)
            author.set_attributes(prim, values)


def _hold(export: Export, equality: Equality, kind: str, softness: dict[str, Any]) -> Usd.Prim:
    parent = _scope(export, "Loops")
    prim = parent.GetStage().DefinePrim(parent.GetPath().AppendChild(export.name(parent, equality.name)), kind)
    joint = UsdPhysics.Joint(prim)
    for name, make in ((equality.a, joint.CreateBody0Rel), (equality.b, joint.CreateBody1Rel)):
        if name is not None:
            make().SetTargets([export.prims[("body", name)].GetPath()])
    values: dict[str, Any] = {"physics:excludeFromArticulation": True, "physics:collisionEnabled": True}
    if equality.kind in ("weld", "axes") and equality.relative_pose is not None:
        pose = Pose(equality.relative_pose[:3], unit(equality.relative_pose[3:]))
        frame = pose @ Pose(equality.anchor, equality.axes)
        values |= {"physics:localPos0": frame.position, "physics:localRot0": frame.rotation}
        values |= {"physics:localPos1": equality.anchor, "physics:localRot1": equality.axes}
        if equality.torque_scale != 1.0:
            export.lost("equality", equality.name, "torque_scale", "there is no attribute for it")
    else:
        values |= {"physics:localPos0": equality.anchor, "physics:localPos1": equality.anchor_b}
    if equality.kind == "distance":
        low, high = equality.distance_range
        values |= {"physics:minDistance": low, "physics:maxDistance": high if np.isfinite(high) else None}
    author.set_attributes(prim, {**values, **softness})
    return prim
