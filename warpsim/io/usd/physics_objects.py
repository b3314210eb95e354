"""What `UsdPhysics` finds on a stage: bodies, colliders, joints, articulations, groups, by prim path."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pxr import Sdf, Tf, Usd, UsdPhysics

from warpsim.core.errors import SceneError
from warpsim.io.usd.context import Context

_TYPES = UsdPhysics.ObjectType
_SHAPES = {
    _TYPES.SphereShape: "sphere",
    _TYPES.CubeShape: "box",
    _TYPES.CapsuleShape: "capsule",
    _TYPES.Capsule1Shape: "capsule",
    _TYPES.CylinderShape: "cylinder",
    _TYPES.Cylinder1Shape: "cylinder",
    _TYPES.ConeShape: "cone",
    _TYPES.PlaneShape: "plane",
    _TYPES.MeshShape: "mesh",
    _TYPES.CustomShape: "custom",
    _TYPES.SpherePointsShape: "points",
}
_GROUPS = ("Xform", "Scope", "")
"""Types of prims that have no surface of their own."""
_GEOMETRY = {
    "Sphere": "sphere",
    "Cube": "box",
    "Capsule": "capsule",
    "Cylinder": "cylinder",
    "Cone": "cone",
    "Plane": "plane",
    "Mesh": "mesh",
}
_JOINTS = (
    _TYPES.FixedJoint,
    _TYPES.RevoluteJoint,
    _TYPES.PrismaticJoint,
    _TYPES.SphericalJoint,
    _TYPES.DistanceJoint,
    _TYPES.D6Joint,
    _TYPES.CustomJoint,
)


@dataclass
class Collider:
    """A prim with an enabled CollisionAPI."""

    prim: Usd.Prim
    kind: str
    body: Sdf.Path | None
    """The nearest enabled body at or above it; None: static."""


@dataclass
class PhysicsObjects:
    """Everything physical on the stage, each list in composed prim order."""

    scenes: list[Usd.Prim] = field(default_factory=list)
    bodies: dict[Sdf.Path, Usd.Prim] = field(default_factory=dict)
    """Enabled rigid bodies."""
    colliders: dict[Sdf.Path, Collider] = field(default_factory=dict)
    joints: list[Usd.Prim] = field(default_factory=list)
    articulations: list[Any] = field(default_factory=list)
    """UsdPhysics.ArticulationDesc."""
    groups: dict[Sdf.Path, list[Sdf.Path]] = field(default_factory=dict)
    """Collider → collision groups it is in."""

    def owner(self, prim: Usd.Prim) -> Sdf.Path | None:
        """The enabled body that a prim is, or is fixed inside; None: the world."""
        while prim and not prim.IsPseudoRoot():
            if prim.GetPath() in self.bodies:
                return prim.GetPath()
            if prim.HasAPI(UsdPhysics.RigidBodyAPI):  # disabled: its content is static
                return None
            prim = prim.GetParent()
        return None


def find_physics(context: Context) -> PhysicsObjects:
    """Lists the stage's physics objects.

    Raises:
        SceneError: USD itself cannot parse the stage's physics.
    """
    try:
        # other matter is no shape, and USD would say so
        others = [str(path) for path in context.matters]
        found = UsdPhysics.UsdPhysicsLoadStageFromPrimRange(context.stage, ["/"], others)
    except Tf.ErrorException as error:
        raise SceneError(f"{context.stage.GetRootLayer().identifier}: UsdPhysics cannot parse it: {error}") from error

    def prims_of(*kinds: Any) -> list[Usd.Prim]:
        paths = (path for kind in kinds if kind in found for path in found[kind][0])
        return [context.prim(path) for path in context.sorted(paths)]

    objects = PhysicsObjects(scenes=prims_of(_TYPES.Scene), joints=prims_of(*_JOINTS))
    for prim in prims_of(_TYPES.RigidBody):
        if context.read.flag(prim, "physics:rigidBodyEnabled", True):
            objects.bodies[prim.GetPath()] = prim
        else:
            context.ledger.switched_off(prim, "the body is disabled")
    kinds = {path: _SHAPES[kind] for kind in _SHAPES if kind in found for path in found[kind][0]}
    for path in context.sorted(kinds):
        _add_collider(context, objects, context.prim(path), kinds[path])
    for kind in _SHAPES:
        for path, item in zip(*found.get(kind, ((), ())), strict=True):
            objects.groups[path] = list(item.collisionGroups)
    _add_grouped_colliders(context, objects)
    objects.articulations = list(found[_TYPES.Articulation][1]) if _TYPES.Articulation in found else []
    return objects


def _add_collider(context: Context, objects: PhysicsObjects, prim: Usd.Prim, kind: str) -> None:
    if prim.GetPath() in context.matters:
        return
    if not context.read.flag(prim, "physics:collisionEnabled", True):
        context.ledger.switched_off(prim, "the collider is disabled")
        return
    if kind in ("custom", "points"):
        context.ledger.unsupported(
            prim, "PhysicsCollisionAPI", f"{prim.GetTypeName()} prims do not collide or weigh here"
        )
        return
    objects.colliders[prim.GetPath()] = Collider(prim, kind, objects.owner(prim))


def _add_grouped_colliders(context: Context, objects: PhysicsObjects) -> None:
    """Shapes under an Xform or Scope that carries the CollisionAPI in their place, as many a ground does."""
    for path in context.order:
        group = context.prim(path)
        if group.GetTypeName() not in _GROUPS or not group.HasAPI(UsdPhysics.CollisionAPI) or path in context.matters:
            continue
        if not context.read.flag(group, "physics:collisionEnabled", True):
            continue
        owner = objects.owner(group)
        found = [
            prim
            for prim in Usd.PrimRange(group, Usd.TraverseInstanceProxies())
            if prim.GetTypeName() in _GEOMETRY
            and not prim.HasAPI(UsdPhysics.CollisionAPI)
            and objects.owner(prim) == owner
        ]
        for prim in found:
            objects.colliders[prim.GetPath()] = Collider(prim, _GEOMETRY[prim.GetTypeName()], owner)
        if found:
            reason = f"on {group.GetTypeName() or 'an untyped prim'}, which has no surface: what is under it collides"
            context.ledger.assumed(group, "PhysicsCollisionAPI", f"{reason} ({len(found)} shapes)")


def list_lost_colliders(context: Context, objects: PhysicsObjects) -> None:
    """Enters prims that claim to collide but that UsdPhysics does not know as shapes."""
    for path in context.order:
        prim = context.prim(path)
        if prim.HasAPI(UsdPhysics.CollisionAPI) and path not in objects.colliders and path not in context.matters:
            if not context.ledger.knows(prim, "PhysicsCollisionAPI") and not context.ledger.knows(
                prim, "physics:collisionEnabled"
            ):
                context.ledger.unsupported(
                    prim, "PhysicsCollisionAPI", f"{prim.GetTypeName() or 'untyped'} is no shape"
                )
