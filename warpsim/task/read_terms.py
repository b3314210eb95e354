"""Terms and conditions from their prims."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from pxr import Usd, UsdGeom

from warpsim.io.usd.units import DEGREE
from warpsim.objective import (
    CenterOfMass,
    Clearance,
    Condition,
    ContactForce,
    Container,
    ControlLimitsKept,
    Duration,
    Effort,
    Energy,
    Fill,
    JointLimitsKept,
    OnBody,
    Pose,
    Posture,
    Reach,
    Smoothness,
    Spill,
    StaysAbove,
    Term,
    Velocity,
    When,
    Within,
)
from warpsim.scene.description import Joint
from warpsim.task.prims import TaskPrim

Common = dict[str, Any]
"""Arguments of a term."""


def read_term(item: TaskPrim, controls: tuple[str, ...]) -> tuple[Term, Condition | None]:
    """A term, and the condition of success that its tolerance makes.

    Args:
        item: A prim of a type in `TERMS`.
        controls: Paths of the task's control prims.
    """
    make, size = TERMS[item.kind]
    common = {"weight": item.number("weight"), "when": _when(item), "name": item.path}
    term = make(item, common, controls)
    tolerance = item.optional("tolerance", size(item))
    angle = item.optional("angleTolerance", DEGREE) if isinstance(term, Pose) else None
    if tolerance is None and angle is None:
        return term, None
    return term, Within(term, tolerance, item.number("heldFor"), angle)


def _when(item: TaskPrim) -> When:
    window = item.get("window")
    return When(str(item.get("when")), item.optional("time"), None if window is None else (window[0], window[1]))


def _pair(item: TaskPrim, *, points: bool = False) -> Common:
    """Subject and target, which must be able to part; with `points`, the subject may have no axes."""
    subject, target = item.movable("subject") if points else item.moving("subject"), item.goal()
    if isinstance(target, OnBody) and isinstance(subject, OnBody) and target.body == subject.body:
        raise item.fail(f"target is part of {subject.body}, as the subject is; give keyframes to a prim of their own")
    return {"subject": subject, "target": target}


def _reach(item: TaskPrim, common: Common, _: tuple[str, ...]) -> Term:
    return Reach(**_pair(item, points=True), axes=item.axes(), **common)


def _pose(item: TaskPrim, common: Common, _: tuple[str, ...]) -> Term:
    arm = item.number("leverArm", item.context.units.length)
    return Pose(**_pair(item), lever_arm=arm, **common)


def _velocity(item: TaskPrim, common: Common, _: tuple[str, ...]) -> Term:
    angular = item.get("quantity") == "angular"
    wanted = item.context.vector(item.get("velocity"), item.context.units.coordinate(angular))
    return Velocity(subject=item.moving("subject"), velocity=wanted, angular=angular, axes=item.axes(), **common)


def _joints(item: TaskPrim) -> list[Joint]:
    simple = {j.name: j for j in item.context.scene.joints if j.kind in ("hinge", "slide")}
    chosen = item.names("joints", simple, "hinge or slide")
    return [simple[name] for name in chosen] if chosen else list(simple.values())


def _posture(item: TaskPrim, common: Common, _: tuple[str, ...]) -> Term:
    joints = _joints(item)
    factors = np.array([item.context.units.coordinate(joint.kind == "hinge") for joint in joints])
    names = tuple(joint.name for joint in joints)
    attribute = item.prim.GetAttribute("position")
    codes = attribute.GetTimeSamples() if attribute else []
    postures = [np.array(attribute.Get(code), dtype=float) for code in codes]
    if not postures:
        fixed = item.numbers("position")
        if fixed is None:
            return Posture(joints=names, **common)
        postures = [fixed]
    for row in postures:
        if row.shape != factors.shape:
            raise item.fail(f"position needs {len(names)} numbers, one for each of {', '.join(names)}")
    if not codes:
        return Posture(joints=names, position=postures[0] * factors, **common)
    return Posture(joints=names, position=np.array(postures) * factors, times=item.context.seconds(codes), **common)


def _center_of_mass(item: TaskPrim, common: Common, _: tuple[str, ...]) -> Term:
    return CenterOfMass(target=item.goal(), axes=item.axes(), **common)


def _liquid(item: TaskPrim) -> str:
    """Name of the liquid that is the subject."""
    liquids = {matter.path: matter.name for matter in item.context.scene.matters if matter.kind == "liquid"}
    item.one("subject")
    (path,) = item.names("subject", liquids, "liquid")
    return liquids[path]


def _container(item: TaskPrim, prim: Usd.Prim) -> Container:
    if not prim.IsA(UsdGeom.Cube):
        raise item.fail(f"{prim.GetPath()} is no Cube; a container is given as one, which need not collide")
    edge = UsdGeom.Cube(prim).GetSizeAttr().Get() or 2.0
    x, y, z = (0.5 * float(edge) * item.context.scale(prim)).tolist()
    return Container(item.context.place(prim), (x, y, z))


def _fill(item: TaskPrim, common: Common, _: tuple[str, ...]) -> Term:
    above = item.number("above", item.context.units.length)
    return Fill(matter=_liquid(item), container=_container(item, item.one("target")), above=above, **common)


def _spill(item: TaskPrim, common: Common, _: tuple[str, ...]) -> Term:
    containers = tuple(_container(item, prim) for prim in item.prims("targets"))
    if not containers:
        raise item.fail("targets must name at least one container")
    return Spill(matter=_liquid(item), containers=containers, **common)


def _energy(item: TaskPrim, common: Common, _: tuple[str, ...]) -> Term:
    return Energy(kind=str(item.get("quantity")), energy=item.number("energy", item.context.units.inertia), **common)


def _force(item: TaskPrim) -> float:
    return item.context.units.force(False)


def _touchable(item: TaskPrim) -> tuple[str, ...]:
    return (*item.context.bodies, *(shape.name for shape in item.context.scene.shapes))


def _contact_force(item: TaskPrim, common: Common, _: tuple[str, ...]) -> Term:
    item.one("subject")
    (subject,) = item.names("subject", _touchable(item), "body or collider")
    return ContactForce(
        subject=subject,
        force=item.context.vector(item.get("force"), _force(item)),
        at_most=item.optional("atMost", _force(item)),
        axes=item.axes(),
        **common,
    )


def _clearance(item: TaskPrim, common: Common, _: tuple[str, ...]) -> Term:
    item.one("subject")
    (subject,) = item.names("subject", _touchable(item), "body or collider")
    obstacles = item.names("obstacles", _touchable(item), "body or collider")
    distance = item.number("distance", item.context.units.length)
    return Clearance(subject=subject, obstacles=obstacles, distance=distance, **common)


def _effort(item: TaskPrim, common: Common, controls: tuple[str, ...]) -> Term:
    return Effort(controls=item.names("controls", controls, "control of this task"), **common)


def _smoothness(item: TaskPrim, common: Common, controls: tuple[str, ...]) -> Term:
    return Smoothness(controls=item.names("controls", controls, "control of this task"), **common)


def _duration(item: TaskPrim, common: Common, _: tuple[str, ...]) -> Term:
    return Duration(**common)


def _length(item: TaskPrim) -> float:
    return item.context.units.length


def _one(item: TaskPrim) -> float:
    return 1.0


def _joint_unit(item: TaskPrim) -> float:
    """Of a tolerance on joints: degrees, unless all of them are slides."""
    joints = _joints(item)
    return item.context.units.coordinate(not joints or any(joint.kind == "hinge" for joint in joints))


TERMS: dict[str, tuple[Callable[[TaskPrim, Common, tuple[str, ...]], Term], Callable[[TaskPrim], float]]] = {
    "WarpsimReach": (_reach, _length),
    "WarpsimPose": (_pose, _length),
    "WarpsimVelocity": (_velocity, lambda item: item.context.units.coordinate(item.get("quantity") == "angular")),
    "WarpsimPosture": (_posture, _joint_unit),
    "WarpsimCenterOfMass": (_center_of_mass, _length),
    "WarpsimFill": (_fill, _one),
    "WarpsimSpill": (_spill, _one),
    "WarpsimEnergy": (_energy, lambda item: item.context.units.inertia),
    "WarpsimContactForce": (_contact_force, _force),
    "WarpsimClearance": (_clearance, _length),
    "WarpsimEffort": (_effort, _one),
    "WarpsimSmoothness": (_smoothness, _one),
    "WarpsimDuration": (_duration, _one),
}
"""Type → how to read it, and the SI size of its tolerance's unit."""


def _keep_joint_limits(item: TaskPrim) -> Condition:
    return JointLimitsKept(item.number("angleTolerance", DEGREE), item.number("tolerance", _length(item)))


def _keep_control_limits(item: TaskPrim) -> Condition:
    return ControlLimitsKept()


def _stay_above(item: TaskPrim) -> Condition:
    return StaysAbove(item.moving("subject"), item.number("height", _length(item)), item.prim.GetName())


CONDITIONS: dict[str, Callable[[TaskPrim], Condition]] = {
    "WarpsimKeepJointLimits": _keep_joint_limits,
    "WarpsimKeepControlLimits": _keep_control_limits,
    "WarpsimStayAbove": _stay_above,
}
"""Type → how to read it."""
