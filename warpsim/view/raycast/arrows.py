"""Contact forces as arrows: a ball where they act, a shaft, a head."""

from __future__ import annotations

import numpy as np
from pxr import Usd, UsdGeom

from warpsim.io.usd.contact_prims import CONTACTS
from warpsim.view.items.item import SPHERE, TAPERED, Item
from warpsim.view.items.stage_items import StageReader

ARROW = "contact force"
"""Name of all parts of arrows, which no view is fitted around."""
_POINT, _WARM = np.array([0.783, 0.065, 0.074]), np.array([0.871, 0.262, 0.027])
"""Linear RGB, as on pages."""
_BALL, _SHAFT, _HEAD, _HEAD_LENGTH = 0.008, 0.0045, 0.014, 0.04
"""Radii and a length, of the scene's size, as on pages."""


def arrows(starts: np.ndarray, ends: np.ndarray, size: float) -> list[Item]:
    """Items of arrows.

    Args:
        starts: (n, 3) m.
        ends: (n, 3) m.
        size: Of the scene, m.
    """
    found = []
    for start, end in zip(starts, ends, strict=True):
        found.append(_part(SPHERE, (_BALL * size, 0.0, 0.0), np.eye(3), start, _POINT))
        length = float(np.linalg.norm(end - start))
        if length < 0.01 * size:
            continue
        frame = _along((end - start) / length)
        middle = 0.5 * (start + end)
        found.append(_part(TAPERED, (_SHAFT * size, _SHAFT * size, 0.5 * length), frame, middle, _WARM))
        tip = end + frame[:, 2] * 0.5 * _HEAD_LENGTH * size
        found.append(_part(TAPERED, (_HEAD * size, 0.0, 0.5 * _HEAD_LENGTH * size), frame, tip, _WARM))
    return found


def stage_segments(stage: Usd.Stage, reader: StageReader, time: Usd.TimeCode) -> tuple[np.ndarray, np.ndarray]:
    """(n, 3) m each: starts and ends of the forces that a saved motion has at a time."""
    pairs = [np.zeros((0, 2, 3))]
    cache = UsdGeom.XformCache(time)
    for prim in stage.Traverse():
        if prim.GetName() != "Forces" or prim.GetParent().GetName() != CONTACTS or not prim.IsA(UsdGeom.BasisCurves):
            continue
        to_world = reader.to_world(prim, cache)
        points = np.array(UsdGeom.BasisCurves(prim).GetPointsAttr().Get(time) or [], dtype=float).reshape(-1, 2, 3)
        pairs.append(points @ to_world[:3, :3].T + to_world[:3, 3])
    every = np.concatenate(pairs)
    return every[:, 0], every[:, 1]


def _part(kind: int, size: tuple[float, ...], frame: np.ndarray, place: np.ndarray, color: np.ndarray) -> Item:
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = frame, place
    return Item(ARROW, kind, np.array(size), matrix, color, None)


def _along(axis: np.ndarray) -> np.ndarray:
    """(3, 3) rotation whose third column is a unit vector."""
    other = np.eye(3)[int(np.argmin(np.abs(axis)))]
    x = np.cross(other, axis)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(axis, x), axis], axis=1)
