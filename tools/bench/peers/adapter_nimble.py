"""Nimble: contact as a linear complementarity problem, differentiated analytically inside one set of contacts.

It reads no MJCF, so the tree is built from MuJoCo's compiled model: one joint per body, spheres that collide, and the
ground as a large box. Up is y: it warns that its friction directions have no derivative where a normal is along z.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import adapter
import mujoco
import nimblephysics as nimble
import numpy as np

_GROUND = 0.5
"""Half the height of the ground's box, m; its upper face is at zero."""
_UP = np.array([np.sqrt(0.5), -np.sqrt(0.5), 0.0, 0.0])
"""Turns MuJoCo's world, z up, into ours, y up."""


class Lcp:
    """A robot on the ground; the loss is a linear function of the final positions."""

    note = "hard contact by a linear complementarity problem; no armature"

    def __init__(self, case: Mapping[str, Any]) -> None:
        host = mujoco.MjModel.from_xml_path(case["model"])
        self.timestep = float(host.opt.timestep)
        self.memory: float | None = None
        self._world = nimble.simulation.World()
        self._world.setGravity(_rotation(_UP) @ host.opt.gravity)
        self._world.setTimeStep(self.timestep)
        self._world.addSkeleton(_robot(host))
        self._world.addSkeleton(_ground(host))
        size = self._world.getNumDofs()
        self._dofs = host.jnt_dofadr[host.actuator_trnid[:, 0]]
        self._gear = host.actuator_gear[:, 0]
        self._start = np.concatenate(_start(case))
        self._weights = np.concatenate([np.random.default_rng(11).normal(size=size), np.zeros(size)])
        self._forces = np.zeros(size)

    def loss(self, controls: np.ndarray) -> float:
        """Forward pass, without recording."""
        self._world.setState(self._start)
        for control in controls:
            self._push(control)
            self._world.step()
        return float(self._weights @ self._world.getState())

    def gradient(self, controls: np.ndarray) -> np.ndarray:
        """A snapshot of every step, then all of them backwards."""
        self._world.setState(self._start)
        before = adapter.resident()
        snapshots = []
        for control in controls:
            self._push(control)
            snapshots.append(nimble.neural.forwardPass(self._world))
        if self.memory is None:
            self.memory = (adapter.resident() - before) / len(controls)
        found = np.empty_like(controls)
        along = self._weights
        for k in range(len(controls) - 1, -1, -1):
            step = snapshots[k].backpropState(self._world, along)
            along = step.lossWrtState
            found[k] = self._gear * step.lossWrtAction[self._dofs]
        return found

    def _push(self, control: np.ndarray) -> None:
        self._forces[self._dofs] = self._gear * control
        self._world.setAction(self._forces)


def _robot(host: mujoco.MjModel) -> nimble.dynamics.Skeleton:
    """Bodies, joints, springs and dampers; colliding spheres."""
    skeleton = nimble.dynamics.Skeleton()
    nodes: dict[int, nimble.dynamics.BodyNode] = {}
    for body in range(1, host.nbody):
        joint = host.body_jntadr[body]
        if host.body_jntnum[body] != 1:
            raise SystemExit("NotImplementedError: this adapter wants one joint per body")
        parent = nodes.get(host.body_parentid[body])
        if host.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE:
            link, node = skeleton.createFreeJointAndBodyNodePair()
        else:
            link, node = skeleton.createRevoluteJointAndBodyNodePair(parent)
            link.setTransformFromParentBodyNode(_transform(host.body_pos[body], host.body_quat[body]))
            dof = host.jnt_dofadr[joint]
            link.setAxis(host.jnt_axis[joint])
            link.setSpringStiffness(0, host.jnt_stiffness[joint])
            link.setRestPosition(0, host.qpos_spring[host.jnt_qposadr[joint]])
            link.setDampingCoefficient(0, host.dof_damping[dof])
        frame = _rotation(host.body_iquat[body])
        moment = frame @ np.diag(host.body_inertia[body]) @ frame.T
        node.setInertia(nimble.dynamics.Inertia(host.body_mass[body], host.body_ipos[body], moment))
        for geom in range(host.ngeom):
            if host.geom_bodyid[geom] == body and host.geom_type[geom] == mujoco.mjtGeom.mjGEOM_SPHERE:
                shape = node.createShapeNode(nimble.dynamics.SphereShape(host.geom_size[geom, 0]))
                shape.setRelativeTranslation(host.geom_pos[geom])
                shape.createCollisionAspect()
                shape.createDynamicsAspect()
                node.setFrictionCoeff(host.geom_friction[geom, 0])
        nodes[body] = node
    return skeleton


def _ground(host: mujoco.MjModel) -> nimble.dynamics.Skeleton:
    skeleton = nimble.dynamics.Skeleton()
    joint, node = skeleton.createWeldJointAndBodyNodePair()
    joint.setTransformFromParentBodyNode(_transform(np.array([0.0, -_GROUND, 0.0]), np.array([1.0, 0.0, 0.0, 0.0])))
    shape = node.createShapeNode(nimble.dynamics.BoxShape(np.array([20.0, 2 * _GROUND, 20.0])))
    shape.createCollisionAspect()
    shape.createDynamicsAspect()
    node.setFrictionCoeff(host.geom_friction[0, 0])
    return skeleton


def _transform(position: np.ndarray, quaternion: np.ndarray) -> nimble.math.Isometry3:
    made = nimble.math.Isometry3()
    made.set_translation(position)
    made.set_rotation(_rotation(quaternion))
    return made


def _rotation(quaternion: np.ndarray) -> np.ndarray:
    found = np.zeros(9)
    mujoco.mju_quat2Mat(found, np.asarray(quaternion, float))
    return found.reshape(3, 3)


def _start(case: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """A free joint here is (rotation vector, position), and its velocity a twist in the body's frame."""
    q, v = np.array(case["q"], float), np.array(case["qd"], float)
    turned, vector = np.zeros(4), np.zeros(3)
    mujoco.mju_mulQuat(turned, _UP, q[3:7])
    mujoco.mju_quat2Vel(vector, turned, 1.0)
    positions = np.concatenate([vector, _rotation(_UP) @ q[:3], q[7:]])
    return positions, np.concatenate([v[3:6], _rotation(q[3:7]).T @ v[:3], v[6:]])


adapter.main(Lcp, ("nimblephysics",))
