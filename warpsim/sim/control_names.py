"""Which controls a simulator takes, by name and size, in what order."""

from __future__ import annotations

import math
from collections.abc import Sequence

from warpsim.core.errors import InputError, unknown_name
from warpsim.rigid.model.model import Model
from warpsim.rigid.work.state import control_fields


def default_controls(model: Model) -> tuple[str, ...]:
    """Actuator inputs where the scene has actuators, else drive targets where it has drives, else joint forces."""
    if model.nu:
        return ("actuator",)
    return ("drive_target",) if model.nd else ("joint_force",)


class ControlNames:
    """The selected controls of a model.

    Attributes:
        names: Controls in the order of concatenation.
        shapes: By name: of one world's control at one step.
        size: Length of the concatenation.
        worlds: W.
    """

    def __init__(self, model: Model, names: Sequence[str]) -> None:
        known = control_fields(model)
        for name in names:
            if name not in known:
                raise unknown_name("control", name, known)
            if not known[name].nbytes and model.nv:
                raise InputError(f"control {name!r} is empty: this scene has nothing it acts on; leave it out")
        if len(set(names)) < len(names):
            raise InputError(f"controls={tuple(names)}: one is named twice")
        self.names = tuple(names)
        self.worlds = model.worlds
        self.shapes = {name: (*known[name].shape, *getattr(known[name].dtype, "_shape_", ()))[1:] for name in names}
        self._widths = {name: math.prod(shape) for name, shape in self.shapes.items()}
        self.size = sum(self._widths.values())

    def slice(self, name: str) -> slice:
        """Where a control lies in the concatenation."""
        if name not in self.names:
            raise unknown_name("selected control", name, self.names)
        first = sum(self._widths[n] for n in self.names[: self.names.index(name)])
        return slice(first, first + self._widths[name])
