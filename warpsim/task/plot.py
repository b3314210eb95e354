"""The loss over the iterations as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

WIDTH, HEIGHT = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 82, 20, 34, 44
_INK, _GRID, _LINE, _BEST = (60, 64, 70), (225, 228, 232), (214, 108, 36), (52, 102, 184)


def loss_plot(iterations: Sequence[int], losses: Sequence[float], title: str = "") -> np.ndarray:
    """Loss of each iteration, and the best so far; logarithmic where all losses are above 0.

    Args:
        iterations: (n,) increasing.
        losses: (n,); those that are not finite are left out.
        title: Written above.

    Returns:
        (height, width, 3) uint8.
    """
    shown = [(i, loss) for i, loss in zip(iterations, losses, strict=True) if math.isfinite(loss)]
    image = Image.new("RGB", (WIDTH, HEIGHT), "white")
    draw = ImageDraw.Draw(image)
    small, large = ImageFont.load_default(12), ImageFont.load_default(14)
    draw.text((_LEFT, 10), title, _INK, font=large)
    draw.text((WIDTH - _RIGHT, HEIGHT - 20), "iteration", _INK, font=small, anchor="ra")
    if shown:
        _curves(draw, shown, small)
    return np.asarray(image)


def _curves(
    draw: ImageDraw.ImageDraw, shown: list[tuple[int, float]], font: ImageFont.FreeTypeFont | ImageFont.ImageFont
) -> None:
    x = np.array([i for i, _ in shown], dtype=float)
    y = np.array([loss for _, loss in shown])
    logarithmic = bool((y > 0).all())
    heights = np.log10(y) if logarithmic else y
    low, high = float(heights.min()), float(heights.max())
    low, high = (math.floor(low), max(math.ceil(high), math.floor(low) + 1)) if logarithmic else (low, high)
    high = high if high > low else low + 1.0

    def place(i: float, height: float) -> tuple[float, float]:
        across = (i - x[0]) / max(x[-1] - x[0], 1.0)
        up = (height - low) / (high - low)
        return _LEFT + across * (WIDTH - _LEFT - _RIGHT), HEIGHT - _BOTTOM - up * (HEIGHT - _TOP - _BOTTOM)

    step = max(1, math.ceil((high - low) / 8)) if logarithmic else (high - low) / 5
    for mark in np.arange(low, high + 1e-9 * (high - low), step):
        _, row = place(x[0], float(mark))
        draw.line([(_LEFT, row), (WIDTH - _RIGHT, row)], _GRID)
        text = f"1e{int(mark)}" if logarithmic else f"{mark:.3g}"
        draw.text((_LEFT - 8, row), text, _INK, font=font, anchor="rm")
    for mark in np.unique(np.linspace(x[0], x[-1], 6).round()):
        column, _ = place(float(mark), low)
        draw.text((column, HEIGHT - _BOTTOM + 6), f"{int(mark)}", _INK, font=font, anchor="ma")
    best = np.minimum.accumulate(heights)
    for values, color, thick in ((heights, _LINE, 1), (best, _BEST, 2)):
        points = [place(i, height) for i, height in zip(x.tolist(), values.tolist(), strict=True)]
        draw.line(points, color, thick)
        for point in points if len(points) < 60 else []:
            draw.circle(point, 2, color)
    draw.text((WIDTH - _RIGHT, _TOP - 18), "best so far", _BEST, font=font, anchor="ra")
    draw.text((WIDTH - _RIGHT - 80, _TOP - 18), "loss", _LINE, font=font, anchor="ra")
