"""Motions of scenes that are no USD file (MJCF, URDF, Python): the scene as USD, and its motion over it."""

from __future__ import annotations

import warnings
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path

from pxr import Usd

from warpsim.core.errors import UnsupportedPhysicsWarning
from warpsim.io.usd.export.scene import build_export
from warpsim.io.usd.export.state import Export
from warpsim.io.usd.layer_files import export_layer
from warpsim.io.usd.motion import Motion
from warpsim.io.usd.state_names import FREE_SUFFIX
from warpsim.io.usd.writer import animated_stage, write_result
from warpsim.scene import Scene


def export_result(path: str | PathLike[str], scene: Scene, motion: Motion) -> list[Path]:
    """Writes a scene and a motion of it as USD.

    `out.usda` is as `write_result` makes it, over `out.scene.usdc`, which holds the scene.

    Args:
        path: The root layer, .usda or .usdc.
        scene: What was simulated.
        motion: In the scene's order.

    Returns:
        The files written, the root first.
    """
    root = Path(fspath(path))
    export = build_export(scene)
    source = root.with_name(f"{root.stem}.scene.usdc")
    layer = export.stage.GetRootLayer()
    layer.customLayerData = {"warpsim": {"scene": scene.name}}
    export_layer(layer, source)
    _warn_of_losses(root, export)
    return [*write_result(root, source, _named_by_prims(export), motion), source]


def exported_animation(scene: Scene, motion: Motion) -> Usd.Stage:
    """A scene and a motion of it as a stage in memory, poses alone."""
    export = build_export(scene)
    return animated_stage(export.stage, _named_by_prims(export), motion)


def _named_by_prims(export: Export) -> Scene:
    """The scene with the names by which a reader of the stage would call its bodies and joints."""

    def path(kind: str, name: str) -> str:
        return str(export.prims[(kind, name)].GetPath())

    scene = export.scene
    joints = [
        replace(joint, name=path("joint", joint.name) + (FREE_SUFFIX if joint.kind == "free" else ""))
        for joint in scene.joints
    ]
    return replace(scene, bodies=[replace(body, name=path("body", body.name)) for body in scene.bodies], joints=joints)


def _warn_of_losses(path: Path, export: Export) -> None:
    if export.notes:
        more = f" and {len(export.notes) - 1} more" if len(export.notes) > 1 else ""
        warnings.warn(
            f"{path} holds the whole motion, but of the scene it lacks {export.notes[0]}{more}",
            UnsupportedPhysicsWarning,
            stacklevel=4,
        )
