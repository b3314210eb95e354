"""The reader's ledger: what became of every authored physics attribute, and the scan that makes sure none is missed.

Readers mark what they use as they read it. At the end `scan` walks the stage; whatever carries a physics attribute that
nobody marked is settled by the tables below or, failing those, listed as unsupported. So nothing is dropped in silence,
not even an attribute that this file has never heard of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from pxr import Usd, UsdGeom, UsdPhysics

from warpsim.core.errors import UnsupportedError
from warpsim.io.usd.schema_names import why_api_is_unread, why_type_is_unread
from warpsim.scene.ledger import LedgerEntry

_PHYSICS_NAME = re.compile(r"(physics|newton|mjc|physx\w*|drive|limit|state|warpsim|collection:colliders)(:|$)")


def _never(_: Any) -> bool:
    return False


def _always(_: Any) -> bool:
    return True


def _endless(value: Any) -> bool:
    """Infinite, or the largest float that some exporters write for it."""
    return np.ndim(value) == 0 and float(value) > 3e38


def _infinite(value: Any) -> bool:
    """Newton's way to leave a value to the engine."""
    return np.ndim(value) == 0 and bool(np.isinf(float(value)))


def _zero(value: Any) -> bool:
    return not np.any(np.asarray(value, dtype=float))


def _true(value: Any) -> bool:
    return bool(value)


@dataclass(frozen=True)
class _Rule:
    """What to say of an attribute that no reader marked."""

    pattern: re.Pattern[str]
    harmless: Callable[[Any], bool]
    """Whether this value changes nothing."""
    reason: str
    """Why it is ignored."""
    trouble: str = ""
    """Why it is unsupported when it is not harmless."""


def _rule(pattern: str, harmless: Callable[[Any], bool], reason: str, trouble: str = "") -> _Rule:
    return _Rule(re.compile(pattern + "$"), harmless, reason, trouble)


_RULES = (
    _rule(r"physics:break(Force|Torque)", _endless, "infinite: the joint never breaks", "joints never break here"),
    _rule(r"physics:startsAsleep", _always, "bodies are never put to sleep"),
    _rule(r"physics:approximation", _always, "only meshes are approximated"),
    _rule(r"physics:principalAxes", _always, "no diagonalInertia is authored with it"),
    _rule(r"physics:(tensor|newton):.*", _always, "bookkeeping of another engine"),
    _rule(r"physics:collisionEnabled", _always, "not on a collider or joint that is simulated"),
    _rule(r"mjc:group", _always, "a group for viewers"),
    _rule(r"mjc:compiler:(setTotalMass|settotalmass)", _never, "", "masses are not rescaled; scale them in the stage"),
    _rule(r"mjc:compiler:.*", _always, "an instruction to a compiler that already ran"),
    _rule(r"mjc:(actLimited|ctrlLimited|forceLimited)", _always, "read with its range"),
    _rule(r"mjc:maxhullvert", _always, "the mesh does not collide as one hull"),
    _rule(r"mjc:inertia", _always, "the mesh's mass is not derived from it, or is exact"),
    _rule(r"newton:jointsAddMobility", _always, "joints always add mobility here"),
    _rule(
        r"(newton:limit|physxLimit:\w+:)(S|s)tiffness",
        _infinite,
        "infinite: left to the engine",
        "a force per displacement; limits have mjc:solreflimit, per unit of inertia",
    ),
    _rule(
        r"(newton:limit|physxLimit:\w+:)(D|d)amping",
        _infinite,
        "infinite: left to the engine",
        "a force per velocity; limits have mjc:solreflimit, per unit of inertia",
    ),
    _rule(r"newton:velocityLimit", _infinite, "infinite", "velocities are not clipped here"),
    _rule(r"newton:sdfTargetVoxelSize", _infinite, "infinite: not set", "give newton:sdfMaxResolution"),
    _rule(r"newton:sdf(NarrowBandInner|NarrowBandOuter|Padding|TextureFormat)", _always, "of another engine's grid"),
    _rule(r"newton:hydroelastic\w+", _zero, "switched off", "contact is at points, not over pressure fields"),
    _rule(r"newton:maxHullVertices", _always, "the mesh does not collide as hulls"),
    _rule(r"state:.*:appliedForce", _always, "an output of another engine"),
    _rule(r"physxScene:.*", _always, "a choice within another engine's solver"),
    _rule(
        r"physxRigidBody:(linear|angular)Damping", _zero, "zero", "bodies have no damping of their own; use a medium"
    ),
    _rule(r"physxRigidBody:enableGyroscopicForces", _true, "always on here", "gyroscopic forces are always on"),
    _rule(r"physxRigidBody:(locked\w+)", _zero, "nothing locked", "lock axes with a joint to the world instead"),
    _rule(r"physxRigidBody:max\w*Velocity", _always, "velocities are not clipped here"),
    _rule(r"physxRigidBody:.*", _always, "a setting of another engine's solver"),
    _rule(r"physxArticulation:.*", _always, "a setting of another engine's solver"),
    _rule(r"physxCollision:restOffset", _zero, "zero", "use newton:contactMargin"),
    _rule(r"physxCollision:(contactOffset|torsionalPatchRadius|minTorsionalPatchRadius)", _always, "another engine's"),
    _rule(r"physxJoint:maxJointVelocity", _always, "velocities are not clipped here"),
    _rule(
        r"physxConvexDecompositionCollision:(errorPercentage|minThickness|shrinkWrap|voxelResolution)",
        _always,
        "of another engine's search; warpsim:convexTolerance says how closely pieces follow the mesh",
    ),
    _rule(
        r"physx(ConvexHullCollision|TriangleMesh\w+|ConvexDecompositionCollision|Cooked\w+):.*",
        _always,
        "a cooking hint",
    ),
)


