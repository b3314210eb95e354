"""What the automatic camera should show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from warpsim.view.items.camera import ELEVATION, STEEP_ELEVATION, Camera, fit_camera
from warpsim.view.items.item import ENDLESS, PLANE, Item

_BESIDE, _AROUND = 2.2, 6.0
"""Static things are shown too if the view grows by no more than this: those beside what moves, those around it."""
_ABOVE = 5.0
"""The ground under what moves is shown too if the view grows by no more than this."""


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

    @property
    def box(self) -> np.ndarray:
        """(2, 3) m: least and greatest coordinates."""
        return np.stack([self.points.min(axis=0), self.points.max(axis=0)])

    def camera(self, aspect: float) -> Camera:
        """The automatic view, as pages begin with it: of the box around the points.

        Args:
            aspect: Width / height of the picture.
        """
        low, high = self.box
        corners = np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])
        return fit_camera(corners, aspect=aspect, elevation=STEEP_ELEVATION if self.enclosed else ELEVATION)


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
    return with_context(np.concatenate(clouds), still.values(), ground_heights(frames[0]))


def ground_heights(items: Iterable[Item]) -> list[float]:
    """m: of level planes without end."""
    flat = [item.to_world for item in items if item.kind == PLANE and item.size[0] >= ENDLESS]
    return [float(matrix[2, 3]) for matrix in flat if matrix[2, 2] > 0.999 * np.linalg.norm(matrix[:3, 2])]


def with_context(points: np.ndarray, still: Iterable[np.ndarray], grounds: Iterable[float] = ()) -> Focus:
    """Adds static things beside and around what moves, and the ground under it.

    Args:
        points: (n, 3) m: of what moves.
        still: (8, 3) m each: corners of what stands.
        grounds: m: heights of the ground.
    """
    middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
    size = _diagonal(points)
    enclosed = False
    for corners in still:
        around = (corners.min(axis=0) <= middle).all() and (middle <= corners.max(axis=0)).all()
        wider = np.concatenate([points, corners])
        if _diagonal(wider) <= size * (_AROUND if around else _BESIDE):
            points = wider
            enclosed = enclosed or bool(around)
    for height in grounds:
        below = np.array([[*points[:, :2].mean(axis=0), height]])
        wider = np.concatenate([points, below])
        if height < points[:, 2].min() and _diagonal(wider) <= _ABOVE * _diagonal(points):
            points = wider
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
