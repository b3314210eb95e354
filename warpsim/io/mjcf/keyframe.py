"""Start states from the keyframes of a MuJoCo model."""

from __future__ import annotations

import numpy as np

from warpsim.core.errors import unknown_name
from warpsim.io.mjcf.bodies import joint_kind, mocap_joint_name
from warpsim.io.mjcf.engine import mujoco
from warpsim.io.mjcf.source import MjSource
from warpsim.scene.description import JOINT_DOF_SIZE, JOINT_Q_SIZE, Scene


def apply_keyframe(source: MjSource, scene: Scene, keyframe: str) -> None:
    """Sets the joints' `initial_q`, `initial_qd` and the actuators' `initial_activation` of `scene`.

    Args:
        source: The model the scene was read from.
        scene: Changed in place.
        keyframe: Name of the keyframe.

    Raises:
        UnknownNameError: There is no such keyframe.
    """
    model = source.model
    known = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_KEY, index) or "" for index in range(model.nkey)]
    if keyframe not in known:
        raise unknown_name("keyframe", keyframe, filter(None, known))
    key = known.index(keyframe)
    joints = {joint.name: joint for joint in scene.joints}
    for index, name in enumerate(source.names["joint"]):
        kind, q, dof = joint_kind(source, index), model.jnt_qposadr[index], model.jnt_dofadr[index]
        joints[name].initial_q = _normalized(model.key_qpos[key, q : q + JOINT_Q_SIZE[kind]], kind)
        joints[name].initial_qd = model.key_qvel[key, dof : dof + JOINT_DOF_SIZE[kind]].copy()
    for body in np.flatnonzero(model.body_mocapid >= 0).tolist():
        mocap = model.body_mocapid[body]
        pose = [model.key_mpos[key, 3 * mocap :][:3], model.key_mquat[key, 4 * mocap :][:4]]
        joints[mocap_joint_name(source, body)].initial_q = _normalized(np.concatenate(pose), "free")
    for actuator in scene.actuators:
        address = model.actuator_actadr[source.names["actuator"].index(actuator.name)]
        if address >= 0:
            actuator.initial_activation = float(model.key_act[key, address])
    if np.any(model.key_ctrl[key] != 0):
        source.ignored(f"keyframe {keyframe!r}", "ctrl", "controls are inputs of a rollout, not part of its start")


def _normalized(q: np.ndarray, kind: str) -> np.ndarray:
    q = q.copy()
    if kind in ("free", "ball"):
        q[-4:] /= np.linalg.norm(q[-4:])
    return q
