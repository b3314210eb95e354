"""A `Scene` and the file it came from → what moves, what is drawn, and what is known of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from pxr import Usd, UsdGeom

from warpsim.io.usd.frames import split_affine
from warpsim.io.usd.motion import Motion
from warpsim.io.usd.reader import open_stage
from warpsim.scene import Scene
from warpsim.scene.description import JOINT_Q_SIZE
from warpsim.scene.matters import matter_kind
from warpsim.view.items.item import Item
from warpsim.view.items.scene_items import SceneReader
from warpsim.view.items.stage_items import StageReader
from warpsim.view.page.content import BodyInfo, JointInfo, Page, RigidDrawable, Take

MAXIMUM_FRAMES = 2000
"""Of one take: longer motions are thinned."""


def scene_bodies(
    scene: Scene, masses: Mapping[str, float] | None = None, centers: Mapping[str, np.ndarray] | None = None
) -> list[BodyInfo]:
    """Bodies in the scene's order.

    Args:
        scene: The scene.
        masses: kg by body, where more is known than was authored.
        centers: (3,) m by body, in its frame, likewise.
    """
    masses, centers = masses or {}, centers or {}
    return [
        BodyInfo(body.name, masses.get(body.name, body.mass), centers.get(body.name, body.com)) for body in scene.bodies
    ]


def scene_joints(scene: Scene) -> list[JointInfo]:
    """Joints in the scene's order; those with one coordinate know their column of q."""
    joints, column = [], 0
    for joint in scene.joints:
        single = JOINT_Q_SIZE[joint.kind] == 1
        joints.append(
            JointInfo(
                joint.name,
                joint.kind,
                joint.body,
                np.asarray(joint.anchor),
                np.asarray(joint.axis),
                column if single else None,
                joint.limit if single else None,
            )
        )
        column += JOINT_Q_SIZE[joint.kind]
    return joints


def scene_drawables(scene: Scene, path: Path | None) -> list[RigidDrawable]:
    """What is to be seen of a scene, and its colliders.

    Args:
        scene: The scene.
        path: The USD file it came from, which has looks that a scene leaves out; None: the scene's shapes are all.
    """
    if path is None:
        frames = {body.name: np.eye(4) for body in scene.bodies}
        shown = SceneReader(scene).items(frames)
        return merged(shown, SceneReader(scene, colliders=True).items(frames))
    stage = open_stage(path)
    return stage_drawables(stage, StageReader(stage), {body.name for body in scene.bodies})


def stage_drawables(
    stage: Usd.Stage, looks: StageReader, bodies: Collection[str], time: Usd.TimeCode | None = None
) -> list[RigidDrawable]:
    """What is to be seen on a stage, in the frames of its bodies.

    Args:
        stage: The stage.
        looks: Its reader.
        bodies: Paths of prims that move; what belongs to none of them stands in the world.
        time: When it is read; None: the earliest time.
    """
    time = Usd.TimeCode.EarliestTime() if time is None else time
    colliders = StageReader(stage, colliders=True, beside=looks)
    cache = UsdGeom.XformCache(time)
    inverses = {
        path: np.linalg.inv(rigid_part(looks.to_world(stage.GetPrimAtPath(path), cache)))
        for path in bodies
        if stage.GetPrimAtPath(path)
    }

    def local(items: Sequence[Item]) -> list[Item]:
        owners = [item.name if item.body is None else item.body for item in items]  # some move without being bodies
        return [
            replace(item, to_world=inverses[owner] @ item.to_world, body=owner)
            if owner in inverses
            else replace(item, body=None)
            for item, owner in zip(items, owners, strict=True)
        ]

    return merged(local(looks.items(time)), local(colliders.items(time)))


def merged(shown: Sequence[Item], colliders: Sequence[Item]) -> list[RigidDrawable]:
    """One list; what is shown and collides is in it once."""
    solid = {item.name for item in colliders}
    names = {item.name for item in shown}
    drawables = [RigidDrawable(item, True, item.name in solid) for item in shown]
    return drawables + [RigidDrawable(item, False, True) for item in colliders if item.name not in names]


def rigid_part(matrix: np.ndarray) -> np.ndarray:
    """(4, 4) the pose in an affine matrix, without its scale."""
    pose = split_affine(matrix[:3, :3], matrix[:3, 3]).pose
    rigid = np.eye(4)
    rigid[:3, :3], rigid[:3, 3] = pose.matrix, pose.position
    return rigid


def motions_page(
    scene: Scene,
    path: Path | None,
    motions: Sequence[tuple[str, Motion]],
    *,
    title: str,
    masses: Mapping[str, float] | None = None,
    centers: Mapping[str, np.ndarray] | None = None,
) -> Page:
    """Motions of one scene.

    Args:
        scene: As simulated.
        path: The USD file it came from; None: not from one.
        motions: Name and motion of each.
        title: Of the page.
        masses: As in `scene_bodies`.
        centers: Likewise.
    """
    soft = [drawable for matter in scene.matters for drawable in matter_kind(matter.kind).drawables(matter)]
    moved = {drawable.path for drawable in soft}
    rigid = [drawable for drawable in scene_drawables(scene, path) if drawable.item.name not in moved]
    return Page(
        title,
        scene_bodies(scene, masses, centers),
        [*rigid, *soft],
        [motion_take(motion, name) for name, motion in motions],
        joints=scene_joints(scene),
    )


def motion_take(
    motion: Motion,
    name: str,
    *,
    ghost: bool = False,
    iteration: int | None = None,
    loss: float | None = None,
) -> Take:
    """A motion in the order of the scene's bodies and joints, thinned if it is very long."""
    every = -(-len(motion.times) // MAXIMUM_FRAMES)
    frames = slice(None, None, every)
    return Take(
        name,
        motion.times[frames],
        motion.positions[frames],
        motion.rotations[frames],
        values=motion.q[frames],
        points={path: points[frames] for path, points in motion.points.items()},
        contacts=None if motion.contacts is None else list(motion.contacts)[frames],
        ghost=ghost,
        iteration=iteration,
        loss=loss,
    )
