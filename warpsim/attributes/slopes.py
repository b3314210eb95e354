"""How the numbers physics reads depend on one attribute: derivatives of the reading by differences.

Reading is affine in most attributes (a unit, a frame). There one difference per component, however long, is the
derivative to rounding; points far from the base show whether it is so. Where it is not (rotations, products with a
scale) differences are central, short and local. Values go to the reader in double precision, so nothing is lost to the
attribute's own type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from warpsim.attributes.scene_map import Point
from warpsim.errors import InputError, SceneError

Read = Callable[[np.ndarray], Point]
"""The stage with the attribute at a value."""

_LONG_STEPS = (2.0**-3, -(2.0**-3), 2.0**-7, -(2.0**-7), 2.0**-12, -(2.0**-12))
_SHORT_STEP = 2.0**-17
_FAR = (-0.7, 6.0)
_ROUNDING = 1e-9
_KINK = 1e-2
_CURVATURE = 1e-2


class JumpError(InputError):
    """A value has no neighbours that describe the same model."""


class KinkError(InputError):
    """The numbers physics reads bend at a value."""


@dataclass(frozen=True)
class Slope:
    """d numbers / d value.

    Attributes:
        rows: (k,) places in `Point.numbers` that depend on the attribute.
        matrix: (k, n) by component.
        affine: Whether this holds at every value.
    """

    rows: np.ndarray
    matrix: np.ndarray
    affine: bool

    @staticmethod
    def of(columns: np.ndarray, affine: bool) -> Slope:
        """From a dense (M, n) matrix."""
        rows = np.flatnonzero(columns.any(axis=1))
        return Slope(rows, columns[rows], affine)


def difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A − b, zero where both are the same infinity."""
    with np.errstate(invalid="ignore"):
        return np.where(a == b, 0.0, a - b)


def survey(read: Read, base: Point, value: np.ndarray) -> Slope:
    """The slope at a value, and whether it is the same elsewhere.

    Args:
        read: The stage with the attribute at a value.
        base: That at `value`.
        value: Of the attribute.

    Raises:
        JumpError: Every step from the value changes something discrete, or cannot be simulated.
        KinkError: The reading has a kink there.
    """
    steps, columns = _long_differences(read, base, value)
    if _is_affine(read, base, value, steps, columns):
        return Slope.of(columns, affine=True)
    return Slope.of(central_differences(read, base, value), affine=False)


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


def _is_affine(read: Read, base: Point, value: np.ndarray, steps: np.ndarray, columns: np.ndarray) -> bool:
    parts = np.random.default_rng(0).uniform(0.5, 1.0, size=len(steps))  # a direction of no special kind
    signs = np.where(np.arange(len(steps)) % 2, -1.0, 1.0)
    checked = 0
    for length in _FAR:
        move = length * parts * steps * (signs if length < 0 else 1.0)
        try:
            point = _steady(read, base, value + move.reshape(value.shape))
        except JumpError:
            continue
        checked += 1
        if not agrees(point, base, columns @ move, np.abs(columns) @ np.abs(move)):
            return False
    return checked > 0


def agrees(point: Point, base: Point, predicted: np.ndarray, size: np.ndarray) -> bool:
    """Whether a point is where a linear prediction puts it, up to rounding.

    Args:
        point: What was read.
        base: Where the prediction starts.
        predicted: (M,) change from the base.
        size: (M,) how large the terms of the prediction are.
    """
    off = np.abs(difference(point.numbers, base.numbers) - predicted)
    return bool((off <= _ROUNDING * size + 1e-13 * (1.0 + np.nan_to_num(np.abs(base.numbers), posinf=0.0))).all())


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
