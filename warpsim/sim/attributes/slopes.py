"""How the numbers physics reads depend on one attribute: derivatives of the reading by differences.

Reading is affine in most attributes (a unit, a frame). There one difference per component, however long, is the
derivative to rounding. Whether it is so is probed: in directions of no special kind, which shows products and curves,
and along each component to both sides as far as the stage allows, which shows bends (the largest of several scales
counts, a bound is met). What was probed bounds where the derivative is trusted. Elsewhere, and where reading is not
affine (rotations, products with a scale), differences are central, short and local. Values go to the reader in double
precision, so nothing is lost to the attribute's own type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from warpsim.core.errors import InputError, SceneError
from warpsim.sim.attributes.scene_map import Point

Read = Callable[[np.ndarray], Point]
"""The stage with the attribute at a value."""

_LONG_STEPS = (2.0**-3, -(2.0**-3), 2.0**-7, -(2.0**-7), 2.0**-12, -(2.0**-12))
_SHORT_STEP = 2.0**-17
_FAR = (-0.7, 6.0)
_REACH = (2.0**10, 2.0**2, 0.9, 2.0**-3)
"""How far single components are probed, in their scales: the first of these up to which the reading does not bend."""
_SHRINKS = 4
"""How often the box of these reaches is halved until its corners agree, too."""
_ROUNDING = 1e-9
_KINK = 1e-2
_CURVATURE = 1e-2


class JumpError(InputError):
    """A value has no neighbors that describe the same model."""


class KinkError(InputError):
    """The numbers physics reads bend at a value."""


@dataclass(frozen=True)
class Slope:
    """d numbers / d value.

    Attributes:
        places: (k,) places in `Point.numbers` that depend on the attribute.
        matrix: (k, n) by component.
        low: (n,) the values from which on …
        high: (n,) … and up to which it is the same; None: it holds at one value only.
    """

    places: np.ndarray
    matrix: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None

    @staticmethod
    def of(columns: np.ndarray, box: tuple[np.ndarray, np.ndarray] | None) -> Slope:
        """From a dense (M, n) matrix, and where it holds."""
        places = np.flatnonzero(columns.any(axis=1))
        low, high = (None, None) if box is None else box
        return Slope(places, columns[places], low, high)

    @property
    def affine(self) -> bool:
        """Whether it holds at more than one value."""
        return self.low is not None

    def holds(self, value: np.ndarray) -> bool:
        """Whether this is the slope all the way from the value on the stage to another."""
        if self.low is None or self.high is None:
            return False
        return bool((value.ravel() >= self.low).all() and (value.ravel() <= self.high).all())


def difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A − b, zero where both are the same infinity."""
    with np.errstate(invalid="ignore"):
        return np.where(a == b, 0.0, a - b)


def survey(read: Read, base: Point, value: np.ndarray, bounds: tuple[float, float] = (-np.inf, np.inf)) -> Slope:
    """The slope at a value, and where it is the same.

    Args:
        read: The stage with the attribute at a value.
        base: That at `value`.
        value: Of the attribute.
        bounds: The least and largest value that means something.

    Raises:
        JumpError: Every step from the value changes something discrete, or cannot be simulated.
        KinkError: The reading has a kink there.
    """
    steps, columns = _long_differences(read, base, value)
    probe = _Probe(read, base, value, steps, columns)
    box = _straight_box(probe, bounds) if probe.is_straight() else None
    if box is not None:
        return Slope.of(columns, box)
    return Slope.of(central_differences(read, base, value), None)


def scales(value: np.ndarray) -> np.ndarray:
    """By how much components may typically change: their size, or that of the others, or one."""
    size = np.abs(value).ravel()
    typical = size.max(initial=0.0) or 1.0
    return np.where(size > 0.0, size, typical)


def central_differences(read: Read, base: Point, value: np.ndarray) -> np.ndarray:
    """(M, n) local derivatives.

    Raises:
        JumpError: As in `survey`.
        KinkError: As in `survey`.
    """
    columns = []
    largest = float(scales(value).max())
    for i in range(value.size):
        ahead, behind = (_moved(value, i, sign * _SHORT_STEP * largest) for sign in (1.0, -1.0))
        after, before = _steady(read, base, ahead), _steady(read, base, behind)
        rise, fall = difference(after.numbers, base.numbers), difference(base.numbers, before.numbers)
        curved = _CURVATURE * _SHORT_STEP * (1.0 + np.nan_to_num(np.abs(base.numbers), posinf=0.0))
        kinked = np.abs(rise - fall) > _KINK * np.maximum(np.abs(rise), np.abs(fall)) + curved
        if kinked.any():
            raise KinkError(
                f"component {i} of {value.tolist()} is at a kink (the larger of several scales counts, or a bound is "
                "met), where there is no derivative"
            )
        columns.append(difference(after.numbers, before.numbers) / (ahead.flat[i] - behind.flat[i]))
    return np.stack(columns, axis=1)


