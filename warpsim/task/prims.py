"""Typed access to the prims of a task: values in SI, places of prims, and errors that begin with the prim's path."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from pxr import Sdf, Usd, UsdGeom

from warpsim.core.errors import TaskError, unknown_name
from warpsim.core.numpy_quaternions import matrix_to_quat
from warpsim.io.usd.attributes import AttributeReader
from warpsim.io.usd.context import Context
from warpsim.io.usd.frames import Pose
from warpsim.io.usd.ledger_scan import Ledger
from warpsim.io.usd.schema.definitions import definitions
from warpsim.io.usd.units import StageUnits, stage_units
from warpsim.objective import Fixed, Keyframes, OnBody, OnMatter, Place, matter_places
from warpsim.scene import Scene

_AXES = ("x", "y", "z")


@dataclass(frozen=True)
class TaskStage:
    """A stage with the scene that was read from it.

    Attributes:
        stage: The stage.
        scene: Of the same stage.
        start: Time code at which the task starts.
    """

    stage: Usd.Stage
    scene: Scene
    start: float = 0.0

    @cached_property
    def units(self) -> StageUnits:
        """Of the stage."""
        return stage_units(self.stage)

    @cached_property
    def bodies(self) -> frozenset[str]:
        """Paths of the bodies."""
        return frozenset(body.name for body in self.scene.bodies)

    @cached_property
    def _matter_places(self) -> dict[str, OnMatter]:
        return matter_places(self.scene)

    @cached_property
    def _context(self) -> Context:
        ledger = Ledger()
        return Context(self.stage, self.units, ledger, AttributeReader(ledger, None))

    def seconds(self, codes: Any) -> np.ndarray:
        """Time codes as seconds of the task."""
        return (np.asarray(codes, dtype=float) - self.start) / self.stage.GetTimeCodesPerSecond()

    def vector(self, value: Any, factor: float) -> tuple[float, float, float]:
        """A vector in stage axes as one in the world's, times a factor."""
        x, y, z = (factor * (self.units.to_world @ np.array(value, dtype=float))).tolist()
        return x, y, z

    def scale(self, prim: Usd.Prim) -> np.ndarray:
        """(3,) m per unit of the prim's own coordinates."""
        return self.units.length * self._context.frame(prim).scale

    def place(self, prim: Usd.Prim) -> Place:
        """Where a prim is: a place of a matter, carried by a body, keyframed, or fixed."""
        if str(prim.GetPath()) in self._matter_places:
            return self._matter_places[str(prim.GetPath())]
        pose = self._context.frame(prim).pose
        carrier = prim
        while not carrier.IsPseudoRoot():
            if str(carrier.GetPath()) in self.bodies:
                return _on_body(str(carrier.GetPath()), self._context.frame(carrier).pose.inverse() @ pose)
            carrier = carrier.GetParent()
        codes = _sampled(prim)
        if len(codes) > 0:
            poses = [self._pose_at(prim, code) for code in codes]
            rotations = np.array([p.rotation for p in poses])
            return Keyframes(self.seconds(codes), np.array([p.position for p in poses]), rotations)
        return Fixed(_three(pose.position), _four(pose.rotation))

    def _pose_at(self, prim: Usd.Prim, code: float) -> Pose:
        matrix = np.array(UsdGeom.XformCache(Usd.TimeCode(code)).GetLocalToWorldTransform(prim)).T
        turn = self.units.to_world
        linear = turn @ matrix[:3, :3]
        axes = linear / np.linalg.norm(linear, axis=0)
        if np.linalg.det(axes) < 0:
            axes = axes * np.array([-1.0, 1.0, 1.0])  # a mirrored prim, as `split_affine` has it
        return Pose(self.units.length * (turn @ matrix[:3, 3]), matrix_to_quat(axes))


def _fits(kind: Sdf.ValueTypeName, value: Any) -> bool:
    """Whether a value can stand for one of the schema's type, whatever type the file gives the attribute."""
    if kind.isArray:
        return hasattr(value, "__len__") and all(_fits(kind.scalarType, item) for item in value)
    sample = kind.defaultValue
    if isinstance(sample, bool | str):
        return isinstance(value, type(sample))
    if isinstance(sample, int):
        return isinstance(value, int) and not isinstance(value, bool)
    if hasattr(sample, "__len__"):
        return hasattr(value, "__len__") and len(value) == len(sample) and all(map(_is_real, value))
    return _is_real(value)


def _is_real(value: Any) -> bool:
    return isinstance(value, float | int | Sdf.TimeCode) and not isinstance(value, bool)


def _on_body(body: str, pose: Pose) -> OnBody:
    return OnBody(body, _three(pose.position), _four(pose.rotation))


def _three(values: np.ndarray) -> tuple[float, float, float]:
    x, y, z = np.asarray(values, dtype=float).tolist()
    return x, y, z


def _four(values: np.ndarray) -> tuple[float, float, float, float]:
    w, x, y, z = np.asarray(values, dtype=float).tolist()
    return w, x, y, z


def _sampled(prim: Usd.Prim) -> list[float]:
    """Time codes at which the prim's place is keyframed, by itself or by what carries it."""
    codes: set[float] = set()
    while not prim.IsPseudoRoot():
        xformable = UsdGeom.Xformable(prim)
        if xformable:
            codes.update(xformable.GetTimeSamples())
            if xformable.GetResetXformStack():
                break
        prim = prim.GetParent()
    return sorted(codes)


