"""Values of attributes, as tensors, → the parameters and the initial state they feed, in torch's graph.

Attributes whose readings are affine, and that do not meet in a product, add up: base + Σ J·(value − base value). The
others, and values beyond where a reading was found to be affine, are read together, anew at each value, and differenced
there when a gradient is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from warpsim.autograd.exchange import torch_real
from warpsim.autograd.node import Adjoints, Made, Node
from warpsim.core.errors import InputError, RangeError, SceneError
from warpsim.sim.attributes.attribute import Attribute
from warpsim.sim.attributes.scene_map import Point, SceneMap
from warpsim.sim.attributes.slopes import agrees, central_differences, difference, scales

_KEPT_POINTS = 64
_TRIES = 6


class Feed:
    """What a set of attributes feeds.

    Attributes:
        attributes: In the order of their values.
    """

    def __init__(self, scene_map: SceneMap, attributes: Sequence[Attribute]) -> None:
        self.attributes = tuple(attributes)
        self._map = scene_map
        self._points: dict[bytes, Point] = {}
        self._slopes: dict[bytes, np.ndarray] = {}
        self._together = {a for a in self.attributes if not a.slope.affine}
        while not self._adds_up():
            pass
        touched = np.zeros(len(scene_map.base.numbers), bool)
        for attribute in self.attributes:
            touched[attribute.slope.places] = True
        self._reach = scene_map.names(touched)

    def tensors(self, values: Sequence[torch.Tensor], worlds: int) -> dict[str, torch.Tensor]:
        """Parameters by name, and "state.…": (n, …), or (W, n, …) where a value differs between worlds.

        Args:
            values: In the order of `attributes`, float64, each of its attribute's shape or with the worlds in front.
            worlds: W.
        """
        made = Node.apply(_FeedCall(self, worlds), *values)
        return dict(zip(self._reach, made, strict=True))

    def numbers(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """(M,) for one value of each attribute."""
        total = self._map.base.numbers.copy()
        joint = self._joint(values)
        if joint:
            total = self._point(joint).numbers.copy()
        for attribute, value in zip(self.attributes, values, strict=True):
            if attribute not in joint:
                change = (value - attribute.numbers).ravel()
                if change.any():
                    total[attribute.slope.places] += attribute.slope.matrix @ change
        return total

    def pull(self, values: Sequence[np.ndarray], adjoint: np.ndarray) -> list[np.ndarray]:
        """Gradients by each attribute's value, for the adjoint (M,) of `numbers`."""
        joint = self._joint(values)
        found = []
        for attribute in self.attributes:
            if attribute in joint:
                gradient = self._local_slope(joint, attribute).T @ adjoint
            else:
                gradient = attribute.slope.matrix.T @ adjoint[attribute.slope.places]
            found.append(gradient.reshape(attribute.shape))
        return found

    def _joint(self, values: Sequence[np.ndarray]) -> dict[Attribute, np.ndarray]:
        """The values that are read together."""
        pairs = zip(self.attributes, values, strict=True)
        return {a: value for a, value in pairs if a in self._together or not a.slope.holds(value)}

    def split(self, numbers: np.ndarray) -> list[np.ndarray]:
        """(…, M) → the parts that are fed, (…, n, …) each."""
        lead = numbers.shape[:-1]
        return [numbers[..., self._map.slices[name]].reshape((*lead, *self._map.shapes[name])) for name in self._reach]

    def join(self, parts: Sequence[np.ndarray | None], lead: tuple[int, ...]) -> np.ndarray:
        """The inverse of `split` for adjoints, zero elsewhere."""
        numbers = np.zeros((*lead, len(self._map.base.numbers)))
        for name, part in zip(self._reach, parts, strict=True):
            if part is not None:
                numbers[..., self._map.slices[name]] = part.reshape(*lead, -1)
        return numbers

    def _adds_up(self) -> bool:
        """Checks that effects add; if they do not, more attributes are read together and False is returned."""
        apart = [a for a in self.attributes if a not in self._together]
        if not apart or len(self.attributes) == 1:
            return True
        base, generator, checked = self._map.base, np.random.default_rng(0), 0
        for _ in range(_TRIES):
            values = [_nudged(a, generator) for a in self.attributes]
            try:
                point = self._read(dict(zip(self.attributes, values, strict=True)))
                predicted = difference(self.numbers(values), base.numbers)
            except (SceneError, InputError):
                continue
            if point.jump(base) is not None:
                continue
            if not agrees(point, base, predicted, np.abs(predicted)):
                off = np.abs(difference(point.numbers, base.numbers) - predicted)
                wrong = np.flatnonzero(off > 1e-9 * off.max())
                meeting = {a for a in apart if np.isin(a.slope.places, wrong).any()}
                self._together |= meeting or set(apart)
                return False
            checked += 1
            if checked == 2:
                return True
        if not checked:
            self._together |= set(apart)
        return True

    def _read(self, values: Mapping[Attribute, np.ndarray]) -> Point:
        return self._map.read({a.path: a.kind.exact(numbers) for a, numbers in values.items()})

    def _point(self, values: Mapping[Attribute, np.ndarray]) -> Point:
        key = _key(values)
        if key not in self._points:
            try:
                point = self._read(values)
            except SceneError as error:
                raise RangeError(f"the stage cannot be simulated at {_shown(values)}: {error}") from error
            jump = self._map.base.jump(point)
            if jump is not None:
                raise RangeError(f"at {_shown(values)} the scene is another one: {jump}")
            _keep(self._points, key, point)
        return self._points[key]

    def _local_slope(self, values: Mapping[Attribute, np.ndarray], attribute: Attribute) -> np.ndarray:
        key = attribute.path.encode() + _key(values)
        if key not in self._slopes:

            def read(numbers: np.ndarray) -> Point:
                return self._read({**values, attribute: numbers})

            slope = central_differences(read, self._point(values), values[attribute])
            _keep(self._slopes, key, slope)
        return self._slopes[key]


