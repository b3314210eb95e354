"""What a robot senses, by name: tables of features for networks in kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warpsim.core.errors import InputError, unknown_name
from warpsim.policy.spec import COORDINATE, LOCAL_VELOCITY, ROTATION, VELOCITY, Feature
from warpsim.rigid.model.joint_names import JointHandle, find_joint
from warpsim.rigid.model.topology import Layout


def _height(joint: JointHandle) -> list[Feature]:
    return [Feature(COORDINATE, joint.q.start + 2)] if joint.kind == "free" else []


def _up(joint: JointHandle) -> list[Feature]:
    if joint.kind != "free":
        return []
    return [Feature(ROTATION, joint.q.start + 3, entry=6 + k) for k in range(3)]


def _rotation(joint: JointHandle) -> list[Feature]:
    if joint.kind != "free":
        return []
    return [Feature(ROTATION, joint.q.start + 3, entry=k) for k in range(9)]


def _base_velocity(joint: JointHandle) -> list[Feature]:
    return [Feature(VELOCITY, joint.dofs.start + k) for k in range(3)] if joint.kind == "free" else []


def _local_velocity(joint: JointHandle) -> list[Feature]:
    if joint.kind != "free":
        return []
    start, turn = joint.dofs.start, joint.q.start + 3
    return [Feature(LOCAL_VELOCITY, start, entry=k, quaternion=turn) for k in range(3)]


def _angular_velocity(joint: JointHandle) -> list[Feature]:
    return [Feature(VELOCITY, joint.dofs.start + 3 + k) for k in range(3)] if joint.kind == "free" else []


def _joint_position(joint: JointHandle) -> list[Feature]:
    if joint.kind == "ball":
        return [Feature(ROTATION, joint.q.start, entry=k) for k in range(9)]
    return [] if joint.kind == "free" else [Feature(COORDINATE, joint.q.start)]


def _joint_velocity(joint: JointHandle) -> list[Feature]:
    return [] if joint.kind == "free" else [Feature(VELOCITY, k) for k in range(joint.dofs.start, joint.dofs.stop)]


SENSES: dict[str, Callable[[JointHandle], list[Feature]]] = {
    "height": _height,
    "up": _up,
    "rotation": _rotation,
    "base_velocity": _base_velocity,
    "local_velocity": _local_velocity,
    "angular_velocity": _angular_velocity,
    "joint_position": _joint_position,
    "joint_velocity": _joint_velocity,
}
"""Of free joints: height over the world's origin; the world's vertical in the body's axes; the rotation matrix; linear
velocity in the world's axes and in the body's; angular velocity in the body's. Of all others: positions and velocities.
"""


def sensed(layout: Layout, senses: Sequence[str]) -> tuple[Feature, ...]:
    """The features of all joints that some senses show, sense by sense.

    Args:
        layout: Of the model.
        senses: Names from `SENSES`, each once.

    Raises:
        InputError: A sense that does not exist, twice the same, or one that shows nothing of this robot.
    """
    joints = [find_joint(layout, name) for name in layout.joint_names]
    found: list[Feature] = []
    for name in senses:
        if name not in SENSES:
            raise unknown_name("sense", name, SENSES)
        shown = [feature for joint in joints for feature in SENSES[name](joint)]
        if not shown:
            raise InputError(f"sense {name!r} shows nothing of this robot: it has no joint of that kind; leave it out")
        found += shown
    if len(set(found)) < len(found):
        raise InputError(f"senses {', '.join(senses)} show something twice; name each once")
    return tuple(found)