class Ledger:
    """Collects entries; for one attribute unsupported outranks assumed, that outranks used, and that ignored."""

    _RANK = {"ignored": 0, "used": 1, "assumed": 2, "unsupported": 3}

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], LedgerEntry] = {}
        self._off: dict[str, str] = {}
        self._claimed: set[str] = set()

    def _mark(self, path: str, attribute: str, status: str, reason: str) -> None:
        known = self._entries.get((path, attribute))
        if known is None or self._RANK[status] >= self._RANK[known.status]:
            reason = reason or (known.reason if known is not None and known.status == status else "")
            self._entries[(path, attribute)] = LedgerEntry(path, attribute, status, reason)

    def used(self, prim: Usd.Prim, attribute: str, reason: str = "") -> None:
        """The attribute reached the scene; a reason says how, where that is not plain."""
        self._mark(str(prim.GetPath()), attribute, "used", reason)

    def assumed(self, prim: Usd.Prim, attribute: str, reason: str) -> None:
        """The attribute is not set, and what was chosen for it makes a difference."""
        self._mark(str(prim.GetPath()), attribute, "assumed", reason)

    def ignored(self, prim: Usd.Prim, attribute: str, reason: str) -> None:
        """The attribute has no influence on the physics."""
        self._mark(str(prim.GetPath()), attribute, "ignored", reason)

    def unsupported(self, prim: Usd.Prim, attribute: str, reason: str) -> None:
        """The attribute would have changed the physics."""
        self._mark(str(prim.GetPath()), attribute, "unsupported", reason)

    def switched_off(self, prim: Usd.Prim, reason: str) -> None:
        """Whatever the prim carries beyond what is marked has no influence."""
        self._off[str(prim.GetPath())] = reason

    def claimed(self, prim: Usd.Prim, reason: str) -> None:
        """The prim is of another kind of matter, which reads of it what it needs."""
        self._claimed.add(str(prim.GetPath()))
        self.switched_off(prim, reason)

    def is_claimed(self, prim: Usd.Prim) -> bool:
        """Whether the prim, with its type and schemas, is of another kind of matter."""
        return str(prim.GetPath()) in self._claimed

    def why_off(self, prim: Usd.Prim) -> str | None:
        """The reason given for a prim that is switched off."""
        return self._off.get(str(prim.GetPath()))

    def knows(self, prim: Usd.Prim, attribute: str) -> bool:
        """Whether someone marked the attribute."""
        return (str(prim.GetPath()), attribute) in self._entries

    def entries(self) -> list[LedgerEntry]:
        """All entries in order of path and attribute."""
        return [self._entries[key] for key in sorted(self._entries)]

    def refuse_unsupported(self) -> None:
        """Raises if anything is unsupported.

        Raises:
            UnsupportedError: Lists every unsupported entry.
        """
        lines = [str(entry) for entry in self.entries() if entry.status == "unsupported"]
        if lines:
            raise UnsupportedError(
                f"{len(lines)} authored thing(s) are not modeled; remove them or read with strict=False:\n  "
                + "\n  ".join(lines)
            )


