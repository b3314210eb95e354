"""Joint prims → their two frames and their degrees of freedom, before anyone knows which body is whose parent."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from pxr import Sdf, Usd, UsdPhysics

from warpsim.core.errors import SceneError
from warpsim.core.numpy_quaternions import matrix_to_quat
from warpsim.io.usd.context import Context
from warpsim.io.usd.frames import Pose
from warpsim.io.usd.ledger_scan import applied_apis
from warpsim.io.usd.physics_objects import PhysicsObjects
from warpsim.io.usd.state_names import D6_AXES, D6_BALL
from warpsim.io.usd.units import DEGREE, axis_vector

ENDLESS = 3e38
"""Bounds beyond this are infinite: some exporters write the largest float32."""


CONE_ANGLES = ("physics:coneAngle0Limit", "physics:coneAngle1Limit")


@dataclass
class Dof:
    """One degree of freedom (or a ball's three)."""

    kind: str
    """"hinge", "slide" or "ball"."""
    axis: np.ndarray
    """Unit vector in the joint's frame."""
    token: str
    """Instance name of drives, limits and states: "angular", "linear", "rotX" …"""
    suffix: str = ""
    """Added to the joint's path to name the dof, where a joint has several."""
    limit: tuple[float, float] | None = None
    """Rad or m."""
    limit_attributes: tuple[str, str] | None = None
    """Where the two bounds are authored."""

    @property
    def angular(self) -> bool:
        """Whether the coordinate is an angle."""
        return self.kind != "slide"


@dataclass
class JointSpec:
    """A joint prim: T₁ = T₀ · frame0 · motion(q) · frame1⁻¹."""

    prim: Usd.Prim
    kind: str
    """"moving" (dofs, none of them: fixed), "distance" or "free"."""
    body0: Sdf.Path | None
    """None: the world."""
    body1: Sdf.Path | None
    frame0: Pose
    """In body0's frame, m."""
    frame1: Pose
    dofs: list[Dof] = field(default_factory=list)
    closes_loop: bool = False
    """Must not be part of the tree (excludeFromArticulation)."""
    distance: tuple[float, float] = (0.0, np.inf)

    @property
    def name(self) -> str:
        """The joint's path."""
        return str(self.prim.GetPath())

    @property
    def ends(self) -> frozenset[Sdf.Path | None]:
        """Both bodies."""
        return frozenset((self.body0, self.body1))


def read_joints(context: Context, objects: PhysicsObjects) -> list[JointSpec]:
    """Reads every enabled joint in composed prim order."""
    specs = []
    for prim in objects.joints:
        if not context.read.flag(prim, "physics:jointEnabled", True):
            context.ledger.switched_off(prim, "the joint is disabled")
            continue
        spec = _read_joint(context, objects, prim)
        if spec is not None:
            specs.append(spec)
    return specs


def _read_joint(context: Context, objects: PhysicsObjects, prim: Usd.Prim) -> JointSpec | None:
    body0, frame0 = _end(context, objects, prim, 0)
    body1, frame1 = _end(context, objects, prim, 1)
    if body0 == body1:
        what = "the world" if body0 is None else f"body {body0}"
        context.ledger.unsupported(prim, "physics:body1", f"both ends are {what}, so the joint holds nothing")
        return None
    spec = JointSpec(prim, "moving", body0, body1, frame0, frame1)
    spec.closes_loop = context.read.flag(prim, "physics:excludeFromArticulation", False)
    kind = str(prim.GetTypeName())
    readers = {
        "PhysicsFixedJoint": _no_dofs,
        "PhysicsRevoluteJoint": _revolute,
        "PhysicsPrismaticJoint": _prismatic,
        "PhysicsSphericalJoint": _spherical,
        "PhysicsDistanceJoint": _distance,
        "PhysicsJoint": _d6,
    }
    if kind not in readers:
        context.ledger.unsupported(prim, kind, "joints of this type are not known; the bodies are left free")
        return None
    readers[kind](context, spec)
    return spec


def _end(context: Context, objects: PhysicsObjects, prim: Usd.Prim, index: int) -> tuple[Sdf.Path | None, Pose]:
    """(body or None, frame in that body's frame) of one end of a joint."""
    position = context.read.vector(prim, f"physics:localPos{index}", 3)
    rotation = context.read.quaternion(prim, f"physics:localRot{index}")
    position = np.zeros(3) if position is None else context.units.length * position
    rotation = np.array([1.0, 0.0, 0.0, 0.0]) if rotation is None else rotation
    local = Pose(position, rotation)
    targets = context.read.targets(prim, f"physics:body{index}")
    if not targets:
        return None, Pose(np.zeros(3), matrix_to_quat(context.units.to_world)) @ local
    target = context.prim(targets[0].GetPrimPath())
    if len(targets) > 1 or not target:
        raise SceneError(
            f"{prim.GetPath()}.physics:body{index} points at {', '.join(map(str, targets))}; name one existing prim"
        )
    frame = context.frame(target)
    if frame.mirrored or frame.sheared:
        context.ledger.unsupported(prim, f"physics:localPos{index}", f"{target.GetPath()} is mirrored or sheared")
    local = Pose(frame.scale * position, rotation)
    owner = objects.owner(target)
    if owner == target.GetPath():
        return owner, local
    if owner is None:
        return None, frame.pose @ local
    return owner, context.frame(context.prim(owner)).pose.inverse() @ frame.pose @ local


def _no_dofs(context: Context, spec: JointSpec) -> None:
    pass


def _axis(context: Context, spec: JointSpec) -> np.ndarray:
    return axis_vector(context.read.token(spec.prim, "physics:axis", choices=("X", "Y", "Z")) or "X")


def _revolute(context: Context, spec: JointSpec) -> None:
    names = ("physics:lowerLimit", "physics:upperLimit")
    limit = _bounds(context, spec.prim, names, DEGREE)
    spec.dofs = [Dof("hinge", _axis(context, spec), "angular", "", limit, names)]


def _prismatic(context: Context, spec: JointSpec) -> None:
    names = ("physics:lowerLimit", "physics:upperLimit")
    limit = _bounds(context, spec.prim, names, context.units.length)
    spec.dofs = [Dof("slide", _axis(context, spec), "linear", "", limit, names)]


def _spherical(context: Context, spec: JointSpec) -> None:
    angles = [context.read.number(spec.prim, name, finite=False) for name in CONE_ANGLES]
    limited = [angle for angle in angles if angle is not None and 0 <= angle < ENDLESS]
    limit = None
    if limited:
        limit = (0.0, min(limited) * DEGREE)
        for name in CONE_ANGLES:
            if spec.prim.GetAttribute(name).HasAuthoredValue():
                context.ledger.unsupported(
                    spec.prim,
                    name,
                    "a cone about the axis is not modeled: the smaller angle limits the whole rotation",
                )
    axis = _axis(context, spec)
    spec.dofs = [Dof("ball", axis, "angular", "", limit)]


def _distance(context: Context, spec: JointSpec) -> None:
    spec.kind = "distance"
    low, high = (context.read.number(spec.prim, f"physics:{side}Distance", finite=False) for side in ("min", "max"))
    unit = context.units.length
    spec.distance = (
        unit * low if low is not None and low >= 0 else 0.0,
        unit * high if high is not None and 0 <= high < ENDLESS else np.inf,
    )


def _d6(context: Context, spec: JointSpec) -> None:
    """A generic joint: translations x, y, z, then rotations x, y, z, the first nearest body0; locked ones left out."""
    dofs = []
    for token in D6_AXES:
        names = (f"limit:{token}:physics:low", f"limit:{token}:physics:high")
        angular = token.startswith("rot")
        limit = _bounds(context, spec.prim, names, context.units.coordinate(angular))
        if limit is None or limit[0] < limit[1]:
            dofs.append(Dof("hinge" if angular else "slide", axis_vector(token[-1]), token, f":{token}", limit, names))
    apis = applied_apis(spec.prim)
    turns = [dof for dof in dofs if dof.angular]
    driven = any(f"PhysicsDriveAPI:{dof.token}" in apis for dof in turns)
    if len(turns) == 3 and not driven and all(dof.limit is None for dof in turns):
        dofs = [dof for dof in dofs if not dof.angular] + [
            Dof("ball", np.array([0.0, 0.0, 1.0]), "angular", f":{D6_BALL}")
        ]
    if len(dofs) == 4 and dofs[-1].kind == "ball" and all(dof.limit is None for dof in dofs):
        spec.kind = "free"
    spec.dofs = dofs
    if len(dofs) == 1:
        dofs[0].suffix = ""
    order = ", ".join(dof.token for dof in dofs) or "none: fixed"
    context.ledger.used(spec.prim, spec.prim.GetTypeName(), f"degrees of freedom in this order: {order}")


def _bounds(context: Context, prim: Usd.Prim, names: tuple[str, str], factor: float) -> tuple[float, float] | None:
    """(lower, upper) in SI, or None if both sides are open."""
    low, high = (context.read.number(prim, name, finite=False) for name in names)
    low = -np.inf if low is None or low <= -ENDLESS else factor * low
    high = np.inf if high is None or high >= ENDLESS else factor * high
    return None if low == -np.inf and high == np.inf else (low, high)


def filters_pair(context: Context, spec: JointSpec) -> bool:
    """Whether the joint keeps its two bodies from colliding (UsdPhysics' default)."""
    return not context.read.flag(spec.prim, "physics:collisionEnabled", False)


def is_joint(prim: Usd.Prim) -> bool:
    """Whether a prim is a joint of any kind."""
    return bool(prim) and prim.IsA(UsdPhysics.Joint)
