"""Scenes from MJCF and URDF files, or from a MuJoCo model or its specification (needs the extra `mjcf`)."""

from warpsim.io.mjcf.reader import read_mjcf, scene_from_mjmodel, scene_of_model

__all__ = ["read_mjcf", "scene_from_mjmodel", "scene_of_model"]
