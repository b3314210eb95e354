"""`render_stage`, `render_rollout`: pictures of a USD stage, or of a rollout straight from memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Protocol

import numpy as np
import warp as wp
from pxr import Usd
from tqdm.auto import tqdm

from warpsim.core.errors import InputError, SceneError
from warpsim.io.usd.motion import ContactFrame
from warpsim.io.usd.reader import open_stage
from warpsim.scene import Scene
from warpsim.view.items.camera import Camera
from warpsim.view.items.focus import find_focus
from warpsim.view.items.forces import force_segments, usual_force
from warpsim.view.items.item import Item
from warpsim.view.items.scene_items import SceneReader, pose_matrix
from warpsim.view.items.stage_items import StageReader
from warpsim.view.raycast.arrows import ARROW, arrows, stage_segments
from warpsim.view.raycast.raycast import Painter
from warpsim.view.raycast.stage_camera import stage_camera
from warpsim.view.raycast.times import frame_times

LARGEST = 8192
"""Pixels along an edge."""


def render_stage(
    source: str | PathLike[str] | Usd.Stage,
    *,
    times: Sequence[float] | None = None,
    frames: int | None = None,
    width: int = 480,
    height: int = 320,
    camera: str | Camera | None = None,
    colliders: bool = False,
    contacts: bool = True,
    scale: float | None = None,
    device: wp.DeviceLike = "cpu",
    progress: bool = False,
) -> list[np.ndarray]:
    """Draws a stage.

    Drawn are Sphere, Cube, Capsule, Cylinder, Cone, Plane, Mesh, TetMesh, BasisCurves and Points prims that are visible
    and have purpose default or render, instances included, with the plain color of their material or their
    displayColor; points as balls of their widths. Rigid bodies of which
    these show nothing, or next to nothing, are drawn by their colliders too, whatever the purpose of those. Planes that
    are colliders have no end. The same inputs give the same bytes.

    Args:
        source: A USD file or an open stage.
        times: Time codes, one picture each. None: as `frames` says.
        frames: How many pictures, evenly over the stage's time range. None: 25 per second.
        width: Pixels.
        height: Pixels.
        camera: Path of a `UsdGeom.Camera`, or a camera. None: one three-quarter view of all that moves in any picture.
        colliders: Draw all colliders, hidden or not, and nothing else.
        contacts: Draw contact forces as arrows, where a saved motion has them.
        scale: Size of what is to be seen, m, which sets the ground's grid and the haze; give one to pictures that
            are to be compared. None: that of the automatic view.
        device: Warp device.
        progress: Show a progress bar.

    Returns:
        Pictures, each (height, width, 3) uint8, sRGB.

    Raises:
        InputError: A wrong size, time or file.
        SceneError: Nothing to draw.
        UnknownNameError: No such camera.
    """
    if times is not None and frames is not None:
        raise InputError("give times or frames, not both")
    stage = open_stage(source)
    codes = [Usd.TimeCode(t) for t in (frame_times(stage, frames=frames) if times is None else times)]
    reader = StageReader(stage, colliders=colliders)
    scenes = [reader.items(code) for code in codes]
    if contacts and any(scenes):
        size = find_focus([items for items in scenes if items]).size
        forces = [stage_segments(stage, reader, code) for code in codes]
        scenes = [[*items, *arrows(*found, size)] for items, found in zip(scenes, forces, strict=True)]
    place = stage.GetRootLayer().identifier
    if codes and not any(scenes):
        what = "collider that is a" if colliders else "visible"
        hint = "" if colliders else " of purpose default or render; colliders=True (--colliders) draws what is hidden"
        raise SceneError(
            f"{place}: nothing to draw; it has no {what} Sphere, Cube, Capsule, Cylinder, Cone, Plane or Mesh{hint}"
        )
    if isinstance(camera, str):
        path = camera
        return _paint(scenes, lambda k: stage_camera(stage, path, codes[k]), width, height, device, progress, scale)
    return _paint(scenes, camera, width, height, device, progress, scale)


class Rollout(Protocol):
    """What is drawn of a trajectory: where bodies were, (frames, worlds, …) each."""

    times: np.ndarray

    def body_position(self, body: str) -> Any:
        """Tensor (frames, worlds, 3), m."""

    def body_rotation(self, body: str) -> Any:
        """Tensor (frames, worlds, 4), w first."""


def render_rollout(
    scene: Scene,
    trajectory: Rollout,
    *,
    frames: Sequence[int] | None = None,
    world: int = 0,
    width: int = 480,
    height: int = 320,
    camera: Camera | None = None,
    contacts: Sequence[ContactFrame] | None = None,
    device: wp.DeviceLike = "cpu",
    progress: bool = False,
) -> list[np.ndarray]:
    """Draws a rollout's visible shapes, whatever file the scene came from.

    Bodies of which these show nothing, or next to nothing, are drawn by their colliders too. Of a USD file a scene
    holds colliders alone; `render_stage` draws its other meshes, too.

    Args:
        scene: As simulated: `simulator.scene`.
        trajectory: With the outputs "body_position" and "body_rotation".
        frames: Frames of the trajectory, one picture each; None: all.
        world: Which world.
        width: Pixels.
        height: Pixels.
        camera: None: one three-quarter view of all that moves in any picture.
        contacts: Of all of the trajectory's frames, `trajectory.motion(world).contacts`: drawn as arrows.
        device: Warp device.
        progress: Show a progress bar.

    Returns:
        Pictures, each (height, width, 3) uint8, sRGB.
    """
    tracks = {
        body.name: (
            trajectory.body_position(body.name)[:, world].detach().cpu().numpy(),
            trajectory.body_rotation(body.name)[:, world].detach().cpu().numpy(),
        )
        for body in scene.bodies
    }
    reader = SceneReader(scene)
    chosen = range(len(trajectory.times)) if frames is None else frames
    scenes = [
        reader.items(
            {name: pose_matrix(positions[frame], rotations[frame]) for name, (positions, rotations) in tracks.items()}
        )
        for frame in chosen
    ]
    if scenes and not any(scenes):
        raise SceneError("nothing to draw: the scene has no visible shape")
    if contacts is not None and scenes:
        size, usual = find_focus(scenes).size, usual_force(contacts)
        forces = [force_segments(contacts[frame], usual, size) for frame in chosen]
        scenes = [[*items, *arrows(*found, size)] for items, found in zip(scenes, forces, strict=True)]
    return _paint(scenes, camera, width, height, device, progress)


def _paint(
    scenes: Sequence[Sequence[Item]],
    camera: Camera | Callable[[int], Camera] | None,
    width: int,
    height: int,
    device: wp.DeviceLike,
    progress: bool,
    scale: float | None = None,
) -> list[np.ndarray]:
    """One picture per list of items; `camera` may depend on the picture's number."""
    for name, value in (("width", width), ("height", height)):
        if not 1 <= value <= LARGEST:
            raise InputError(f"{name}={value}: pictures have 1 to {LARGEST} pixels along an edge")
    if not scenes:
        return []
    focus = find_focus([[item for item in items if item.name != ARROW] for items in scenes if items])
    if camera is None:
        camera = focus.camera(width / height)
    painter = Painter(width=width, height=height, scale=scale or focus.size, device=device)
    return [
        painter.draw(items, camera if isinstance(camera, Camera) else camera(number))
        for number, items in enumerate(tqdm(scenes, unit="frame", disable=not progress))
    ]
