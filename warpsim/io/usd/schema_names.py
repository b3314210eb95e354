"""Names of the physics schemas that are read, and what to say of others.

USD passes over a name that it does not know, without a word: to it a prim that applies "PhysicsRigidBodyAPi" is no
body.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from functools import cache

from pxr import Usd

_PHYSICS = re.compile(r"(usd)?(physics|physx|newton|mjc)", re.IGNORECASE)
"""How names of physics schemas begin."""
_SLIP = 0.85
"""A name this much like that of a physics schema is taken for a slip of the pen, however it begins."""
_HINT = 0.6
"""A name less like all others than this has no nearest one."""

_APIS = {
    "PhysicsArticulationRootAPI",
    "PhysicsCollisionAPI",
    "PhysicsDriveAPI",
    "PhysicsFilteredPairsAPI",
    "PhysicsLimitAPI",
    "PhysicsMassAPI",
    "PhysicsMaterialAPI",
    "PhysicsMeshCollisionAPI",
    "PhysicsRigidBodyAPI",
    "NewtonArticulationRootAPI",
    "NewtonCollisionAPI",
    "NewtonJointAPI",
    "NewtonMaxEffortClampingAPI",
    "NewtonPDControlAPI",
    "NewtonMassAPI",
    "NewtonMaterialAPI",
    "NewtonMeshCollisionAPI",
    "NewtonMimicAPI",
    "NewtonRigidBodyAPI",
    "NewtonSceneAPI",
    "NewtonSDFCollisionAPI",
    "NewtonSiteAPI",
    "MjcBodyAPI",
    "MjcCollisionAPI",
    "MjcEqualityConnectAPI",
    "MjcEqualityJointAPI",
    "MjcImageableAPI",
    "MjcJointAPI",
    "MjcMaterialAPI",
    "MjcMeshCollisionAPI",
    "MjcSceneAPI",
    "MjcSiteAPI",
    "PhysicsJointStateAPI",
    "PhysicsDeformableBodyAPI",
    "PhysicsSurfaceDeformableSimAPI",
    "PhysicsVolumeDeformableSimAPI",
    "PhysicsCurvesDeformableSimAPI",
    "PhysicsSurfaceDeformableMaterialAPI",
    "PhysicsVolumeDeformableMaterialAPI",
    "PhysicsCurvesDeformableMaterialAPI",
    "OmniPhysicsDeformableBodyAPI",
    "OmniPhysicsSurfaceDeformableSimAPI",
    "OmniPhysicsVolumeDeformableSimAPI",
    "OmniPhysicsCurvesDeformableSimAPI",
    "OmniPhysicsDeformableMaterialAPI",
    "OmniPhysicsSurfaceDeformableMaterialAPI",
    "OmniPhysicsCurvesDeformableMaterialAPI",
    "PhysxArticulationAPI",
    "PhysxCollisionAPI",
    "PhysxConvexDecompositionCollisionAPI",
    "PhysxConvexHullCollisionAPI",
    "PhysxJointAPI",
    "PhysxJointAxisAPI",
    "PhysxLimitAPI",
    "PhysxMaterialAPI",
    "PhysxMimicJointAPI",
    "PhysxRigidBodyAPI",
    "PhysxSceneAPI",
    "PhysxSDFMeshCollisionAPI",
    "PhysxTriangleMeshCollisionAPI",
}
_TYPES = {
    "PhysicsAttachment",
    "PhysicsCollisionGroup",
    "PhysicsDistanceJoint",
    "PhysicsFixedJoint",
    "PhysicsJoint",
    "PhysicsPrismaticJoint",
    "PhysicsRevoluteJoint",
    "PhysicsScene",
    "PhysicsSphericalJoint",
    "MjcActuator",
    "NewtonActuator",
    "MjcKeyframe",
    "MjcTendon",
}


def why_api_is_unread(name: str, *, applied: bool) -> str | None:
    """What is wrong with an entry of a prim's apiSchemas; None if it is read, or has nothing to do with physics.

    Args:
        name: Of the schema, with its instance if any, e.g. "PhysicsDriveAPI:angular".
        applied: Whether USD composed it into the prim.
    """
    stem, _, instance = name.partition(":")
    registered = _registered_api(stem)
    if stem not in _APIS:
        return _unread(stem, "API schema", tuple(_APIS), registered)
    if registered and not applied:
        return "it takes no instance name" if instance else f"it needs an instance name, as in {stem}:<name>"
    return None


def why_type_is_unread(name: str) -> str | None:
    """What is wrong with a prim's type; None if it is read, or has nothing to do with physics."""
    return None if name in _TYPES else _unread(name, "prim type", tuple(_TYPES), _registered_type(name))


@cache
def _unread(name: str, what: str, known: tuple[str, ...], registered: bool) -> str | None:
    if registered:  # a real name: no slip
        return f"this {what} is not read" if _PHYSICS.match(name) else None
    named_short = f"Physics{name}" in known
    # "TensorPhysicsArticulationRootAPI" is another's, made from one of these names.
    slip = _nearest(name, known, _SLIP) is not None and not name.endswith(known)
    if not (_PHYSICS.match(name) or named_short or slip):
        return None
    nearest = f"Physics{name}" if named_short else _nearest(name, known, _HINT)
    return f"this {what} is not read" + (f"; the nearest one that is: {nearest}" if nearest else "")


def _nearest(name: str, known: Iterable[str], likeness: float) -> str | None:
    found = difflib.get_close_matches(name, known, n=1, cutoff=likeness)
    return found[0] if found else None


@cache
def _registered_api(name: str) -> bool:
    return Usd.SchemaRegistry().FindAppliedAPIPrimDefinition(name) is not None


@cache
def _registered_type(name: str) -> bool:
    return Usd.SchemaRegistry().FindConcretePrimDefinition(name) is not None
