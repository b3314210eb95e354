"""How long the arrows of contact forces are drawn, on pages and in pictures alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpsim.io.usd.motion import ContactFrame

SHARE, LONGEST = 0.4, 0.5
"""Of the scene's size: all arrows of the usual frame together, and a single one at most."""


def usual_force(frames: Sequence[ContactFrame]) -> float:
    """N: median over frames with contacts of the sum of all forces, which a few impacts do not move.

    The unit of arrows; 0: there are no contacts.
    """
    sums = [float(np.linalg.norm(frame.forces, axis=1).sum()) for frame in frames if len(frame.points)]
    return float(np.median(sums)) if sums else 0.0


def force_segments(frame: ContactFrame, usual: float, size: float) -> tuple[np.ndarray, np.ndarray]:
    """(n, 3) m each: starts and ends of the arrows.

    Args:
        frame: The contacts.
        usual: N, see `usual_force`.
        size: Of the scene, m.
    """
    starts = np.asarray(frame.points, dtype=float).reshape(-1, 3)
    forces = np.asarray(frame.forces, dtype=float).reshape(-1, 3)
    lengths = np.linalg.norm(forces, axis=1, keepdims=True)
    drawn = np.minimum(lengths * SHARE * size / (usual or 1.0), LONGEST * size)
    return starts, starts + np.where(lengths > 0.0, forces / np.where(lengths > 0.0, lengths, 1.0), 0.0) * drawn
