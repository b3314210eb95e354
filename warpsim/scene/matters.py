"""Matters other than rigid bodies: what a scene says of one, and the kinds that are known.

A kind is registered once per process, by a package or by a user's own file. Readers then ask it which prims of a stage
are its own, the compiler for kernels, trajectories for what to draw. See docs/matter.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warpsim.core.errors import InputError, SceneError, unknown_name
from warpsim.core.registry import provided

_NAME = re.compile(r"[A-Za-z_]\w*")
TAKEN = frozenset(
    "actuator body contact_override drive equality fluid joint limit loop options pair sensor shape site state tendon "
    "tendon_limit weight world".split()
)
"""Groups of parameters that rigid scenes have."""

BUILT_IN = {
    "deformable": frozenset(
        f"{family}Physics{form}DeformableSimAPI" for family in ("", "Omni") for form in ("Surface", "Volume", "Curves")
    ),
    "liquid": frozenset(
        {"NewtonPointsDeformableSimAPI", "NewtonMPMParticleAPI", "NewtonParticleAPI", "PhysxParticleSetAPI"}
    ),
}
"""Kinds that come with warpsim, loaded when a scene names one or a prim has one of these API schemas applied."""


@dataclass
class MatterDescription:
    """One matter of a scene: plain numbers in SI, z up.

    Attributes:
        kind: Name of its `MatterKind`.
        name: Unique in its scene; the fields of its state, its parameters and outputs are called "name.field".
        path: The prim it was read from; "": none.
        parameters: What may vary and be differentiated by, (n, …) or () each, by field.
        initial: Initial state by field, (n, …) each.
        data: Whatever else its kind needs: topology, names of bodies, settings.
        positive: Parameters that must stay above 0.
    """

    kind: str
    name: str
    path: str = ""
    parameters: dict[str, np.ndarray] = field(default_factory=dict)
    initial: dict[str, np.ndarray] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    positive: tuple[str, ...] = ()

    def check(self) -> None:
        """Raises `SceneError` where a number cannot be simulated with."""
        where = self.path or self.name
        if not _NAME.fullmatch(self.name) or self.name in TAKEN:
            raise SceneError(f"{where}: {self.name!r} cannot name a matter; use a plain name that is not a group's own")
        for group, values in (("parameter", self.parameters), ("initial", self.initial)):
            for name, value in values.items():
                if not np.isfinite(value).all():
                    raise SceneError(f"{where}: {group} {name!r} holds numbers that are not finite")
        for name in self.positive:
            if (np.asarray(self.parameters[name]) <= 0.0).any():
                raise SceneError(f"{where}: {name} must be above 0")


class MatterKind:
    """What a kind of matter brings beside its kernels; derive from it and register an instance.

    Attributes:
        name: Of the kind.
    """

    name = ""

    def claims(self, prim: Any) -> bool:
        """Whether a USD prim is a matter of this kind; whatever is on the prim is then its business."""
        return False

    def read(self, prim: Any, context: Any) -> MatterDescription:
        """Describes the matter on a prim; `context` is the reader's, with units, frames and typed attributes."""
        raise NotImplementedError

    def write(self, description: MatterDescription, stage: Any, made: Mapping[tuple[str, str], Any]) -> bool:
        """Writes prims that `read` understands to a stage in SI, z up, for a scene that came from no USD file.

        Args:
            description: What to write.
            stage: Where.
            made: The prims of ("body", name) and ("shape", name).

        Returns:
            Whether it did; otherwise the caller is told what is lost.
        """
        return False

    def compile(self, description: MatterDescription, context: Any) -> Any:
        """The `warpsim.matter.Matter` of a description; `context` is a `warpsim.matter.CompileContext`."""
        raise NotImplementedError

    def drawables(self, description: MatterDescription) -> list[Any]:
        """What is to be seen: surfaces, clouds, curves of `warpsim.view.page.content`."""
        return []

    def points(self, description: MatterDescription, states: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """(frames, n, 3) m by path of a drawable, for the states of some frames, (frames, …) by field."""
        return {}

    def places(self, description: MatterDescription) -> dict[str, tuple[str, int]]:
        """Points that objectives may name → the state field or output that holds them, (W, n, 3) m, and which."""
        return {}


_KINDS: dict[str, MatterKind] = {}


def register_matter(kind: MatterKind) -> None:
    """Makes a kind of matter known to readers and simulators of this process.

    Raises:
        InputError: Another kind has this name.
    """
    known = _KINDS.get(kind.name)
    if not kind.name or (known is not None and type(known).__qualname__ != type(kind).__qualname__):
        raise InputError(f"a kind of matter named {kind.name!r} cannot be registered: the name is empty or taken")
    _KINDS[kind.name] = kind


def matter_kind(name: str) -> MatterKind:
    """A kind by name."""
    if name not in _KINDS and name in BUILT_IN:
        register_matter(provided(f"matter:{name}")())
    if name not in _KINDS:
        raise unknown_name("kind of matter", name, {**_KINDS, **BUILT_IN})
    return _KINDS[name]


def claiming_kind(prim: Any, schemas: Collection[str]) -> MatterKind | None:
    """The first kind, in the order of registration, that claims a prim with these API schemas applied."""
    for name, marks in BUILT_IN.items():
        if name not in _KINDS and not marks.isdisjoint(schemas):
            matter_kind(name)
    return next((kind for kind in _KINDS.values() if kind.claims(prim)), None)


def check_matters(matters: list[MatterDescription]) -> None:
    """Raises `SceneError` where one cannot be simulated, or two share a name."""
    names = [matter.name for matter in matters]
    for matter in matters:
        matter_kind(matter.kind)
        matter.check()
        if names.count(matter.name) > 1:
            raise SceneError(f"{matter.path or matter.name}: two matters are named {matter.name!r}; rename one")
