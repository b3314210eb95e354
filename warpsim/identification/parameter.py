"""What may vary: entries of parameter arrays and USD attributes, shared by all recordings or one value for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from warpsim.core.errors import InputError, unknown_name
from warpsim.identification.delays import is_delay
from warpsim.sim.attributes.attribute import Attribute
from warpsim.sim.simulator import Simulator


@dataclass(frozen=True)
class Parameter:
    """A value to be found.

    Attributes:
        key: "/prim.attribute" (a USD attribute, in USD units), "array" or "array:item" (a parameter array of the
            simulator, SI; the item by its name or number, e.g. "body.com:cube"); several keys share the value. "delay"
            (s by which all channels show the motion late), "delay:CHANNEL", "delay:controls" (by which they act late):
            need both bounds.
        components: Places that vary in the flattened item; None: all.
        tied: The components vary by one common factor, which is then the value.
        lower: Least value, one number or one per component.
        upper: Largest value.
        start: Where the search begins; None: the scene's value (1 for a tied factor).
        prior: Standard deviation of what is known of the value beforehand, around its start; None: nothing is known.
        scale: By how much it may be expected to change; None: the prior, else a tenth of the start, else 0.1.
        per_recording: Each recording has its own value, with the prior around the start; a nuisance value.
    """

    key: str | tuple[str, ...]
    components: Sequence[int] | None = None
    tied: bool = False
    lower: float | Sequence[float] = -np.inf
    upper: float | Sequence[float] = np.inf
    start: float | Sequence[float] | None = None
    prior: float | None = None
    scale: float | None = None
    per_recording: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys."""
        return (self.key,) if isinstance(self.key, str) else tuple(self.key)


@dataclass(frozen=True)
class Target:
    """One place that a parameter sets.

    Attributes:
        name: Of the array, or the attribute's path.
        attribute: The handle; None: an array.
        item: Index into the array; (): the array is one item.
        base: The item's or attribute's own value, flattened.
        places: Components that vary.
    """

    name: str
    attribute: Attribute | None
    item: tuple[int, ...]
    base: np.ndarray
    places: np.ndarray


class BoundParameter:
    """A parameter found in a simulator.

    Attributes:
        spec: As it was given.
        targets: What it sets.
        names: One per number.
        start: (k,) values at which x = 0.
        scale: (k,) change of the value per unit of x.
        lower: (k,) bounds of x.
        upper: (k,) likewise.
        weight: (k,) prior precision's root in units of x; 0: no prior.
    """

    def __init__(self, spec: Parameter, sim: Simulator) -> None:
        self.spec = spec
        if len({is_delay(key) for key in spec.keys}) > 1:
            raise InputError(f"{spec.keys}: a delay cannot share its value with something of the scene")
        self.targets = [_target(sim, key, spec.components) for key in spec.keys]
        own = self.targets[0].base[self.targets[0].places]
        if any(len(t.places) != len(own) for t in self.targets):
            raise InputError(f"{spec.keys}: items of different sizes cannot share a value")
        size = 1 if spec.tied else len(own)
        given = (np.ones(1) if spec.tied else own) if spec.start is None else spec.start
        self.start = _spread(spec, "start", given, size)
        scale = spec.scale if spec.scale is not None else spec.prior
        if self.is_delay and scale is None and np.isfinite(self.interval).all():
            scale = 0.1 * (self.interval[1] - self.interval[0])
        self.scale = (
            np.where(self.start != 0, 0.1 * np.abs(self.start), 0.1) if scale is None else np.full(size, float(scale))
        )
        low, high = _spread(spec, "lower", spec.lower, size), _spread(spec, "upper", spec.upper, size)
        if not ((low <= self.start) & (self.start <= high) & (low < high)).all():
            raise InputError(
                f"{self.label} starts at {self.start.tolist()}, which is not within lower={low.tolist()} and "
                f"upper={high.tolist()}; give start=, or wider bounds"
            )
        if self.is_delay and not np.isfinite(self.interval).all():
            raise InputError(
                f"{self.label}: give lower= and upper=, s; samples that might leave the rollout are masked"
            )
        if (self.scale <= 0).any() or (spec.prior is not None and spec.prior <= 0):
            raise InputError(f"{self.label}: prior and scale must be above 0")
        self.lower, self.upper = (low - self.start) / self.scale, (high - self.start) / self.scale
        self.weight = np.zeros(size) if spec.prior is None else self.scale / spec.prior
        self.names = self._names()

    @property
    def label(self) -> str:
        """The first key, and how many others share its value."""
        others = f" (+{len(self.spec.keys) - 1})" if len(self.spec.keys) > 1 else ""
        return self.spec.keys[0] + others

    @property
    def size(self) -> int:
        """k."""
        return len(self.start)

    @property
    def is_delay(self) -> bool:
        """Whether it is a time by which something is late, and nothing of the scene."""
        return is_delay(self.spec.keys[0])

    @property
    def interval(self) -> tuple[float, float]:
        """The first number's bounds, in its own unit."""
        return float(np.ravel(self.spec.lower)[0]), float(np.ravel(self.spec.upper)[0])

    def _names(self) -> list[str]:
        if self.spec.tied:
            return [f"{self.label} factor"]
        first = self.targets[0]
        return [self.label + (f"[{p}]" if first.base.size > 1 else "") for p in first.places]

    def values(self, x: torch.Tensor) -> torch.Tensor:
        """(…, k) values at x (…, k)."""
        return torch.as_tensor(self.start) + torch.as_tensor(self.scale) * x

    def written(self, values: torch.Tensor, target: Target) -> torch.Tensor:
        """(B, places) what a target is set to for values (B, k)."""
        return values * torch.as_tensor(target.base[target.places]) if self.spec.tied else values


