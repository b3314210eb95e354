"""Checks that know nothing of mechanics: finite numbers, array shapes, unique names, names that exist."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np

from warpsim.core.errors import SceneError, unknown_name
from warpsim.scene.actuation import Actuator, Tendon
from warpsim.scene.constraints import ContactOverride, Equality
from warpsim.scene.description import (
    JOINT_DOF_SIZE,
    JOINT_Q_SIZE,
    Body,
    Joint,
    Medium,
    Mesh,
    Options,
    Scene,
    Shape,
    Site,
)
from warpsim.scene.ranges import FIELDS, INFINITE_ALLOWED, NOT_NEGATIVE, Range

UNIT_TOLERANCE = 1e-6

_POSE = {"position": (3,), "rotation": (4,)}
_SOLVER = {"solref": (2,), "solimp": (5,)}
_LIMIT = {"limit": (2,), "limit_solref": (2,), "limit_solimp": (5,), "friction_solref": (2,), "friction_solimp": (5,)}
_ARRAY_SHAPES: dict[type, dict[str, tuple[int, ...]]] = {
    Body: {**_POSE, "com": (3,), "inertia": (3, 3), "inertia_axes": (4,)},
    Joint: {**_LIMIT, "anchor": (3,), "axis": (3,), "actuator_force_limit": (2,)},
    Shape: {**_POSE, **_SOLVER, "size": (3,), "friction": (3,), "color": (3,)},
    Site: {**_POSE, "size": (3,)},
    Tendon: {**_LIMIT, "spring_range": (2,)},
    Actuator: {
        "gear": (6,),
        "gain": (3,),
        "bias": (3,),
        "control_range": (2,),
        "force_range": (2,),
        "activation_range": (2,),
    },
    Equality: {
        **_SOLVER,
        "anchor": (3,),
        "anchor_b": (3,),
        "relative_pose": (7,),
        "axes": (4,),
        "locked": (6,),
        "limits": (6, 2),
        "limit_solref": (2,),
        "limit_solimp": (5,),
        "polynomial": (5,),
        "distance_range": (2,),
    },
    ContactOverride: {**_SOLVER, "friction": (5,), "solref_friction": (2,)},
    Medium: {"wind": (3,)},
    Options: {"gravity": (3,)},
}


def place(item: Any) -> str:
    """How error messages call an item of the scene, e.g. "joint 'knee'"."""
    kind = type(item).__name__.lower()
    if isinstance(item, ContactOverride):
        return f"contact override of {item.a!r} and {item.b!r}"
    return f"{kind} {item.name!r}" if hasattr(item, "name") else kind


def items(scene: Scene) -> Iterator[Any]:
    """Every dataclass of the scene that holds numbers."""
    for kind in named_kinds(scene).values():
        yield from kind
    yield from scene.contact_overrides
    yield scene.medium
    yield scene.options


def named_kinds(scene: Scene) -> dict[str, Collection[Any]]:
    """Kind → its items, for the kinds whose names must be unique."""
    return {
        "body": scene.bodies,
        "joint": scene.joints,
        "shape": scene.shapes,
        "site": scene.sites,
        "tendon": scene.tendons,
        "actuator": scene.actuators,
        "drive": scene.drives,
        "equality": scene.equalities,
        "sensor": scene.sensors,
        "mesh": scene.meshes.values(),
    }


def sensor_targets(scene: Scene) -> dict[str, set[str]]:
    """Kind of SENSOR_TARGETS → the names a sensor may point at; the world, a body, is ""."""
    bodies = {body.name for body in scene.bodies} | {""}
    return {
        "": {""},
        "body": bodies,
        "inertia": bodies,
        "subtree": bodies,
        "site": {site.name for site in scene.sites},
        "shape": {shape.name for shape in scene.shapes},
        "joint": {joint.name for joint in scene.joints},
        "tendon": {tendon.name for tendon in scene.tendons},
        "actuator": {actuator.name for actuator in scene.actuators},
    }


def check_names(scene: Scene) -> None:
    """Names are non-empty strings, unique per kind, and meshes are filed under their own."""
    for kind, members in named_kinds(scene).items():
        seen: set[str] = set()
        for member in members:
            if not isinstance(member.name, str) or not member.name:
                raise SceneError(f"{kind} with name {member.name!r}; give it a non-empty string")
            if member.name in seen:
                raise SceneError(
                    f"two {kind} items are named {member.name!r}; names must be unique per kind: rename one"
                )
            seen.add(member.name)
    for key, mesh in scene.meshes.items():
        if key != mesh.name:
            raise SceneError(f"mesh {mesh.name!r} is filed as {key!r} in Scene.meshes; use its name as the key")


def check_reference(where: str, kind: str, name: str | None, known: Collection[str]) -> str:
    """Returns `name`, or raises unless it is one of the `known` names of `kind`; the message offers the nearest."""
    if name is None:
        raise SceneError(f"{where} names no {kind}; set it")
    if name not in known:
        raise SceneError(f"{where}: {unknown_name(kind, name, known)}")
    return name


def check_choice(where: str, field: str, value: Any, choices: Iterable[Any]) -> None:
    """Raises unless `value` is one of `choices`."""
    choices = tuple(choices)
    if value not in choices:
        raise SceneError(f"{where}: {field} is {value!r}; use one of {', '.join(map(repr, choices))}")


def check_fields(item: Any, *fields: str) -> None:
    """Raises if one of the item's numbers in `fields` is not what the table of ranges says; None is not given."""
    rules = FIELDS[_kind(item)]
    for field in fields:
        value, rule = getattr(item, field), rules[field]
        if value is None:
            continue
        if rule in ("ordered", "lengths"):
            _check_ordered(item, field)
        rule = NOT_NEGATIVE if rule == "lengths" else rule
        if isinstance(rule, Range) and np.any(rule.outside(np.asarray(value, dtype=float))):
            raise SceneError(f"{place(item)}: {field} is {value}; {rule.words}")