def _long_differences(read: Read, base: Point, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n,) the steps that could be taken, and (M, n) differences along them."""
    steps, columns = [], []
    for i, scale in enumerate(scales(value)):
        trouble = ""
        for part in _LONG_STEPS:
            moved = _moved(value, i, part * scale)
            try:
                point = _steady(read, base, moved)
            except JumpError as error:
                trouble = trouble or str(error)
                continue
            step = moved.flat[i] - value.flat[i]
            steps.append(step)
            columns.append(difference(point.numbers, base.numbers) / step)
            break
        else:
            raise JumpError(trouble)
    return np.array(steps), np.stack(columns, axis=1)


def _straight_box(probe: _Probe, bounds: tuple[float, float]) -> tuple[np.ndarray, np.ndarray] | None:
    """(n,) least and (n,) largest values between which the reading does not bend; None where that is nowhere."""
    start = probe.value.ravel()
    ends, bends = np.stack([start, start]), False
    for i, scale in enumerate(scales(probe.value)):
        for side, bound in enumerate(bounds):
            for reach in _REACH:
                for end in _within(start[i], (2 * side - 1) * reach * scale, bound):
                    agreed = probe.agrees(np.where(np.arange(len(start)) == i, end, start))
                    if agreed:
                        ends[side, i] = end
                        break
                if agreed:
                    break
                bends |= agreed is False
                if agreed is False and reach == _REACH[-1]:
                    return None
    for _ in range(_SHRINKS):
        if all(probe.agrees(corner) is not False for corner in _corners(ends, bends)):
            return ends[0], ends[1]
        ends, bends = 0.5 * (ends + start), True
    return None


def _corners(ends: np.ndarray, every: bool) -> list[np.ndarray]:
    """Corners of the box with opposite corners `ends` (2, n): these two, or every one of few, or some of many."""
    count = ends.shape[1]
    if count == 1:
        return []
    if every and count <= 3:
        sides = np.array(list(product((0, 1), repeat=count)))
    else:
        some = np.random.default_rng(1).integers(0, 2, size=(6 if every else 0, count))
        sides = np.concatenate([np.zeros((1, count), int), np.ones((1, count), int), some])
    return [ends[side, np.arange(count)] for side in sides]


def _within(value: float, move: float, bound: float) -> tuple[float, ...]:
    """The moved value; where that is beyond the bound, the bound (which may have no meaning), and most of the way."""
    moved = value + move
    inside = (bound - moved) * move > 0 or np.isinf(bound)
    return (moved,) if inside else (bound, bound + (value - bound) * 2.0**-10)


@dataclass(frozen=True)
class _Probe:
    """A linear prediction of the reading, to be held against it."""

    read: Read
    base: Point
    value: np.ndarray
    steps: np.ndarray
    columns: np.ndarray

    def agrees(self, moved: np.ndarray) -> bool | None:
        """Whether the reading at a value (n,) is as foretold; None where the stage cannot be read there."""
        move = moved - self.value.ravel()
        try:
            point = _steady(self.read, self.base, moved.reshape(self.value.shape))
        except JumpError:
            return None
        size = np.abs(self.columns) @ np.abs(move)
        drawn_out = float(np.abs(move / self.steps).max())
        return agrees(point, self.base, self.columns @ move, size, drawn_out=drawn_out)

    def is_straight(self) -> bool:
        """Whether it holds where all components move together, in a direction of no special kind."""
        if len(self.steps) == 1:
            return True  # a single component is probed on its own
        parts = np.random.default_rng(0).uniform(0.5, 1.0, size=len(self.steps))
        signs = np.where(np.arange(len(self.steps)) % 2, -1.0, 1.0)
        moves = [length * parts * self.steps * (signs if length < 0 else 1.0) for length in _FAR]
        found = [self.agrees(self.value.ravel() + move) for move in moves]
        return False not in found and True in found


def agrees(point: Point, base: Point, predicted: np.ndarray, size: np.ndarray, *, drawn_out: float = 1.0) -> bool:
    """Whether a point is where a linear prediction puts it, up to rounding.

    Args:
        point: What was read.
        base: Where the prediction starts.
        predicted: (M,) change from the base.
        size: (M,) how large the terms of the prediction are.
        drawn_out: How much longer the change is than the step that its slope was taken from, whose rounding grows so.
    """
    off = np.abs(difference(point.numbers, base.numbers) - predicted)
    noise = 1e-13 * max(1.0, drawn_out) * (1.0 + np.nan_to_num(np.abs(base.numbers), posinf=0.0))
    return bool((off <= _ROUNDING * size + noise).all())


def _moved(value: np.ndarray, component: int, step: float) -> np.ndarray:
    moved = value.copy()
    moved.flat[component] += step
    return moved


def _steady(read: Read, base: Point, value: np.ndarray) -> Point:
    """The point at a value, if the scene there differs in numbers only."""
    try:
        point = read(value)
    except SceneError as error:
        raise JumpError(str(error)) from error
    jump = base.jump(point)
    if jump is not None:
        raise JumpError(f"it changes {jump}")
    return point
