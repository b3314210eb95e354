"""The one place that imports MuJoCo, which parses MJCF and URDF for this package."""

from __future__ import annotations

from warpsim.core.errors import WarpsimError

try:
    import mujoco
except ImportError as error:
    raise WarpsimError(
        "reading MJCF or URDF needs MuJoCo, which is not installed: pip install warpsim[mjcf]"
    ) from error

__all__ = ["mujoco"]