def applied_apis(prim: Usd.Prim) -> list[str]:
    """Names of the applied API schemas, those included that no plugin registered (Newton's, MuJoCo's, PhysX')."""
    names = [str(name) for name in prim.GetAppliedSchemas()]
    listed = prim.GetMetadata("apiSchemas")
    unregistered = [str(name) for name in listed.GetAppliedItems()] if listed else []
    return list(dict.fromkeys(names + unregistered))


def prims(stage: Usd.Stage) -> Iterator[Usd.Prim]:
    """Every active, loaded, defined prim in composed order, inside instances too."""
    yield from Usd.PrimRange.Stage(stage, Usd.TraverseInstanceProxies())


def scan(stage: Usd.Stage, ledger: Ledger) -> None:
    """Settles everything physical that no reader marked, and names what USD could not compose."""
    root = stage.GetPseudoRoot()
    for place, error in enumerate(stage.GetCompositionErrors()):
        ledger.unsupported(root, f"composition error {place + 1}", str(error))
    for prim in Usd.PrimRange(root, Usd.PrimAllPrimsPredicate):
        if prim.IsActive() and prim.HasAuthoredPayloads() and not prim.IsLoaded():
            ledger.unsupported(prim, "payload", "it is not loaded, so nothing in it is read; load the stage's payloads")
    for prim in prims(stage):
        if not ledger.is_claimed(prim):
            _scan_type(prim, ledger)
            _scan_apis(prim, ledger)
        everything = prim.IsA(UsdPhysics.Scene)
        for item in prim.GetAuthoredProperties():
            name = item.GetName()
            if (everything or _PHYSICS_NAME.match(name)) and not ledger.knows(prim, name):
                _settle(prim, item, ledger)


def _scan_type(prim: Usd.Prim, ledger: Ledger) -> None:
    kind = str(prim.GetTypeName())
    reason = why_type_is_unread(kind)
    if reason is not None:
        ledger.unsupported(prim, kind, reason)
    if prim.IsA(UsdGeom.PointInstancer):
        ledger.unsupported(prim, "prototypes", "point instancers are not expanded; use instanceable references")


def _scan_apis(prim: Usd.Prim, ledger: Ledger) -> None:
    composed = {str(name) for name in prim.GetAppliedSchemas()}
    for name in applied_apis(prim):
        reason = why_api_is_unread(name, applied=name in composed)
        if reason is not None:
            ledger.unsupported(prim, name, reason)


def _settle(prim: Usd.Prim, item: Usd.Property, ledger: Ledger) -> None:
    name = item.GetName()
    value = item.Get() if isinstance(item, Usd.Attribute) else item.GetTargets()
    if isinstance(item, Usd.Relationship) and not value:
        ledger.ignored(prim, name, "points at nothing")
        return
    reason = ledger.why_off(prim)
    if reason is None and prim.HasAPI(UsdPhysics.MaterialAPI):
        reason = "no collider is bound to this material"
    if reason is not None:
        ledger.ignored(prim, name, reason)
        return
    for rule in _RULES:
        if rule.pattern.match(name):
            if value is None or _is_harmless(rule, value):
                ledger.ignored(prim, name, rule.reason or "no value")
            else:
                ledger.unsupported(prim, name, rule.trouble)
            return
    if not _PHYSICS_NAME.match(name):
        ledger.ignored(prim, name, "not an attribute of a physics schema that warpsim knows")
    else:
        ledger.unsupported(prim, name, "not read by warpsim here")


def _is_harmless(rule: _Rule, value: Any) -> bool:
    try:
        return rule.harmless(value)
    except (TypeError, ValueError):  # a value of a type the attribute should not have
        return False
