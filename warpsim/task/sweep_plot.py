"""A sweep as a picture: over each attribute the results and the best of them, and a map over the first two."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

WIDTH, PANEL = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 90, 24, 34, 48
_INK, _GRID, _POINT, _BEST = (60, 64, 70), (225, 228, 232), (52, 102, 184), (214, 108, 36)
_SOLVED, _FAILED = (48, 150, 90), (200, 40, 40)
_MOST_PANELS = 6
_LOW, _HIGH = np.array([33.0, 64.0, 128.0]), np.array([250.0, 236.0, 140.0])

Pictured = Sequence[tuple[tuple[float, ...], float, bool | None]]
"""Values, result (NaN where a point failed) and success."""


def sweep_plot(title: str, names: Sequence[str], points: Pictured, measure: str) -> np.ndarray:
    """Draws one panel for each attribute, and a map where there are two or more.

    Args:
        title: Written above.
        names: Of the attributes.
        points: Of the grid.
        measure: What the results are.

    Returns:
        (height, width, 3) uint8.
    """
    shown = range(min(len(names), _MOST_PANELS))
    mapped = len(names) > 1
    image = Image.new("RGB", (WIDTH, PANEL * (len(shown) + mapped)), "white")
    draw = ImageDraw.Draw(image)
    results = [result for _, result, _ in points if math.isfinite(result)]
    logarithmic = bool(results) and min(results) > 0 and max(results) > 100 * min(results)
    label = f"log10 {measure}" if logarithmic else measure
    scaled = [
        (values, math.log10(result) if logarithmic and math.isfinite(result) else result, success)
        for values, result, success in points
    ]
    for row, place in enumerate(shown):
        panel = _Panel(draw, row * PANEL, f"{title}: {label}", names[place])
        panel.profile([(values[place], result, success) for values, result, success in scaled])
    if mapped:
        heading = f"{label}, least over the others" if len(names) > 2 else label
        panel = _Panel(draw, len(shown) * PANEL, f"{heading}; upward: {names[1]}", names[0])
        panel.map([(values[0], values[1], result) for values, result, _ in scaled])
    return np.asarray(image)


class _Panel:
    """One panel of the picture."""

    def __init__(self, draw: ImageDraw.ImageDraw, top: int, title: str, across: str) -> None:
        self._draw, self._top = draw, top
        self._font = ImageFont.load_default(12)
        draw.text((_LEFT, top + 10), title, _INK, font=self._font)
        draw.text((WIDTH - _RIGHT, top + PANEL - 20), across, _INK, font=self._font, anchor="ra")

    def profile(self, points: Sequence[tuple[float, float, bool | None]]) -> None:
        """Results over one attribute; the least of each value as a line; failures as ticks on the axis."""
        known = [(x, y) for x, y, _ in points if math.isfinite(y)]
        x_low, x_high = _range([x for x, _, _ in points])
        y_low, y_high = _range([y for _, y in known])

        def place(x: float, y: float) -> tuple[float, float]:
            right = (x - x_low) / (x_high - x_low)
            up = (y - y_low) / (y_high - y_low)
            return _LEFT + right * (WIDTH - _LEFT - _RIGHT), self._top + PANEL - _BOTTOM - up * (PANEL - _TOP - _BOTTOM)

        for mark in np.linspace(y_low, y_high, 5):
            row = place(x_low, float(mark))[1]
            self._draw.line([(_LEFT, row), (WIDTH - _RIGHT, row)], _GRID)
            self._draw.text((_LEFT - 8, row), f"{mark:.3g}", _INK, font=self._font, anchor="rm")
        for mark in np.linspace(x_low, x_high, 5):
            column = place(float(mark), y_low)[0]
            self._draw.text(
                (column, self._top + PANEL - _BOTTOM + 6), f"{mark:.3g}", _INK, font=self._font, anchor="ma"
            )
        best = {x: min(y for other, y in known if other == x) for x in sorted({x for x, _ in known})}
        if len(best) > 1:
            self._draw.line([place(x, y) for x, y in best.items()], _BEST, 2)
        for x, y, success in points:
            if math.isfinite(y):
                self._draw.circle(place(x, y), 3, _SOLVED if success else _POINT)
            else:
                column, row = place(x, y_low)
                self._draw.line([(column, row - 8), (column, row)], _FAILED, 2)

    def map(self, points: Sequence[tuple[float, float, float]]) -> None:
        """The least result over two attributes, dark where it is small; gray where no point could be simulated."""
        across, along = (sorted({point[axis] for point in points}) for axis in (0, 1))
        least = np.full((len(along), len(across)), math.nan)
        for x, y, result in points:
            cell = along.index(y), across.index(x)
            if math.isfinite(result) and not result >= least[cell]:
                least[cell] = result
        known = least[np.isfinite(least)]
        low, high = _range(known.tolist())
        width, height = (WIDTH - _LEFT - _RIGHT) / len(across), (PANEL - _TOP - _BOTTOM) / len(along)
        for (row, column), value in np.ndenumerate(least):
            left, top = _LEFT + column * width, self._top + PANEL - _BOTTOM - (row + 1) * height
            share = (value - low) / (high - low)
            color = (150, 150, 150) if math.isnan(value) else tuple(int(c) for c in _LOW + share * (_HIGH - _LOW))
            self._draw.rectangle([(left, top), (left + width - 1, top + height - 1)], color)
        for place, value in ((0, along[0]), (len(along) - 1, along[-1])):
            middle = self._top + PANEL - _BOTTOM - (place + 0.5) * height
            self._draw.text((_LEFT - 8, middle), f"{value:.3g}", _INK, font=self._font, anchor="rm")
        for place, value in ((0, across[0]), (len(across) - 1, across[-1])):
            middle = _LEFT + (place + 0.5) * width
            self._draw.text(
                (middle, self._top + PANEL - _BOTTOM + 6), f"{value:.3g}", _INK, font=self._font, anchor="ma"
            )
        text = f"dark {low:.3g}, light {high:.3g}"
        self._draw.text((WIDTH - _RIGHT, self._top + 10), text, _INK, font=self._font, anchor="ra")


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Least and greatest, apart."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    return (low, high) if high > low else (low - 0.5 * abs(low) - 0.5, low + 0.5 * abs(low) + 0.5)
