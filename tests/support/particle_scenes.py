"""Cups and blocks of liquid for tests of particles."""

from __future__ import annotations

import numpy as np

from warpsim.particles import WallShape

UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])


def about_y(angle: float) -> np.ndarray:
    """Quaternion (w, x, y, z) of a rotation about y, rad."""
    return np.array([np.cos(angle / 2), 0.0, np.sin(angle / 2), 0.0])


def rotation_matrix(q: np.ndarray) -> np.ndarray:
    w, x, y, z = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def box_cup(
    width: float, height: float, thickness: float, *, lid: bool = False, **options
) -> tuple[list[WallShape], np.ndarray]:
    """Walls of a square cup, open at the top, and their poses (5, 7) with the middle of its floor at the origin.

    With a lid, a sixth wall closes it.
    """
    outer = width / 2 + thickness
    half, middle = (height + thickness) / 2, (height - thickness) / 2
    side = width / 2 + thickness / 2
    shapes = [WallShape("box", (outer, outer, thickness / 2), **options)]
    places = [(0.0, 0.0, -thickness / 2)]
    for axis, sign in ((0, -1), (0, 1), (1, -1), (1, 1)):
        size = [outer, outer, half]
        size[axis] = thickness / 2
        place = [0.0, 0.0, middle]
        place[axis] = sign * side
        shapes.append(WallShape("box", tuple(size), **options))
        places.append(tuple(place))
    if lid:
        shapes.append(shapes[0])
        places.append((0.0, 0.0, height + thickness / 2))
    return shapes, np.concatenate([np.array(places), np.tile(UPRIGHT, (len(places), 1))], axis=1)


def placed(poses: np.ndarray, position: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    """Poses (s, 7) carried along with a body's frame; all of them must have the body's own orientation."""
    out = poses.copy()
    out[:, :3] = poses[:, :3] @ rotation_matrix(rotation).T + position
    out[:, 3:] = rotation
    return out
