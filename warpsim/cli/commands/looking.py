"""The stage that a file shows: what `view` and `render` draw."""

from __future__ import annotations

from pathlib import Path

from pxr import Usd

from warpsim.core.errors import InputError
from warpsim.io.load import load_scene
from warpsim.io.saved_motion import read_motion
from warpsim.io.scene_files import is_usd
from warpsim.io.usd.export import export_scene
from warpsim.io.usd.export.result import exported_animation
from warpsim.io.usd.reader import open_stage
from warpsim.io.usd.writer import animated_stage


def open_for_looking(
    source: str, *, keyframe: str | None = None, scene: str | None = None, world: int | None = None
) -> Usd.Stage:
    """The file's stage; other formats are converted in memory, and physics that is not modeled is no matter here.

    Args:
        source: A USD, MJCF or URDF file, or a motion saved as .npz.
        keyframe: MJCF: which one to show.
        scene: For an .npz file: what was simulated.
        world: For an .npz file: which world; None: the first.
    """
    if Path(source).suffix.lower() == ".npz":
        return _saved_stage(source, scene, world or 0)
    if scene is not None or world is not None:
        raise InputError(f"--scene and --world go with a motion saved as .npz, and {source} is none")
    if is_usd(source) and keyframe is None:
        if not Path(source).is_file():
            raise InputError(f"no file {source!r}")
        return open_stage(source)
    return export_scene(load_scene(source, strict=False, keyframe=keyframe))[0]


def _saved_stage(motion: str, source: str | None, world: int) -> Usd.Stage:
    """A motion of arrays alone, over the scene that was simulated."""
    if source is None:
        raise InputError(f"{motion} holds a motion and no shapes; name the file that was simulated with --scene")
    scene = load_scene(source, strict=False)
    frames = read_motion(motion, scene, world=world)
    return animated_stage(open_stage(source), scene, frames) if is_usd(source) else exported_animation(scene, frames)
