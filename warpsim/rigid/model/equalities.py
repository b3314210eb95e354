"""Equality constraints: which things they hold, and their parameters.

Points and poses that a scene leaves open are those of the reference configuration. They are found once, when the model
is compiled, and are authored parameters from then on: moving a body's reference pose later does not move them.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from warpsim.core.precision import quat, real, vec2, vec3, vec5
from warpsim.rigid.model.parameters import EqualityParameters
from warpsim.rigid.model.tables import Tables
from warpsim.rigid.model.topology import Layout
from warpsim.scene import Body, Equality, Scene
from warpsim.scene.description import EQUALITY_KINDS

CONNECT = wp.constant(EQUALITY_KINDS.index("connect"))
WELD = wp.constant(EQUALITY_KINDS.index("weld"))
JOINT = wp.constant(EQUALITY_KINDS.index("joint"))
TENDON = wp.constant(EQUALITY_KINDS.index("tendon"))
DISTANCE = wp.constant(EQUALITY_KINDS.index("distance"))


@wp.struct
class EqualityTopology:
    """Per active equality."""

    count: wp.int32
    kind: wp.array(dtype=wp.int32)  # index into EQUALITY_KINDS
    locked: wp.array(dtype=wp.int32)  # axes: bits 0 to 2 translations, 3 to 5 turns
    a: wp.array(dtype=wp.int32)  # body (connect, weld, distance, axes), joint or tendon
    b: wp.array(dtype=wp.int32)  # the same; -1: a joint or tendon held to a constant


Pose = tuple[np.ndarray, np.ndarray]
"""Position (3,) in m and unit quaternion (4,), w first."""


def _multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    w = a[0] * b[0] - a[1:] @ b[1:]
    return np.concatenate([[w], a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])])


def _rotate(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    t = 2.0 * np.cross(q[1:], v)
    return v + q[0] * t + np.cross(q[1:], t)


def _inverse(pose: Pose) -> Pose:
    position, rotation = pose
    back = rotation * [1.0, -1.0, -1.0, -1.0]
    return -_rotate(back, position), back


def _compose(outer: Pose, inner: Pose) -> Pose:
    return outer[0] + _rotate(outer[1], inner[0]), _multiply(outer[1], inner[1])


def reference_poses(bodies: list[Body]) -> dict[str | None, Pose]:
    """World poses of bodies at the reference configuration, where joints displace nothing; None is the world.

    Args:
        bodies: Parents before children.
    """
    poses: dict[str | None, Pose] = {None: (np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))}
    for body in bodies:
        rotation = np.asarray(body.rotation, np.float64)
        own = (np.asarray(body.position, np.float64), rotation / np.linalg.norm(rotation))
        poses[body.name] = _compose(poses[body.parent], own)
    return poses


def _held_points(e: Equality, b_in_a: Pose) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Point in a, point in b and rotation of b in a that an equality of bodies holds."""
    anchor = np.asarray(e.anchor, np.float64)
    if e.kind in ("weld", "axes"):
        pose = b_in_a
        if e.relative_pose is not None:
            given = np.asarray(e.relative_pose, np.float64)
            pose = (given[:3], given[3:] / np.linalg.norm(given[3:]))
        return pose[0] + _rotate(pose[1], anchor), anchor, pose[1]
    if e.anchor_b is not None:
        return anchor, np.asarray(e.anchor_b, np.float64), b_in_a[1]
    position, rotation = _inverse(b_in_a)
    return anchor, position + _rotate(rotation, anchor), b_in_a[1]


def _target(e: Equality, layout: Layout, name: str | None) -> int:
    if e.kind == "joint":
        return -1 if name is None else layout.joint(name)
    if e.kind == "tendon":
        return -1 if name is None else layout.tendon_names.index(name)
    return layout.body(name)


def equalities(
    t: Tables, scene: Scene, layout: Layout, bodies: list[Body]
) -> tuple[EqualityTopology, EqualityParameters, tuple[str, ...]]:
    """Topology, parameters and names of the active equalities; none without `options.constraints`.

    Args:
        t: Where the parameters are entered.
        scene: Validated.
        layout: Indices of bodies, joints and tendons.
        bodies: Parents before children.
    """
    active = [e for e in scene.equalities if e.active and scene.options.constraints]
    poses = reference_poses(bodies)
    points = []
    for e in active:
        of_bodies = e.kind not in ("joint", "tendon")
        b_in_a = _compose(_inverse(poses[e.a]), poses[e.b]) if of_bodies else poses[None]
        points.append(_held_points(e, b_in_a))
    topology = EqualityTopology()
    topology.count = len(active)
    topology.kind = t.integers([EQUALITY_KINDS.index(e.kind) for e in active])
    topology.locked = t.integers([sum(held << n for n, held in enumerate(e.locked)) for e in active])
    topology.a = t.integers([_target(e, layout, e.a) for e in active])
    topology.b = t.integers([_target(e, layout, e.b) for e in active])
    p = EqualityParameters()
    p.anchor_a = t.parameter("equality.anchor_a", [point[0] for point in points], vec3)
    p.anchor_b = t.parameter("equality.anchor_b", [point[1] for point in points], vec3)
    rotations = [point[2] for point in points]
    p.relative_rotation = t.parameter("equality.relative_rotation", rotations, quat, derived=True)
    p.axes = t.parameter("equality.axes", [e.axes for e in active], quat, derived=True)
    p.torque_scale = t.parameter("equality.torque_scale", [e.torque_scale for e in active], real)
    p.polynomial = t.parameter("equality.polynomial", [e.polynomial for e in active], vec5)
    p.range = t.parameter("equality.range", [e.distance_range for e in active], vec2)
    p.solref = t.parameter("equality.solref", [e.solref for e in active], vec2)
    p.solimp = t.parameter("equality.solimp", [e.solimp for e in active], vec5)
    return topology, p, tuple(e.name for e in active)
