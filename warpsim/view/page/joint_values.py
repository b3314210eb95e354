"""Coordinates of joints from the poses of the bodies they join, for motions that come without them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from warpsim.core.numpy_quaternions import quat_to_matrix
from warpsim.scene import Joint, Scene
from warpsim.scene.description import JOINT_Q_SIZE, Body


def joint_values(
    scene: Scene, index: Mapping[str, int], positions: np.ndarray, rotations: np.ndarray
) -> np.ndarray | None:
    """(frames, nq) coordinates of hinges and slides that are their body's only joint; zero elsewhere.

    Args:
        scene: The scene.
        index: Body → its place in the arrays.
        positions: (frames, bodies, 3) m.
        rotations: (frames, bodies, 4).

    Returns:
        The coordinates; None: the scene has no joint of this kind.
    """
    count = Counter(joint.body for joint in scene.joints)
    bodies = {body.name: body for body in scene.bodies}
    values = np.zeros((len(positions), sum(JOINT_Q_SIZE[joint.kind] for joint in scene.joints)))
    column, found = 0, False
    for joint in scene.joints:
        body = bodies[joint.body]
        if joint.kind in ("hinge", "slide") and count[joint.body] == 1:
            values[:, column] = _values(joint, body, *_relative(body, index, positions, rotations))
            found = True
        column += JOINT_Q_SIZE[joint.kind]
    return values if found else None


def _relative(
    body: Body, index: Mapping[str, int], positions: np.ndarray, rotations: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(frames, 3) and (frames, 3, 3): a body's pose in its parent's frame."""
    place, turn = positions[:, index[body.name]], quat_to_matrix(rotations[:, index[body.name]])
    if body.parent is None:
        return place, turn
    back = np.swapaxes(quat_to_matrix(rotations[:, index[body.parent]]), 1, 2)
    apart = place - positions[:, index[body.parent]]
    return np.einsum("fij,fj->fi", back, apart), back @ turn


def _values(joint: Joint, body: Body, place: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """(frames,) rad or m."""
    reference = quat_to_matrix(np.asarray(body.rotation, dtype=float))
    axis = np.asarray(joint.axis, dtype=float) / np.linalg.norm(joint.axis)
    if joint.kind == "slide":
        return joint.reference + (place - body.position) @ reference @ axis
    moved = reference.T @ turn
    # For a rotation by θ about a: trace = 1 + 2 cos θ, and the antisymmetric part is sin θ [a]×.
    sine = 0.5 * np.stack(
        [moved[:, 2, 1] - moved[:, 1, 2], moved[:, 0, 2] - moved[:, 2, 0], moved[:, 1, 0] - moved[:, 0, 1]], axis=1
    )
    cosine = 0.5 * (np.trace(moved, axis1=1, axis2=2) - 1.0)
    return joint.reference + np.unwrap(np.arctan2(sine @ axis, cosine))
