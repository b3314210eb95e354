"""Values of a scene's parts that say nothing of their own; MuJoCo's."""

from __future__ import annotations

import numpy as np

DEFAULT_SOLREF = (0.02, 1.0)
DEFAULT_SOLIMP = (0.9, 0.95, 0.001, 0.5, 2.0)
DEFAULT_FRICTION = (1.0, 0.005, 0.0001)


def zeros3() -> np.ndarray:
    """No offset, no direction."""
    return np.zeros(3)


def identity_quat() -> np.ndarray:
    """No rotation."""
    return np.array([1.0, 0.0, 0.0, 0.0])
