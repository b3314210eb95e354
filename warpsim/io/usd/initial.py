"""Where a rollout starts: coordinates from our own arrays, authored joint states, or the bodies' poses."""

from __future__ import annotations

import numpy as np

from warpsim.core.numpy_quaternions import quat_about, quat_conjugate, quat_log, quat_multiply
from warpsim.io.usd.bodies import reference_pose
from warpsim.io.usd.context import Context
from warpsim.io.usd.frames import IDENTITY, Pose
from warpsim.io.usd.physics_objects import PhysicsObjects
from warpsim.io.usd.state_names import Q_ATTRIBUTE, QD_ATTRIBUTE, state_place
from warpsim.io.usd.tree import Link
from warpsim.scene import Joint
from warpsim.scene.description import JOINT_DOF_SIZE, JOINT_Q_SIZE

_NOISE = 1e-6
"""m and rad: joint frames are float32, so a smaller departure from zero is rounding, not a pose."""
_OFF_MANIFOLD = 1e-4
"""m and rad: a body further from where its joint can put it is reported."""
_GAUSS_NEWTON_STEPS = 50


def set_initial_state(context: Context, objects: PhysicsObjects, link: Link, joints: list[Joint]) -> None:
    """Sets `initial_q` and `initial_qd` of the link's joints."""
    if link.joints:
        _from_pose(context, objects, link, joints)
        for joint in joints:
            _from_state(context, joint)
    for joint in joints:
        _from_own_arrays(context, joint)


def _from_own_arrays(context: Context, joint: Joint) -> None:
    path, suffix = state_place(joint.name)
    prim = context.prim(path)
    q = context.read.vector(prim, Q_ATTRIBUTE + suffix, JOINT_Q_SIZE[joint.kind])
    qd = context.read.vector(prim, QD_ATTRIBUTE + suffix, JOINT_DOF_SIZE[joint.kind])
    for field, value in (("initial_q", q), ("initial_qd", qd)):
        if value is not None:
            setattr(joint, field, value)


def _from_state(context: Context, joint: Joint) -> None:
    """PhysX' joint states, `state:<axis>:physics:position` and `velocity`."""
    if joint.kind not in ("hinge", "slide"):
        return
    path, suffix = state_place(joint.name)
    prim, token = context.prim(path), suffix[1:] or ("angular" if joint.kind == "hinge" else "linear")
    factor = context.units.coordinate(joint.kind == "hinge")
    for quantity, field in (("position", "initial_q"), ("velocity", "initial_qd")):
        name = f"state:{token}:physics:{quantity}"
        value = context.read.number(prim, name)
        if value is not None:
            setattr(joint, field, np.array([factor * value]))


def _from_pose(context: Context, objects: PhysicsObjects, link: Link, joints: list[Joint]) -> None:
    parent = context.frame(objects.bodies[link.parent]).pose if link.parent else IDENTITY
    authored = parent.inverse() @ context.frame(objects.bodies[link.body]).pose
    zero = reference_pose(context, link)
    motion = zero.inverse() @ authored
    q = _fit(motion, joints)
    shift, turn = _moved(q, joints).distance(motion)
    if max(shift, turn) > _OFF_MANIFOLD:
        context.ledger.ignored(
            objects.bodies[link.body],
            "xformOpOrder",
            f"the authored pose is {shift:.2g} m, {turn:.2g} rad off what the joint allows: its frames are kept",
        )
    for joint, value in zip(joints, q, strict=True):
        departure = quat_log(value) if joint.kind == "ball" else value
        if np.abs(departure).max() > _NOISE:
            joint.initial_q = value if joint.kind == "ball" else joint.reference + value


def _fit(motion: Pose, joints: list[Joint]) -> list[np.ndarray]:
    """Coordinates that bring the child nearest to `motion` (its pose relative to its zero pose)."""
    if len(joints) == 1:
        return [_fit_one(motion, joints[0])]
    q = [np.array([1.0, 0.0, 0.0, 0.0]) if joint.kind == "ball" else np.zeros(1) for joint in joints]
    if not joints:
        return q
    for _ in range(_GAUSS_NEWTON_STEPS):  # pose error → coordinates, least squares
        error = _residual(_moved(q, joints), motion)
        step = np.linalg.lstsq(_jacobian(q, joints), error, rcond=None)[0]
        q = _advance(q, joints, step)
        if np.abs(step).max() < 1e-14:
            break
    return q


def _fit_one(motion: Pose, joint: Joint) -> np.ndarray:
    if joint.kind == "slide":
        return np.array([joint.axis @ motion.position])
    if joint.kind == "hinge":
        sign = -1.0 if motion.rotation[0] < 0 else 1.0  # of the two quaternions, the one within half a turn
        return np.array([2.0 * np.arctan2(sign * (joint.axis @ motion.rotation[1:]), abs(motion.rotation[0]))])
    return motion.rotation


def _moved(q: list[np.ndarray], joints: list[Joint]) -> Pose:
    """Pose of the child relative to its zero pose: the joints act in order, each in the frame the earlier ones left."""
    pose = IDENTITY
    for value, joint in zip(q, joints, strict=True):
        if joint.kind == "slide":
            step = Pose(joint.axis * value[0], IDENTITY.rotation)
        else:
            turn = quat_about(joint.axis, value[0]) if joint.kind == "hinge" else value
            there = Pose(joint.anchor, IDENTITY.rotation)
            step = there @ Pose(np.zeros(3), turn) @ there.inverse()
        pose = pose @ step
    return pose


def _residual(pose: Pose, target: Pose) -> np.ndarray:
    turn = quat_multiply(target.rotation, quat_conjugate(pose.rotation))
    return np.concatenate([target.position - pose.position, quat_log(turn)])


def _advance(q: list[np.ndarray], joints: list[Joint], step: np.ndarray) -> list[np.ndarray]:
    moved, at = [], 0
    for value, joint in zip(q, joints, strict=True):
        size = JOINT_DOF_SIZE[joint.kind]
        part = step[at : at + size]
        at += size
        if joint.kind == "ball":
            angle = float(np.linalg.norm(part))
            turn = quat_about(part / angle, angle) if angle > 0 else IDENTITY.rotation
            moved.append(quat_multiply(value, turn))
        else:
            moved.append(value + part)
    return moved


def _jacobian(q: list[np.ndarray], joints: list[Joint]) -> np.ndarray:
    """(6, dofs) by central differences: exact enough for a fit, and run once per compound."""
    size = sum(JOINT_DOF_SIZE[joint.kind] for joint in joints)
    columns = []
    for unit in 1e-6 * np.eye(size):
        ahead, behind = (_moved(_advance(q, joints, sign * unit), joints) for sign in (1.0, -1.0))
        columns.append(_residual(behind, ahead) / 2e-6)
    return np.stack(columns, axis=1)
