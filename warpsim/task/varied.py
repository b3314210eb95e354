"""What a sweep varies: attributes and the values each takes, also as written on a command line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch

from warpsim.core.errors import MAXIMUM_COUNT, InputError
from warpsim.sim.attributes.attribute import Attribute
from warpsim.sim.simulator import Simulator

_FORM = "PATH=LOW:HIGH:COUNT, PATH=LOW:HIGH:COUNT:log, or PATH=VALUE,VALUE,…; PATH[2] is the third number of a vector"


@dataclass(frozen=True)
class Varied:
    """An attribute, or one component of it, and its values.

    Attributes:
        path: "/World/Leg.physics:mass".
        values: In the attribute's unit, as its type stores them.
        component: Of a vector, counted from 0; None: the attribute is one number.
    """

    path: str
    values: tuple[float, ...]
    component: int | None = None

    @property
    def name(self) -> str:
        """As it was written."""
        return self.path if self.component is None else f"{self.path}[{self.component}]"


def read_varied(text: str) -> Varied:
    """What a command line says is to be varied, e.g. "/World/Leg.physics:mass=0.5:2:16".

    Raises:
        InputError: It cannot be read; says how it is written.
    """
    name, equals, given = text.partition("=")
    path, bracket, component = name.strip().partition("[")
    try:
        place = int(component.removesuffix("]")) if bracket else None
        values = _range(given) if ":" in given else tuple(float(part) for part in given.split(","))
    except ValueError as error:
        raise InputError(f"--vary {text}: {error}; write {_FORM}") from error
    if not equals or not path or not component.endswith("]" if bracket else ""):
        raise InputError(f"--vary {text}: write {_FORM}")
    return Varied(path, values, place)


def _range(text: str) -> tuple[float, ...]:
    parts = text.split(":")
    if len(parts) not in (3, 4) or (len(parts) == 4 and parts[3] != "log"):
        raise ValueError(f"{text!r} is no range")
    low, high, count = float(parts[0]), float(parts[1]), int(parts[2])
    if count < 1:
        raise ValueError(f"{count} values: give 1 or more")
    if len(parts) == 3:
        return tuple(np.linspace(low, high, count).tolist())
    if not (low > 0 and high > 0):
        raise ValueError(f"{text!r}: a logarithmic range lies above 0")
    return tuple(np.geomspace(low, high, count).tolist())


class Grid:
    """All combinations of values, the last attribute's changing fastest.

    Attributes:
        varied: What varies, with values as the attributes' types store them.
        points: One tuple of values for each point.
        unit: Of each attribute.
    """

    def __init__(self, sim: Simulator, varied: Sequence[Varied]) -> None:
        """Finds the attributes.

        Raises:
            InputError: One does not exist or cannot matter, or a value or component does not fit it.
        """
        if not varied:
            raise InputError(f"a sweep needs something to vary: --vary {_FORM}")
        names = [each.name for each in varied]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{twice} is varied twice; give all its values at once")
        self._handles = [sim.attribute(each.path) for each in varied]
        self.varied = tuple(map(_checked, varied, self._handles))
        self.unit = tuple(handle.unit for handle in self._handles)
        if math.prod(len(each.values) for each in self.varied) > MAXIMUM_COUNT:
            raise InputError("a sweep over more points than can be counted; vary less at a time")
        self.points = tuple(product(*(each.values for each in self.varied)))

    def attributes(self, points: Sequence[Sequence[float]]) -> dict[Any, torch.Tensor]:
        """Values (W, …) by handle of W points, each in a world."""
        found: dict[Attribute, np.ndarray] = {}
        for handle, each, values in zip(self._handles, self.varied, zip(*points, strict=True), strict=True):
            whole = found.setdefault(handle, np.repeat(handle.numbers[None], len(points), axis=0))
            if each.component is None:
                whole[:] = np.asarray(values)
            else:
                whole[:, each.component] = values
        return {handle: torch.as_tensor(values) for handle, values in found.items()}


def _checked(varied: Varied, handle: Attribute) -> Varied:
    if not varied.values or not all(map(math.isfinite, varied.values)):
        raise InputError(f"{varied.name}: give finite values, one or more")
    size = handle.numbers.size
    if varied.component is None and handle.shape:
        raise InputError(f"{varied.path} has {size} numbers; choose one of them, {varied.path}[0] … [{size - 1}]")
    if varied.component is not None and not (len(handle.shape) == 1 and 0 <= varied.component < size):
        wanted = f"components 0 … {size - 1}" if len(handle.shape) == 1 else "no components that can be varied"
        raise InputError(f"{varied.name}: {varied.path} has {wanted}")
    kept = tuple(float(handle.rounded(np.asarray(value))) for value in varied.values)
    return Varied(varied.path, kept, varied.component)
