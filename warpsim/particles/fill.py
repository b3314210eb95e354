"""Filling a volume with particles."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from warpsim.core.errors import InputError


def box_lattice(lower: ArrayLike, upper: ArrayLike, pitch: float) -> np.ndarray:
    """Particles that fill a box: (n, 3) m, half a pitch from its faces, flush with its lower corner.

    Args:
        lower: (3,) m.
        upper: (3,) m.
        pitch: Distance of neighbors, m; half a cell makes 8 particles per cell. Each has the volume pitch³.
    """
    low, high = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    count = np.floor((high - low) / pitch + 1e-9).astype(int)
    if (count < 1).any():
        raise InputError(f"no particle at a pitch of {pitch:g} m fits between {low} and {high} m")
    axes = [low[a] + (np.arange(count[a]) + 0.5) * pitch for a in range(3)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
