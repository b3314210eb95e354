"""What a viewer may ask for, checked: every message comes from outside the process."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from warpsim.core.errors import InputError

_REACH = 1e6
"""m: farther than this nothing is pulled."""


@dataclass(frozen=True)
class Pause:
    """Stop or go on."""

    on: bool


@dataclass(frozen=True)
class Step:
    """So many frames while it is paused."""

    frames: int


@dataclass(frozen=True)
class Reset:
    """Back to the initial state."""


@dataclass(frozen=True)
class Drag:
    """Pull a body."""

    world: int
    body: int
    """Number of the page's body."""
    point: np.ndarray
    """(3,) m, in the body's frame."""
    target: np.ndarray
    """(3,) m, in the world."""


@dataclass(frozen=True)
class Release:
    """Let go."""


@dataclass(frozen=True)
class Slide:
    """Set a slider."""

    slider: int
    value: float


Wish = Pause | Step | Reset | Drag | Release | Slide


def read_wish(text: str | bytes, *, worlds: int, bodies: int, sliders: int) -> Wish:
    """One message.

    Args:
        text: JSON.
        worlds: That there are.
        bodies: That there are.
        sliders: That there are.

    Raises:
        InputError: It is none of ours.
    """
    try:
        told = json.loads(text)
        match told["kind"]:
            case "pause":
                return Pause(told["on"] is True)
            case "step":
                return Step(_index(told["frames"], 1001))
            case "reset":
                return Reset()
            case "release":
                return Release()
            case "drag":
                point, target = _vector(told["point"]), _vector(told["target"])
                return Drag(_index(told["world"], worlds), _index(told["body"], bodies), point, target)
            case "slide":
                return Slide(_index(told["slider"], sliders), float(_finite(told["value"])))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise InputError(f"a message of the viewer cannot be read: {error}") from error
    raise InputError("a message of the viewer is of no known kind")


def _index(value: object, end: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < end:
        raise ValueError(f"{value!r} is not a number from 0 to {end - 1}")
    return value


def _finite(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) <= _REACH:
        raise ValueError(f"{value!r} is not a number within ±{_REACH:g}")
    return float(value)


def _vector(values: object) -> np.ndarray:
    if not isinstance(values, list) or len(values) != 3:
        raise ValueError("three numbers are needed")
    return np.array([_finite(value) for value in values])
