"""Bodies that show too little of themselves, for which their colliders are drawn.

Colliders are commonly kept out of sight (purpose guide in USD, group 3 in MJCF) because finer meshes stand in their
place. Where those are missing, wholly or but for a few screws, a picture without colliders would be empty.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

import numpy as np

_ENOUGH = 0.5
"""Looks that span at least this share of what the colliders span stand for the body."""

Key = TypeVar("Key", bound=Hashable)


def bodies_without_looks(
    looks: Iterable[tuple[Key, np.ndarray]], colliders: Iterable[tuple[Key, np.ndarray]]
) -> set[Key]:
    """Bodies to be drawn by their colliders.

    Args:
        looks: Body and (n, 3) corners in the body's frame of each thing that is drawn anyway.
        colliders: The same of each collider that is not.
    """
    seen, solid = _spans(looks), _spans(colliders)
    return {body for body, span in solid.items() if seen.get(body, 0.0) < _ENOUGH * span}


def _spans(parts: Iterable[tuple[Key, np.ndarray]]) -> dict[Key, float]:
    """Body → diagonal of the box around all its parts, along the body's axes."""
    clouds: dict[Key, list[np.ndarray]] = {}
    for body, corners in parts:
        clouds.setdefault(body, []).append(corners)
    return {body: float(np.linalg.norm(np.ptp(np.concatenate(cloud), axis=0))) for body, cloud in clouds.items()}
