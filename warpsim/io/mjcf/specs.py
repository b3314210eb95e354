"""MJCF files as MuJoCo's editable description, for writers that change some of its values."""

from __future__ import annotations

from os import PathLike, fspath

from warpsim.io.mjcf.engine import mujoco


def read_spec(path: str | PathLike[str]) -> mujoco.MjSpec:
    """The description in a file."""
    return mujoco.MjSpec.from_file(fspath(path))


def infer_missing_inertias(spec: mujoco.MjSpec) -> None:
    """Lets the inertias that bodies state count, and derives only those of the others from shapes."""
    spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_AUTO
