"""Which controls a simulator takes, by name and size, in what order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from warpsim.core.errors import InputError, unknown_name
from warpsim.tape.program import Field


class Controllable(Protocol):
    """What takes controls: a compiled scene, or the outline of one."""

    @property
    def model(self) -> Any:
        """The bodies, with their sizes."""

    @property
    def matters(self) -> Sequence[Any]:
        """What else there is."""

    @property
    def has_bodies(self) -> bool:
        """Whether the state has coordinates of bodies."""

    @property
    def controls(self) -> Mapping[str, Field]:
        """Everything that a step can be given."""


def default_controls(compiled: Controllable) -> tuple[str, ...]:
    """Actuator inputs where the scene has actuators, else drive targets where it has drives, else joint forces.

    The controls of other matters come after them.
    """
    model, matters = compiled.model, tuple(n for n in compiled.controls if "." in n)
    if not compiled.has_bodies:
        return matters
    if model.nu:
        return ("actuator", *matters)
    return ("drive_target" if model.nd else "joint_force", *matters)


class ControlNames:
    """The selected controls of a scene.

    Attributes:
        names: Controls in the order of concatenation.
        shapes: By name: of one world's control at one step.
        size: Length of the concatenation.
        worlds: W.
    """

    def __init__(self, compiled: Controllable, names: Sequence[str]) -> None:
        known, model = compiled.controls, compiled.model
        for name in names:
            if name not in known:
                raise unknown_name("control", name, known)
            if not known[name].nbytes and (model.nv or compiled.matters):
                raise InputError(f"control {name!r} is empty: this scene has nothing it acts on; leave it out")
        if len(set(names)) < len(names):
            raise InputError(f"controls={tuple(names)}: one is named twice")
        self.names = tuple(names)
        self.worlds = model.worlds
        self.shapes = {name: known[name].value_shape for name in names}
        self._widths = {name: math.prod(shape) for name, shape in self.shapes.items()}
        self.size = sum(self._widths.values())

    def slice(self, name: str) -> slice:
        """Where a control lies in the concatenation."""
        if name not in self.names:
            raise unknown_name("selected control", name, self.names)
        first = sum(self._widths[n] for n in self.names[: self.names.index(name)])
        return slice(first, first + self._widths[name])