class TaskPrim:
    """One prim of a task: its properties by the schema's names.

    Attributes:
        prim: The prim.
        path: Its path.
        kind: Its type.
    """

    def __init__(self, context: TaskStage, prim: Usd.Prim) -> None:
        """Checks type and names.

        Raises:
            TaskError: A type or an authored property that no schema of ours has.
        """
        self.context, self.prim = context, prim
        self.path, self.kind = str(prim.GetPath()), str(prim.GetTypeName())
        known = definitions()
        if self.kind not in known:
            raise TaskError(f"{self.path}: {unknown_name('type of task prim', self.kind, known)}")
        self._known = known[self.kind]
        for item in prim.GetAuthoredProperties():
            name = item.GetName()
            if name not in self._known and ":" not in name:
                raise TaskError(f"{self.path}: {unknown_name(f'property of {self.kind}', name, self._known)}")

    def fail(self, text: str) -> TaskError:
        """The error to raise."""
        return TaskError(f"{self.path}: {text}")

    def get(self, name: str) -> Any:
        """An attribute's value: authored, else the fallback; None: neither."""
        item, attribute = self._known[name], self.prim.GetAttribute(name)
        if not attribute or not attribute.HasAuthoredValue():
            return item.fallback
        value = attribute.Get()
        if value is None and attribute.GetNumTimeSamples():
            value = attribute.Get(Usd.TimeCode.EarliestTime())
        if value is not None and not _fits(item.kind, value):
            raise self.fail(f"{name} is a {type(value).__name__}; its type is {item.kind}")
        if item.allowed and value not in item.allowed:
            raise self.fail(f"{name} is {value!r}; use one of {', '.join(item.allowed)}")
        return value

    def number(self, name: str, factor: float = 1.0) -> float:
        """A number that must be there, times a factor."""
        value = self.optional(name, factor)
        if value is None:
            raise self.fail(f"needs a value of {name!r}")
        return value

    def optional(self, name: str, factor: float = 1.0) -> float | None:
        """A finite number times a factor, or None."""
        value = self.get(name)
        if value is None:
            return None
        if not np.isfinite(float(value)):
            raise self.fail(f"{name} is {value}; give a finite number")
        return float(value) * factor

    def numbers(self, name: str) -> np.ndarray | None:
        """An array, or None where it is not authored or empty."""
        value = self.get(name)
        return None if value is None or not len(value) else np.array(value, dtype=float)

    def axes(self) -> str:
        """The world's axes for those of the stage that `axes` names."""
        chosen = [str(axis).lower() for axis in self.get("axes")]
        if not chosen or not set(chosen) <= set(_AXES):
            raise self.fail(f"axes is {chosen}; use some of x, y and z")
        order = {
            axis: _AXES[int(np.argmax(np.abs(column)))]
            for axis, column in zip(_AXES, self.context.units.to_world.T, strict=True)
        }
        return "".join(sorted(order[axis] for axis in dict.fromkeys(chosen)))

    def targets(self, name: str) -> list[Sdf.Path]:
        """Targets of a relationship, forwarded."""
        relationship = self.prim.GetRelationship(name)
        return list(relationship.GetForwardedTargets() or relationship.GetTargets()) if relationship else []

    def prims(self, name: str) -> list[Usd.Prim]:
        """Prims a relationship targets, which must exist."""
        found = []
        for path in self.targets(name):
            prim = self.context.stage.GetPrimAtPath(path.GetPrimPath())
            if not prim:
                raise self.fail(f"{name} targets <{path}>, and there is no such prim")
            found.append(prim)
        return found

    def one(self, name: str) -> Usd.Prim:
        """The prim a relationship targets, exactly one."""
        found = self.prims(name)
        if len(found) != 1:
            raise self.fail(f"{name} must target one prim; it targets {len(found)}")
        return found[0]

    def moving(self, name: str) -> OnBody:
        """The place on a body that a relationship targets."""
        prim = self.one(name)
        place = self.context.place(prim)
        if not isinstance(place, OnBody):
            raise self.fail(f"{name} targets {prim.GetPath()}, which is neither a body nor part of one")
        return place

    def movable(self, name: str) -> OnBody | OnMatter:
        """The place on a body, or of another matter, that a relationship targets."""
        place = self.context.place(self.one(name))
        return place if isinstance(place, OnMatter) else self.moving(name)

    def goal(self) -> Place:
        """The target: a prim's place, or numbers."""
        if self.targets("target"):
            return self.context.place(self.one("target"))
        position = self.get("position") if "position" in self._known else None
        if position is None:
            numbers = ", or a position" if "position" in self._known else ""
            raise self.fail(f"needs a target prim{numbers}")
        return Fixed(self.context.vector(position, self.context.units.length))

    def names(self, name: str, known: Collection[str], what: str) -> tuple[str, ...]:
        """Paths of the prims a relationship targets, which must be among the names of something."""
        found = tuple(str(prim.GetPath()) for prim in self.prims(name))
        for path in found:
            if path not in known:
                raise self.fail(f"{name}: {unknown_name(what, path, known)}")
        return found