def _kind(item: Any) -> str:
    """The item's key in the table of ranges."""
    return "contact_override" if isinstance(item, ContactOverride) else type(item).__name__.lower()


def check_unit(item: Any, field: str, part: slice = slice(None)) -> None:
    """Raises unless the vector or quaternion in `field` (or in `part` of it) has length one."""
    value = np.asarray(getattr(item, field), dtype=float)[part]
    length = float(np.linalg.norm(value))
    if length < UNIT_TOLERANCE:
        raise SceneError(f"{place(item)}: {field} is zero and so has no direction; give a unit vector")
    if abs(length - 1.0) > UNIT_TOLERANCE:
        raise SceneError(f"{place(item)}: {field} {value} has length {length:.9g}; divide it by its length")


def _check_ordered(item: Any, field: str) -> None:
    """Raises if the (lower, upper) pair in `field` is reversed."""
    bounds = getattr(item, field)
    if bounds[0] > bounds[1]:
        raise SceneError(f"{place(item)}: {field} {tuple(bounds)} has lower above upper; swap them")


def check_arrays(scene: Scene) -> None:
    """Arrays have the declared shape and every number is finite, but for limits and ranges, which may be open."""
    for item in items(scene):
        _check_shapes(item)
        for field in dataclasses.fields(item):
            _check_finite(item, field.name)


def _check_shapes(item: Any) -> None:
    expected = dict(_ARRAY_SHAPES.get(type(item), {}))
    if isinstance(item, Joint) and item.kind in JOINT_Q_SIZE:
        q_size, dof_size = JOINT_Q_SIZE[item.kind], JOINT_DOF_SIZE[item.kind]
        expected |= {"initial_q": (q_size,), "rest": (q_size,), "initial_qd": (dof_size,)}
    elif isinstance(item, Tendon):
        expected["coefficients"] = (len(item.joints),)
    elif isinstance(item, Mesh):
        expected |= {"vertices": (len(item.vertices), 3), "faces": (len(item.faces), 3)}
    for field, shape in expected.items():
        value = getattr(item, field)
        if value is not None and np.shape(value) != shape:
            raise SceneError(f"{place(item)}: {field} has shape {np.shape(value)}; it must have {shape}")


def _check_finite(item: Any, field: str) -> None:
    value = getattr(item, field)
    if value is None or isinstance(value, (str, bool)):
        return
    try:
        numbers = np.asarray(value, dtype=float)
    except (TypeError, ValueError):  # lists of names and the like hold no numbers
        if isinstance(value, (np.ndarray, tuple)):
            raise SceneError(f"{place(item)}: {field} is {value!r}; it must hold numbers") from None
        return
    if np.isnan(numbers).any():
        raise SceneError(f"{place(item)}: {field} is NaN ({value}); give a number")
    if field not in INFINITE_ALLOWED and np.isinf(numbers).any():
        raise SceneError(f"{place(item)}: {field} is infinite ({value}); give a finite number")
