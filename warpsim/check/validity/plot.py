"""The traces of `Validity` as one picture."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from warpsim.check.validity.measure import Validity

_WIDTH, _STRIP, _LEFT, _RIGHT, _TOP = 720, 120, 84, 16, 22
_INK, _GRID, _LINE, _SWITCH, _LIMIT = (60, 64, 70), (225, 228, 232), (52, 102, 184), (214, 160, 90), (200, 40, 40)


def plot_validity(found: Validity) -> np.ndarray:
    """Growth, adjoint, penetration and energy over time; mode switches in orange, the valid horizon in red.

    Returns:
        (height, width, 3) uint8.
    """
    ten = np.log(10.0)
    strips = (
        ("log10 growth of a perturbation", found.growth.perturbation / ten),
        ("log10 norm of the adjoint", found.growth.adjoint / ten),
        ("penetration, mm", 1000.0 * found.penetration),
        ("energy, J", found.energy),
    )
    image = Image.new("RGB", (_WIDTH, _STRIP * len(strips) + 24), "white")
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(12)
    for row, (title, values) in enumerate(strips):
        _strip(draw, font, row * _STRIP, title, values, found)
    draw.text((_WIDTH - _RIGHT, _STRIP * len(strips) + 4), f"0 … {found.times[-1]:g} s", _INK, font=font, anchor="ra")
    return np.asarray(image)


def _strip(
    draw: ImageDraw.ImageDraw,
    font: ImageFont.FreeTypeFont | ImageFont.ImageFont,
    top: int,
    title: str,
    values: np.ndarray,
    found: Validity,
) -> None:
    low, high = float(values.min()), float(values.max())
    high = high if high > low else low + 1.0

    def across(time: float) -> float:
        return _LEFT + time / float(found.times[-1]) * (_WIDTH - _LEFT - _RIGHT)

    def down(value: float) -> float:
        return top + _STRIP - 6 - (value - low) / (high - low) * (_STRIP - _TOP - 6)

    draw.text((_LEFT, top + 4), title, _INK, font=font)
    for value in (low, high):
        draw.line([(_LEFT, down(value)), (_WIDTH - _RIGHT, down(value))], _GRID)
        draw.text((_LEFT - 6, down(value)), f"{value:.4g}", _INK, font=font, anchor="rm")
    for switch in found.switches:
        draw.line([(across(switch.time), top + _TOP), (across(switch.time), top + _STRIP - 6)], _SWITCH)
    if found.valid_seconds <= found.times[-1]:
        at = across(found.valid_seconds)
        draw.line([(at, top + _TOP), (at, top + _STRIP - 6)], _LIMIT, 2)
    points = [(across(float(t)), down(float(v))) for t, v in zip(found.times, values, strict=True)]
    draw.line(points, _LINE, 2)