def _nudged(attribute: Attribute, generator: np.random.Generator) -> np.ndarray:
    """The attribute's value moved a little in a direction of no special kind."""
    parts = generator.uniform(-1.0, 1.0, size=attribute.numbers.size)
    step = (2.0**-5 * parts * scales(attribute.numbers)).reshape(attribute.shape)
    return np.clip(attribute.numbers + step, attribute.lower, attribute.upper)


def _key(values: Mapping[Attribute, np.ndarray]) -> bytes:
    return b"".join(numbers.tobytes() for numbers in values.values())


def _keep(cache: dict[bytes, Any], key: bytes, item: Any) -> None:
    if len(cache) >= _KEPT_POINTS:
        del cache[next(iter(cache))]
    cache[key] = item


def _shown(values: Mapping[Attribute, np.ndarray]) -> str:
    return ", ".join(f"{a.path} = {numbers.tolist()}" for a, numbers in values.items())


def _in_each_world(feed: Feed, values: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """The numbers of each world; an error names all worlds whose values cannot be simulated."""
    made, failed = [], {}
    for world, given in enumerate(values):
        try:
            made.append(feed.numbers(given))
        except RangeError as error:
            failed[world] = error
    if failed:
        first = next(iter(failed.values()))
        raise RangeError(str(first), failed if len(values) > 1 else ()) from first
    return made


@dataclass(frozen=True)
class _Values:
    """Values of all attributes, one set for each world, or one for all of them."""

    numbers: list[list[np.ndarray]]
    varies: list[bool]
    device: torch.device

    @property
    def shared(self) -> bool:
        """Whether all worlds have the same values."""
        return not any(self.varies)


@dataclass(frozen=True)
class _FeedCall:
    """Values of attributes → the parts that are fed."""

    feed: Feed
    worlds: int

    def forward(self, values: Sequence[torch.Tensor]) -> Made:
        """Evaluates the map, world by world where values differ."""
        feed, numbers = self.feed, [value.detach().cpu().numpy() for value in values]
        varies = [n.ndim > len(a.shape) for a, n in zip(feed.attributes, numbers, strict=True)]
        count = self.worlds if any(varies) else 1
        by_world = [[n[w] if varied else n for n, varied in zip(numbers, varies, strict=True)] for w in range(count)]
        kept = _Values(by_world, varies, values[0].device)
        made = np.stack(_in_each_world(feed, by_world))
        parts = feed.split(made[0] if kept.shared else made)
        tensors = (torch.as_tensor(np.array(p, order="C"), dtype=torch_real, device=kept.device) for p in parts)
        return Made(tuple(tensors), kept=kept)

    def backward(
        self, made: Made, tensors: Sequence[torch.Tensor], shapes: Sequence[torch.Size], adjoints: Adjoints
    ) -> list[torch.Tensor | None]:
        """Pulls the adjoints of the parts back to the values; worlds add up in order where a value is shared."""
        kept: _Values = made.kept
        parts = [None if a is None else a.detach().cpu().numpy().astype(np.float64) for a in adjoints]
        joined = self.feed.join(parts, () if kept.shared else (len(kept.numbers),)).reshape(len(kept.numbers), -1)
        pulled = [self.feed.pull(numbers, adjoint) for numbers, adjoint in zip(kept.numbers, joined, strict=True)]
        gradients: list[torch.Tensor | None] = []
        for place, varied in enumerate(kept.varies):
            stacked = np.stack([world[place] for world in pulled])
            gradient = stacked if varied else stacked.sum(axis=0)
            gradients.append(torch.as_tensor(gradient, dtype=torch.float64, device=kept.device))
        return gradients
