"""Scenes from MJCF and URDF files, or from a compiled MuJoCo model (needs the extra `mjcf`)."""

from warpsim.io.mjcf.reader import read_mjcf, scene_from_mjmodel

__all__ = ["read_mjcf", "scene_from_mjmodel"]
