"""Joints outside the tree, and mimic joints → `Equality` constraints for the solver."""

from __future__ import annotations

import numpy as np
from pxr import Sdf, Usd

from warpsim.io.usd.context import Context
from warpsim.io.usd.drives import driven_dofs
from warpsim.io.usd.frames import Pose
from warpsim.io.usd.joints import JointSpec
from warpsim.io.usd.ledger_scan import applied_apis
from warpsim.io.usd.loop_axes import add_axes, compound, equality_softness, single
from warpsim.io.usd.units import DEGREE
from warpsim.scene import Equality

_PHYSX = "physxMimicJoint:"

HINGE_ARM = 0.1
"""m between the two points that hold a loop-closing hinge's axis."""


def add_loops(context: Context, specs: list[JointSpec], kinematic: set[Sdf.Path]) -> None:
    """Adds the constraints of joints that close loops (and of distance joints, which never open a branch)."""
    free = []
    for spec in specs:
        if all(end is None or end in kinematic for end in spec.ends):
            reason = "both ends move as they are told, so the joint cannot act"
            context.ledger.ignored(spec.prim, "physics:body0", reason)
        else:
            free.append(spec)
    for group in _groups(free):
        joint = compound(group) if len(group) > 1 else None
        if joint is not None:
            add_axes(context, joint)
            continue
        for spec in group:
            if len(group) > 1:
                reason = (
                    "several joints close a loop between these two bodies, and they are not a compound of slides, then "
                    "turns about one point at right angles: each holds on its own"
                )
                context.ledger.unsupported(spec.prim, spec.prim.GetTypeName(), reason)
            _add_loop(context, spec)


def _groups(specs: list[JointSpec]) -> list[list[JointSpec]]:
    """Joints with dofs between the same two bodies together, others alone, in order."""
    groups: list[list[JointSpec]] = []
    shared: dict[frozenset[Sdf.Path | None], list[JointSpec]] = {}
    for spec in specs:
        if spec.kind != "moving" or not spec.dofs:
            groups.append([spec])
        elif spec.ends in shared:
            shared[spec.ends].append(spec)
        else:
            shared[spec.ends] = [spec]
            groups.append(shared[spec.ends])
    return groups


def _add_loop(context: Context, spec: JointSpec) -> None:
    kinds = [dof.kind for dof in spec.dofs]
    plain = all(dof.limit is None for dof in spec.dofs) and not driven_dofs(context, spec)
    if spec.kind == "distance":
        _add(context, spec, "distance", spec.frame0.position, spec.frame1.position, distance=spec.distance)
    elif not kinds:
        _weld(context, spec)
    elif kinds == ["ball"] and plain:
        _add(context, spec, "connect", spec.frame0.position, spec.frame1.position)
    elif kinds == ["hinge"] and plain:
        arm = HINGE_ARM * spec.dofs[0].axis
        for suffix, sign in ((":near", -0.5), (":far", 0.5)):
            _add(context, spec, "connect", spec.frame0.apply(sign * arm), spec.frame1.apply(sign * arm), suffix=suffix)
    else:
        add_axes(context, single(spec))


def _add(
    context: Context,
    spec: JointSpec,
    kind: str,
    point0: np.ndarray,
    point1: np.ndarray,
    *,
    suffix: str = "",
    distance: tuple[float, float] = (0.0, np.inf),
) -> None:
    """A constraint between two points; the first end is always a body."""
    ends = [(spec.body0, point0), (spec.body1, point1)]
    (a, anchor), (b, anchor_b) = ends if spec.body0 is not None else ends[::-1]
    equality = Equality(spec.name + suffix, kind, str(a), str(b) if b is not None else None, anchor, anchor_b)
    equality.distance_range = distance
    equality_softness(context, spec.prim, equality)
    context.scene.equalities.append(equality)


def _weld(context: Context, spec: JointSpec) -> None:
    ends: list[tuple[Sdf.Path | None, Pose]] = [(spec.body0, spec.frame0), (spec.body1, spec.frame1)]
    (a, frame_a), (b, frame_b) = ends if spec.body0 is not None else ends[::-1]
    pose = frame_a @ frame_b.inverse()
    equality = Equality(spec.name, "weld", str(a), str(b) if b is not None else None, frame_b.position)
    equality.relative_pose = np.concatenate([pose.position, pose.rotation])
    equality_softness(context, spec.prim, equality)
    context.scene.equalities.append(equality)


def _kind(context: Context, name: str | None) -> str | None:
    return next((joint.kind for joint in context.scene.joints if joint.name == name), None)


def add_mimics(context: Context, specs: list[JointSpec]) -> None:
    """Adds joints that follow others: q = coef0 + coef1·q_leader (Newton, PhysX), or a quartic of it (MuJoCo)."""
    for spec in specs:
        leader = context.read.targets(spec.prim, "newton:mimicJoint")
        attribute = "newton:mimicJoint"
        if not leader:
            leader, attribute = context.read.targets(spec.prim, "mjc:target"), "mjc:target"
        if not leader:
            leader, attribute = _physx_leader(context, spec.prim)
        if not leader:
            continue
        kinds = _kind(context, spec.name), _kind(context, str(leader[0]))
        if not all(kind in ("hinge", "slide") for kind in kinds):
            context.ledger.unsupported(
                spec.prim, attribute, "a mimic joint and its leader must be single hinges or slides"
            )
            continue
        equality = Equality(f"{spec.name}:mimic", "joint", spec.name, str(leader[0]))
        _set_polynomial(context, spec.prim, equality, kinds[0] == "hinge", kinds[1] == "hinge", attribute)
        equality.active = context.read.flag(spec.prim, "newton:mimicEnabled", True)
        equality_softness(context, spec.prim, equality, angular=kinds[0] == "hinge")
        context.scene.equalities.append(equality)


def _physx_leader(context: Context, prim: Usd.Prim) -> tuple[list[Sdf.Path], str]:
    """The joint that a PhysxMimicJointAPI names, q + gearing·q_leader + offset = 0 in degrees, and the relationship."""
    for name in applied_apis(prim):
        stem, _, axis = name.partition(":")
        if stem == "PhysxMimicJointAPI" and axis:
            relationship = f"{_PHYSX}{axis}:referenceJoint"
            return context.read.targets(prim, relationship), relationship
    return [], ""


def _set_polynomial(
    context: Context, prim: Usd.Prim, equality: Equality, angular: bool, leader_angular: bool, attribute: str
) -> None:
    """SI coefficients c with q = Σ cᵢ·q_leaderⁱ; MuJoCo's are in radians, others in degrees."""
    coefficients = np.array([0.0, 1.0, 0.0, 0.0, 0.0])
    unit = context.units.length
    if attribute == "newton:mimicJoint":
        own, other = (DEGREE if turn else unit for turn in (angular, leader_angular))
        prefix = "newton:mimicCoef"
    elif attribute.startswith(_PHYSX):
        own, other = (DEGREE if turn else unit for turn in (angular, leader_angular))
        stem, prefix = attribute.removesuffix("referenceJoint"), ""
        context.read.token(prim, f"{stem}referenceJointAxis")
        gearing, offset = (context.read.number(prim, stem + name) for name in ("gearing", "offset"))
        coefficients[:2] = -(offset or 0.0), -(1.0 if gearing is None else gearing)
    else:
        own, other = (1.0 if turn else unit for turn in (angular, leader_angular))
        prefix = "mjc:coef"
    for power in range(5) if prefix else ():
        value = context.read.number(prim, f"{prefix}{power}")
        if value is not None:
            coefficients[power] = value
    equality.polynomial = coefficients * own / other ** np.arange(5.0)
