"""Pinocchio: no contact, so the limit of what an articulated step and its analytical derivatives can cost.

It has no rollout of its own. Ours is the plain one: semi-implicit Euler steps of `aba`, and for the gradient
`computeABADerivatives` at every step, then one sweep back with NumPy.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import adapter
import mujoco
import numpy as np
import pinocchio as pin


class Articulated:
    """A floating-base tree under motors, springs and dampers; the loss is a linear function of the final velocity."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        host = mujoco.MjModel.from_xml_path(case["model"])
        self._model = _build(host)
        self._data = self._model.createData()
        self.timestep = float(host.opt.timestep)
        self.memory: float | None = None
        # damping implicit in the new velocity, as MuJoCo's Euler step has it, is armature of h·d
        self._model.armature = host.dof_armature + self.timestep * host.dof_damping
        self._damping = host.dof_damping.copy()
        self._stiffness, self._spring = np.zeros(host.nv), np.zeros(host.nv)
        for joint in range(host.njnt):
            if host.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE:
                dof = host.jnt_dofadr[joint]
                self._stiffness[dof] = host.jnt_stiffness[joint]
                self._spring[dof] = host.qpos_spring[host.jnt_qposadr[joint]]
        self._motors = np.zeros((host.nv, host.nu))
        dofs = host.jnt_dofadr[host.actuator_trnid[:, 0]]
        self._motors[dofs, np.arange(host.nu)] = host.actuator_gear[:, 0]
        self._q, self._v = _start(case)
        self._weights = np.random.default_rng(11).normal(size=host.nv)
        self.note = f"no contact; derivatives of one step alone {self._bare():.0f} µs, the rest is our sweep in NumPy"

    def _bare(self) -> float:
        """µs of the derivatives' call itself."""
        best = np.inf
        for _ in range(200):
            start = time.process_time()
            pin.computeABADerivatives(self._model, self._data, self._q, self._v, np.zeros_like(self._v))
            best = min(best, time.process_time() - start)
        return 1e6 * best

    def _torque(self, q: np.ndarray, v: np.ndarray, control: np.ndarray) -> np.ndarray:
        torque = self._motors @ control - self._damping * v
        torque[6:] -= self._stiffness[6:] * (q[7:] - self._spring[6:])
        return torque

    def loss(self, controls: np.ndarray) -> float:
        """Forward pass."""
        q, v = self._q, self._v
        for control in controls:
            v = v + self.timestep * pin.aba(self._model, self._data, q, v, self._torque(q, v, control))
            q = pin.integrate(self._model, q, self.timestep * v)
        return float(self._weights @ v)

    def gradient(self, controls: np.ndarray) -> np.ndarray:
        """Analytical derivatives of every step, then the chain rule backwards."""
        h, q, v = self.timestep, self._q, self._v
        steps = []
        for control in controls:
            parts = pin.computeABADerivatives(self._model, self._data, q, v, self._torque(q, v, control))
            by_q, by_v, by_torque = (np.array(part) for part in parts)
            v = v + h * self._data.ddq
            moved = pin.dIntegrate(self._model, q, h * v)
            steps.append((by_q, by_v, by_torque, np.array(moved[0]), np.array(moved[1])))
            q = pin.integrate(self._model, q, h * v)
        self.memory = float(sum(part.nbytes for part in steps[0]))
        on_q, on_v = np.zeros_like(self._weights), self._weights
        found = np.empty_like(controls)
        for k in range(len(controls) - 1, -1, -1):
            by_q, by_v, by_torque, along_q, along_v = steps[k]
            on_v = on_v + h * along_v.T @ on_q
            on_torque = h * by_torque.T @ on_v
            found[k] = self._motors.T @ on_torque
            on_q = along_q.T @ on_q + h * by_q.T @ on_v - self._stiffness * on_torque
            on_v = on_v + h * by_v.T @ on_v - self._damping * on_torque
        return found


def _build(host: mujoco.MjModel) -> pin.Model:
    """The tree with one joint per hinge.

    Its own MJCF reader makes a composite joint of several hinges between two bodies, whose derivatives it gets wrong
    (tens of per cent): they hold only for joints whose axes are fixed in the child.
    """
    model = pin.Model()
    joints, offsets = [0] * host.nbody, [pin.SE3.Identity() for _ in range(host.nbody)]
    for body in range(1, host.nbody):
        parent = host.body_parentid[body]
        rotation = pin.Quaternion(np.roll(host.body_quat[body], -1)).toRotationMatrix()
        joint, placement = joints[parent], offsets[parent] * pin.SE3(rotation, host.body_pos[body])
        first = host.body_jntadr[body]
        for k in range(first, first + host.body_jntnum[body]):
            if host.jnt_type[k] == mujoco.mjtJoint.mjJNT_FREE:
                # a free joint's coordinates are in the world
                joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), f"j{k}")
                placement = pin.SE3.Identity()
                continue
            anchor = pin.SE3(np.eye(3), host.jnt_pos[k])
            hinge = pin.JointModelRevoluteUnaligned(*host.jnt_axis[k])
            joint, placement = model.addJoint(joint, hinge, placement * anchor, f"j{k}"), anchor.inverse()
        joints[body], offsets[body] = joint, placement
        frame = pin.Quaternion(np.roll(host.body_iquat[body], -1)).toRotationMatrix()
        moment = frame @ np.diag(host.body_inertia[body]) @ frame.T
        inertia = pin.Inertia(host.body_mass[body], host.body_ipos[body], moment)
        model.appendBodyToJoint(joint, inertia, placement)
    return model


def _start(case: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """MuJoCo's start state: real part of the quaternion last, linear velocity of the base in its own frame."""
    q, v = np.array(case["q"], float), np.array(case["qd"], float)
    q[3:7] = np.roll(q[3:7], -1)
    v[:3] = pin.Quaternion(q[3:7]).toRotationMatrix().T @ v[:3]
    return q, v


adapter.main(Articulated, ("pin",))