def _spread(spec: Parameter, what: str, given: Any, size: int) -> np.ndarray:
    numbers = np.asarray(given, dtype=np.float64)
    if np.isnan(numbers).any() or numbers.ndim > 1 or numbers.size not in (1, size):
        raise InputError(f"{spec.keys[0]}: {what}={given} does not fit its {size} number(s)")
    return np.broadcast_to(numbers, (size,)).copy()


def _target(sim: Simulator, key: str, components: Sequence[int] | None) -> Target:
    if is_delay(key):
        return Target(key, None, (), np.zeros(1), np.zeros(1, dtype=int))
    if key.startswith("/"):
        handle = sim.attribute(key)
        base = np.asarray(handle.numbers, dtype=np.float64).ravel()
        return Target(handle.path, handle, (), base, _places(key, base, components))
    name, _, item = key.partition(":")
    array = sim.parameter(name)[0].cpu().numpy()
    index = () if not item else (_item(sim, name, item, len(array)),)
    if item and array.ndim == 0:
        raise InputError(f"{key}: {name!r} is one number; leave the item out")
    base = np.asarray(array[index], dtype=np.float64).ravel()
    return Target(name, None, index, base, _places(key, base, components))


def _places(key: str, base: np.ndarray, components: Sequence[int] | None) -> np.ndarray:
    places = np.arange(base.size) if components is None else np.asarray(components, dtype=int)
    if len(places) == 0 or places.min() < 0 or places.max() >= base.size:
        raise InputError(f"{key}: components={list(places)} of a value of {base.size}")
    return places


def _item(sim: Simulator, array: str, item: str, count: int) -> int:
    """The place of an item in a parameter array."""
    if item.isdigit() and int(item) < count:
        return int(item)
    group = array.partition(".")[0]
    tables = {
        "body": sim.body_names,
        "shape": tuple(shape.name for shape in sim.scene.shapes),
        "joint": sim.joint_names if count == len(sim.joint_names) else sim.dof_names,
        "limit": sim.joint_names if count == len(sim.joint_names) else sim.dof_names,
        "actuator": sim.actuator_names,
        "drive": sim.drive_names,
    }
    names = tables.get(group, ())
    if item in names and len(names) == count:
        return names.index(item)
    if group in ("joint", "limit") and item in sim.joint_names and count == sim.nv:
        return sim.joint(item).dofs.start
    raise unknown_name(f"item of {array!r}", item, names or [str(i) for i in range(count)])
