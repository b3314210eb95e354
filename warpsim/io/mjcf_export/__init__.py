"""Scene → MJCF; needs no MuJoCo."""

from warpsim.io.mjcf_export.scene import Inertial, mjcf_of_scene

__all__ = ["Inertial", "mjcf_of_scene"]
