"""Windows with one impact: up to the row before a second corner touches, or the first one touches again.

A corner touches when its measured height is below `TOUCH`. A toss whose first touch is of two corners at once has the
rows before it only. With flight, a window begins at row 1; without, at the row of the first touch.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from tools.reality.protocol import WIDTH

TOUCH = 0.003
"""m above the table, below which a measured corner counts as touching: the noise of the poses, and a little."""
_CORNERS = WIDTH / 2 * np.array(list(product((-1.0, 1.0), repeat=3)))


def one_impact(truth: np.ndarray, *, flight: bool = True) -> np.ndarray:
    """(tosses, rows): rows 1 and later that lie in the window.

    Args:
        truth: (tosses, rows, 7 or more): position and quaternion (w, x, y, z), measured.
        flight: Whether rows before the first touch count.
    """
    low = _heights(truth) < TOUCH  # (tosses, rows, 8)
    inside = np.zeros(truth.shape[:2], dtype=bool)
    for toss, touching in enumerate(low):
        rows = np.flatnonzero(touching.any(-1))
        if not len(rows):
            continue
        first = int(rows[0])
        corner = int(_heights(truth[toss : toss + 1, first : first + 1])[0, 0].argmin())
        others = np.delete(touching, corner, axis=1).any(-1)
        again = touching[:, corner] & np.r_[False, ~touching[:-1, corner]]
        again[: first + 1] = False
        ends = np.flatnonzero(others | again)
        inside[toss, 1 if flight else max(1, first) : ends[0] if len(ends) else None] = True
    return inside


def _heights(truth: np.ndarray) -> np.ndarray:
    """(tosses, rows, 8) of the cube's corners above the table, m."""
    w, x, y, z = np.moveaxis(truth[..., 3:7], -1, 0)
    up = np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1)  # the rotation's last row
    return truth[..., 2:3] + up @ _CORNERS.T
