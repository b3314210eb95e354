"""Bodies and joints of a MuJoCo model, in its order, so that `q` and `qd` are laid out as its `qpos` and `qvel`.

The one exception is a mocap body: here it is a kinematic body with a free joint of its own, which adds 7 numbers to `q`
and 6 to `qd` in the place of that body.
"""

from __future__ import annotations

import numpy as np

from warpsim.io.mjcf.engine import mujoco
from warpsim.io.mjcf.source import MjSource, interval
from warpsim.scene.description import JOINT_DOF_SIZE, JOINT_Q_SIZE, Body, Joint

_JOINT_KINDS = {
    mujoco.mjtJoint.mjJNT_FREE: "free",
    mujoco.mjtJoint.mjJNT_BALL: "ball",
    mujoco.mjtJoint.mjJNT_SLIDE: "slide",
    mujoco.mjtJoint.mjJNT_HINGE: "hinge",
}

_UNSUPPORTED_JOINT_FIELDS = {
    "stiffnesspoly": "only linear springs are modeled",
    "springyield": "plastic springs are not modeled",
}


def joint_kind(source: MjSource, joint: int) -> str:
    """Kind of a joint, as in JOINT_KINDS."""
    return _JOINT_KINDS[mujoco.mjtJoint(source.model.jnt_type[joint])]


def read_bodies(source: MjSource) -> list[Body]:
    """All bodies but the world, with explicit mass, center of mass and inertia."""
    model = source.model
    passive = not (source.disabled("spring") and source.disabled("damper"))
    bodies = []
    for index in range(1, model.nbody):
        position, rotation = _reference_pose(source, index)
        bodies.append(
            Body(
                name=source.names["body"][index],
                parent=source.body_name(model.body_parentid[index]),
                position=position,
                rotation=rotation,
                mass=float(model.body_mass[index]),
                com=model.body_ipos[index].copy(),
                inertia=_inertia_in_body_axes(model, index),
                inertia_axes=model.body_iquat[index].copy(),
                kinematic=bool(model.body_mocapid[index] >= 0),
                gravity_compensation=float(model.body_gravcomp[index]) if passive else 0.0,
            )
        )
    return bodies


def _reference_pose(source: MjSource, body: int) -> tuple[np.ndarray, np.ndarray]:
    """Pose in the parent at the reference configuration; a free body's is the start of its `qpos0`."""
    model = source.model
    first = model.body_jntadr[body]
    if model.body_jntnum[body] > 0 and joint_kind(source, first) == "free":
        pose = model.qpos0[model.jnt_qposadr[first] :][:7]
    else:
        pose = np.concatenate([model.body_pos[body], model.body_quat[body]])
    return pose[:3].copy(), pose[3:] / np.linalg.norm(pose[3:])


def _inertia_in_body_axes(model: mujoco.MjModel, body: int) -> np.ndarray:
    """R diag(principal) Rᵀ, where R turns the principal axes into the body's."""
    flat = np.empty(9)
    mujoco.mju_quat2Mat(flat, model.body_iquat[body])
    rotation = flat.reshape(3, 3)
    inertia = rotation @ np.diag(model.body_inertia[body]) @ rotation.T
    return 0.5 * (inertia + inertia.T)


def read_joints(source: MjSource) -> list[Joint]:
    """All joints in MuJoCo's order, and a free joint for each mocap body."""
    model = source.model
    source.unsupported_nonzero("joint", range(model.njnt), "jnt", _UNSUPPORTED_JOINT_FIELDS)
    joints = []
    for body in range(1, model.nbody):
        if model.body_mocapid[body] >= 0:
            joints.append(Joint(name=mocap_joint_name(source, body), kind="free", body=source.names["body"][body]))
        first = model.body_jntadr[body]
        joints.extend(_read_joint(source, joint) for joint in range(first, first + model.body_jntnum[body]))
    return joints


def mocap_joint_name(source: MjSource, body: int) -> str:
    """Name of the free joint that stands for a mocap body's pose."""
    name = f"{source.names['body'][body]}_mocap"
    while name in source.names["joint"]:
        name += "_"
    return name


def _read_joint(source: MjSource, index: int) -> Joint:
    model, kind = source.model, joint_kind(source, index)
    _note_joint(source, index, kind)
    q = slice(model.jnt_qposadr[index], model.jnt_qposadr[index] + JOINT_Q_SIZE[kind])
    dof = model.jnt_dofadr[index]
    limited = bool(model.jnt_limited[index]) and not source.disabled("limit")
    return Joint(
        name=source.names["joint"][index],
        kind=kind,
        body=source.names["body"][model.jnt_bodyid[index]],
        anchor=model.jnt_pos[index].copy(),
        axis=model.jnt_axis[index].copy(),
        reference=float(model.qpos0[q][0]) if kind in ("hinge", "slide") else 0.0,
        stiffness=0.0 if source.disabled("spring") else float(model.jnt_stiffness[index]),
        rest=model.qpos_spring[q].copy(),
        damping=0.0 if source.disabled("damper") else float(model.dof_damping[dof]),
        armature=float(model.dof_armature[dof]),
        friction_loss=0.0 if source.disabled("frictionloss") else float(model.dof_frictionloss[dof]),
        friction_solref=model.dof_solref[dof].copy(),
        friction_solimp=model.dof_solimp[dof].copy(),
        limit=_limit(model, index, kind) if limited else None,
        limit_margin=float(model.jnt_margin[index]),
        limit_solref=model.jnt_solref[index].copy(),
        limit_solimp=model.jnt_solimp[index].copy(),
        actuator_force_limit=interval(model.jnt_actfrcrange[index]) if model.jnt_actfrclimited[index] else None,
        actuators_compensate=bool(model.jnt_actgravcomp[index]),
    )


def _limit(model: mujoco.MjModel, joint: int, kind: str) -> tuple[float, float]:
    lower, upper = interval(model.jnt_range[joint])
    return (0.0, max(lower, upper)) if kind == "ball" else (lower, upper)


def _note_joint(source: MjSource, index: int, kind: str) -> None:
    """Notes what the joint asks for and the Scene cannot say."""
    model, path = source.model, source.path("joint", index)
    dofs = slice(model.jnt_dofadr[index], model.jnt_dofadr[index] + JOINT_DOF_SIZE[kind])
    for field in ("damping", "armature", "frictionloss", "solref", "solimp"):
        values = getattr(model, f"dof_{field}")[dofs]
        if np.any(values != values[0]):
            source.unsupported(path, field, "it differs between the joint's dofs; one value per joint is modeled")
    if np.any(model.dof_dampingpoly[dofs] != 0):
        source.unsupported(path, "dampingpoly", "only linear damping is modeled")
    if kind == "ball" and not np.array_equal(model.qpos0[model.jnt_qposadr[index] :][:4], [1, 0, 0, 0]):
        source.unsupported(path, "qpos0", "the reference of a ball joint is the identity")
