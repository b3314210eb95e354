"""Shared by the scene scripts: where scenes go, rotations, and colors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pxr import Usd

from warpsim.io.usd import author

FOLDER = Path(__file__).resolve().parents[2] / "scenes"

GRAY, WHITE, ORANGE, BLUE, GREEN, RED, DARK = (
    (0.45, 0.47, 0.5),
    (0.85, 0.85, 0.88),
    (0.95, 0.55, 0.2),
    (0.25, 0.45, 0.85),
    (0.35, 0.7, 0.4),
    (0.85, 0.25, 0.25),
    (0.15, 0.16, 0.18),
)

NEWTON_METERS_PER_DEGREE = np.pi / 180.0
"""Turns a gain per radian into USD's gain per degree."""


def stiff(time: float, ratio: float = 1.0) -> dict[str, float]:
    """Contact attributes of a material that stops an impact within about `time` seconds.

    Args:
        time: 1/(ratio·ω) of the contact's spring; the time step should be half of it or less.
        ratio: Of its damping to the critical one; a ball bounces for less than 1.
    """
    return {"newton:contactStiffness": 1.0 / (time * ratio) ** 2, "newton:contactDamping": 2.0 / time}


def turn(axis: str, degrees: float) -> tuple[float, float, float, float]:
    """Quaternion (w, x, y, z) of a rotation about a coordinate axis."""
    half = np.radians(degrees) / 2
    imaginary = np.sin(half) * np.eye(3)["XYZ".index(axis)]
    return (float(np.cos(half)), *map(float, imaginary))


def servo(
    stiffness: float, damping: float, target: float = 0.0, max_force: float | None = None
) -> dict[str, float | None]:
    """Drive settings from gains per radian and a target in degrees."""
    per = NEWTON_METERS_PER_DEGREE
    return {"stiffness": stiffness * per, "damping": damping * per, "target": target, "max_force": max_force}


def write(stage: Usd.Stage, name: str) -> Path:
    """Saves a stage as `scenes/<name>.usda`."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.usda"
    layer = stage.GetRootLayer()
    layer.comment = f"Made by tools/scenes/{name}.py; edit that and run it again."
    author.save(stage, path)
    return path
