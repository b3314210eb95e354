"""Finds an attribute on the stage and makes a handle on it, or says why it cannot matter."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace

import numpy as np
import torch
from pxr import Usd, UsdPhysics

from warpsim.core.errors import InputError, SceneError, unknown_name
from warpsim.io.usd.ledger_scan import prims
from warpsim.io.usd.units import stage_units
from warpsim.sim.attributes.attribute import Attribute
from warpsim.sim.attributes.meaning import bounds_of, not_set, unit_of
from warpsim.sim.attributes.scene_map import MOVED_MESH, Point, SceneMap
from warpsim.sim.attributes.slopes import JumpError, KinkError, Slope, agrees, survey
from warpsim.sim.attributes.value_type import ValueType, value_type

_MESH_DATA = {"points", "faceVertexCounts", "faceVertexIndices"}
_SWITCHES = {
    "physics:rigidBodyEnabled": "the body is disabled",
    "physics:collisionEnabled": "the collider is disabled",
    "physics:jointEnabled": "the joint is disabled",
}


@dataclass(frozen=True)
class _Found:
    attribute: Usd.Attribute
    path: str
    kind: ValueType


def find_attribute(scene_map: SceneMap, path: str, device: torch.device) -> Attribute:
    """The handle on an attribute.

    Args:
        scene_map: Of the stage.
        path: "/prim.attribute".
        device: Where the handle's value lives.

    Raises:
        InputError: There is no such attribute, or physics does not depend on it smoothly; says why.
    """
    found = _look_up(scene_map, path)
    value = _value(found)
    if not found.attribute.HasAuthoredValue():
        _author(scene_map, found)
    try:
        slope = _survey(scene_map, found, value)
    except JumpError as error:
        even = replace(found, kind=replace(found.kind, family="uniform"))
        if not (MOVED_MESH in str(error) and value.shape == (3,) and (value == value[0]).all()):
            hint = not_set(found.attribute.GetName()) if not value.any() else ""
            raise InputError(f"{path} = {value.tolist()} cannot be varied: {hint or error}") from error
        found, value = even, np.array(value[0])  # an array: a NumPy scalar cannot be moved in place
        slope = _survey(scene_map, found, value)
    if not len(slope.places) or _ledger(scene_map, found)[0] == "ignored":
        raise InputError(f"{path} does not reach the physics: {_why_not(scene_map, found)}")
    return _handle(scene_map, found, value, slope, device)


def _survey(scene_map: SceneMap, found: _Found, value: np.ndarray) -> Slope:
    def read(numbers: np.ndarray) -> Point:
        return scene_map.read({found.path: found.kind.exact(numbers)})

    try:
        return survey(read, scene_map.base, value, bounds_of(found.attribute.GetName()))
    except KinkError as error:
        raise InputError(f"{found.path}: {error}") from error


def _handle(scene_map: SceneMap, found: _Found, value: np.ndarray, slope: Slope, device: torch.device) -> Attribute:
    touched = np.zeros(len(scene_map.base.numbers), bool)
    touched[slope.places] = True
    prim, name = found.attribute.GetPrim(), found.attribute.GetName()
    angular = not prim.IsA(UsdPhysics.PrismaticJoint) and ":trans" not in name and ":linear" not in name
    return Attribute(
        source=scene_map.stage.GetRootLayer().identifier,
        path=found.path,
        value=value,
        kind=found.kind,
        unit=unit_of(name, stage_units(scene_map.stage), angular),
        slope=slope,
        reach=tuple(scene_map.names(touched)),
        bounds=bounds_of(name),
        device=device,
    )


def _look_up(scene_map: SceneMap, path: str) -> _Found:
    prim_path, dot, name = path.rpartition(".")
    if not dot or not prim_path.startswith("/"):
        raise InputError(f"{path!r} names no attribute; give '/prim.attribute', e.g. '/World/Ball.physics:velocity'")
    stage = scene_map.stage
    prim = stage.GetPrimAtPath(prim_path)
    if not prim:
        raise unknown_name("prim", prim_path, [str(p.GetPath()) for p in prims(stage)])
    attribute = prim.GetAttribute(name)
    if not attribute:
        if prim.GetRelationship(name):
            raise InputError(f"{path} is a relationship, not a number that could vary")
        known = [item.GetName() for item in prim.GetAttributes()]
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
        raise InputError(
            f"{prim_path} has no attribute {name!r}; {hint}apply the schema that has it, or author it in the file first"
        )
    if prim.IsInstanceProxy():
        raise InputError(
            f"{path} lies inside an instance, whose prims cannot be authored; set instanceable=false on the instance "
            "in the file first"
        )
    if name in _MESH_DATA:
        raise InputError(f"{path}: a mesh's own geometry carries no gradient; its pose and a uniform scale do")
    kind = value_type(attribute)
    if kind is None:
        raise InputError(f"{path} is of type {attribute.GetTypeName()}, which holds no real numbers that could vary")
    return _Found(attribute, f"{prim.GetPath()}.{name}", kind)


def _value(found: _Found) -> np.ndarray:
    name = found.attribute.GetName()
    value = found.attribute.Get()
    if value is None and found.attribute.GetNumTimeSamples():
        value = found.attribute.Get(Usd.TimeCode.EarliestTime())
    if value is None:
        raise InputError(f"{found.path} has no value; {not_set(name) or 'author one in the file first'}")
    numbers = found.kind.numbers(value)
    if not numbers.size:
        raise InputError(f"{found.path} is an empty array; author its numbers in the file first")
    unset = found.kind.family == "quaternion" and not numbers.any()
    if unset or not np.isfinite(numbers).all():
        hint = not_set(name) or "author a finite value, from which it can vary"
        raise InputError(f"{found.path} = {numbers.tolist()}: {hint}")
    return numbers


def _author(scene_map: SceneMap, found: _Found) -> None:
    """Authors a fallback on our own stage, which must not change anything."""
    name, fallback = found.attribute.GetName(), found.attribute.Get()
    reason = f"{found.path} is not authored, and authoring its fallback {fallback}"
    try:
        scene_map.author(found.attribute, fallback)
        point = scene_map.read({})
        nothing = np.zeros_like(point.numbers)
        jump = scene_map.base.jump(point)
        if jump is None and not agrees(point, scene_map.base, nothing, nothing):
            jump = "numbers of the scene"
    except SceneError as error:
        jump = str(error)
    if jump is not None:
        scene_map.author(found.attribute, None)
        raise InputError(f"{reason} would change {jump}; {not_set(name) or 'author a value in the file first'}")


def _ledger(scene_map: SceneMap, found: _Found) -> tuple[str, str]:
    """What the reader did with the attribute, and why; "" where it says nothing."""
    prim_path, _, name = found.path.rpartition(".")
    for entry in scene_map.scene.ledger:
        if (entry.path, entry.attribute) == (prim_path, name):
            return entry.status, entry.reason
    return "", ""


def _why_not(scene_map: SceneMap, found: _Found) -> str:
    reason = _ledger(scene_map, found)[1]
    if reason:
        return reason
    above = found.attribute.GetPrim()
    while above and not above.IsPseudoRoot():
        for switch, reason in _SWITCHES.items():
            if (
                above.IsA(UsdPhysics.Joint) == (switch == "physics:jointEnabled")
                and above.GetAttribute(switch).Get() is False
            ):
                return f"{reason} ({above.GetPath()}.{switch})"
        above = above.GetParent()
    return "nothing that is simulated depends on it (see `warpsim inspect`)"
