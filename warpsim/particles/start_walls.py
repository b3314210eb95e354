"""Where walls are when a scene starts, as far as that is known before anything is compiled."""

from __future__ import annotations

import numpy as np

from warpsim.io.usd.frames import Pose
from warpsim.rigid.model.equalities import reference_poses
from warpsim.scene.description import Joint, Scene, Shape


def start_poses(scene: Scene, shapes: list[Shape]) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Poses in the world of shapes whose bodies start at the reference configuration, and of those that stand.

    Args:
        scene: Whose bodies carry them.
        shapes: Walls.

    Returns:
        Numbers of those shapes, their positions (n, 3) m and rotations (n, 4), w first. The others hang on a joint
        that starts elsewhere.
    """
    bodies = reference_poses(scene.bodies)
    parent = {body.name: body.parent for body in scene.bodies}
    away = {joint.body for joint in scene.joints if _starts_elsewhere(joint)}
    numbers, poses = [], []
    for number, shape in enumerate(shapes):
        above: list[str] = []
        body = shape.body
        while body is not None:
            above.append(body)
            body = parent[body]
        if away.isdisjoint(above):
            numbers.append(number)
            poses.append(Pose(*bodies[shape.body]) @ Pose(np.asarray(shape.position), np.asarray(shape.rotation)))
    position = np.array([pose.position for pose in poses]).reshape(-1, 3)
    return numbers, position, np.array([pose.rotation for pose in poses]).reshape(-1, 4)


def _starts_elsewhere(joint: Joint) -> bool:
    if joint.initial_q is None:
        return False
    return joint.kind not in ("hinge", "slide") or float(np.ravel(joint.initial_q)[0]) != joint.reference
