"""What the automatic camera should show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpsim.render.items import PLANE, Item

_CONTEXT = 3.0
"""Static things are shown too if the view grows by no more than this factor."""


def focus_points(frames: Sequence[Sequence[Item]]) -> np.ndarray:
    """(n, 3) m: corners around everything that moves or could, in all frames, and around what stands near it.

    Planes never count. Without anything that moves, everything else counts.

    Args:
        frames: Items of each frame.
    """
    moving = _moving(frames)
    solid = [item for items in frames for item in items if item.kind != PLANE]
    if not solid:  # a lone plane: its middle, about a metre of it
        middle = frames[0][0].to_world[:3, 3]
        return middle + np.array([[-0.5, -0.5, 0.0], [0.5, 0.5, 0.5]])
    clouds = [item.corners() for item in solid if item.name in moving]
    still = {item.name: item.corners() for item in solid if item.name not in moving}
    if not clouds:
        return np.concatenate(list(still.values()))
    points = np.concatenate(clouds)
    limit = _CONTEXT * _diagonal(points)
    for corners in still.values():
        wider = np.concatenate([points, corners])
        if _diagonal(wider) <= limit:
            points = wider
    return points


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
