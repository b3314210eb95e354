"""What the automatic camera should show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from warpsim.view.items.item import PLANE, Item

_BESIDE, _AROUND = 2.2, 6.0
"""Static things are shown too if the view grows by no more than this: those beside what moves, those around it."""


@dataclass(frozen=True)
class Focus:
    """Points that have to be in the picture."""

    points: np.ndarray
    """(n, 3) m."""
    enclosed: bool = False
    """What moves has something around it, a bowl for example: look in from above."""

    @property
    def size(self) -> float:
        """Longest edge of the box around the points, m."""
        return float(np.ptp(self.points, axis=0).max())


def find_focus(frames: Sequence[Sequence[Item]]) -> Focus:
    """Corners around everything that moves or could, in all frames, and around what stands near.

    Planes never count. Without anything that moves, everything else counts.

    Args:
        frames: Items of each frame, none empty.
    """
    moving = _moving(frames)
    solid = [item for items in frames for item in items if item.kind != PLANE]
    if not solid:  # a lone plane: its middle, about a meter of it
        middle = frames[0][0].to_world[:3, 3]
        return Focus(middle + np.array([[-0.5, -0.5, 0.0], [0.5, 0.5, 0.5]]))
    clouds = [item.corners() for item in solid if item.name in moving]
    still = {item.name: item.corners() for item in solid if item.name not in moving}
    if not clouds:
        return Focus(np.concatenate(list(still.values())))
    return _with_context(np.concatenate(clouds), still.values())


def _with_context(points: np.ndarray, still: Iterable[np.ndarray]) -> Focus:
    """Adds static things beside and around what moves."""
    middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
    size = _diagonal(points)
    enclosed = False
    for corners in still:
        around = (corners.min(axis=0) <= middle).all() and (middle <= corners.max(axis=0)).all()
        wider = np.concatenate([points, corners])
        if _diagonal(wider) <= size * (_AROUND if around else _BESIDE):
            points = wider
            enclosed = enclosed or bool(around)
    return Focus(points, enclosed)


def _moving(frames: Sequence[Sequence[Item]]) -> set[str]:
    """Names of items that belong to rigid bodies or are not always in one place and shape."""
    first: dict[str, Item] = {}
    moving = set()
    for items in frames:
        for item in items:
            before = first.setdefault(item.name, item)
            same = before.mesh is item.mesh and (before.to_world == item.to_world).all()
            if item.movable or not same:
                moving.add(item.name)
    return moving


def _diagonal(points: np.ndarray) -> float:
    return float(np.linalg.norm(np.ptp(points, axis=0)))
