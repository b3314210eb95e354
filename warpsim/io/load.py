"""`load_scene`: a scene from anything the package reads, and warnings of what it lacks."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from warpsim.core.errors import AssumedWarning, InputError, UnsupportedPhysicsWarning
from warpsim.core.registry import provided
from warpsim.io.scene_files import MJCF_SUFFIXES, USD_SUFFIXES, is_usd
from warpsim.io.usd.reader import read_usd
from warpsim.scene import Scene
from warpsim.scene.convergence import with_stop
from warpsim.scene.ledger import assumed, unsupported

SceneSource = str | PathLike[str] | Scene | Any
"""A file, MJCF or URDF text, a `Scene`, or MuJoCo's `MjModel` or `MjSpec` (Any: MuJoCo need not be installed)."""


def source_path(source: SceneSource) -> Path | None:
    """The file that a source names; None where it is no file."""
    if isinstance(source, str) and source.lstrip().startswith("<"):
        return None
    return Path(fspath(source)) if isinstance(source, (str, PathLike)) else None


def load_scene(source: SceneSource, *, strict: bool | None = None, keyframe: str | None = None) -> Scene:
    """Reads a scene.

    Args:
        source: Path of a USD (.usd, .usda, .usdc, .usdz), MJCF (.xml) or URDF (.urdf) file; MJCF or URDF text, which
            starts with "<"; a `mujoco.MjModel` or `mujoco.MjSpec`, of which nothing is kept; or a `Scene`, returned
            as it is.
        strict: Whether physics that is not modeled raises instead of being noted in `Scene.ledger`. None: each
            reader's own rule (USD notes, MJCF and URDF raise).
        keyframe: MJCF only: name of the keyframe that gives the initial state.
    """
    if isinstance(source, Scene):
        return source
    options: dict[str, Any] = {} if strict is None else {"strict": strict}
    path = source_path(source)
    if path is None:
        return with_stop(_scene_of_mujoco(source, keyframe=keyframe, **options), None)
    if not path.is_file():
        raise InputError(f"no file {str(path)!r}; give a {', '.join((*USD_SUFFIXES, *MJCF_SUFFIXES))} file")
    if is_usd(path):
        if keyframe is not None:
            raise InputError(f"keyframe={keyframe!r}: keyframes are read from MJCF files, and {path} is USD")
        return with_stop(read_usd(path, **options), None)
    if path.suffix.lower() in MJCF_SUFFIXES:
        return with_stop(provided("read_mjcf")(path, keyframe=keyframe, **options), None)
    raise InputError(f"{path}: unknown suffix {path.suffix!r}; use one of {', '.join((*USD_SUFFIXES, *MJCF_SUFFIXES))}")


def _scene_of_mujoco(source: Any, **options: Any) -> Scene:
    """The scene of XML text, an `MjModel` or an `MjSpec`."""
    if isinstance(source, str):
        return provided("read_mjcf")(source, **options)
    kind = type(source)  # told by name: whoever has no MuJoCo has no model of it
    if kind.__module__.startswith("mujoco.") and kind.__name__ in ("MjModel", "MjSpec"):
        return provided("scene_of_model")(source, **options)
    raise InputError(f"a scene is a path, MJCF text, a `Scene`, an `MjModel` or an `MjSpec`, not {source!r}")


def warn_of_ledger(scene: Scene, source: str) -> None:
    """Warns the caller's caller's caller that a file holds physics that is left out, or leaves some open."""
    for entries, what, category in (
        (unsupported(scene.ledger), "has physics that is not simulated", UnsupportedPhysicsWarning),
        (assumed(scene.ledger), "leaves physics open", AssumedWarning),
    ):
        if entries:
            more = f" and {len(entries) - 1} more" if len(entries) > 1 else ""
            warnings.warn(
                f"{source} {what}: {entries[0]}{more}; `warpsim inspect` lists all of it", category, stacklevel=4
            )


@contextmanager
def ledger_told() -> Iterator[None]:
    """While open, nothing is said of what a file lacks: it was, when its source was read."""
    with warnings.catch_warnings():
        for category in (UnsupportedPhysicsWarning, AssumedWarning):
            warnings.simplefilter("ignore", category)
        yield
