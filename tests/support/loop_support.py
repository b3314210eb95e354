"""Two bodies joined by an equality that locks some axes, and the same pair as a tree for MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np

from contact_support import converging
from mujoco_oracle import to_mujoco
from warpsim.scene import Body, Equality, Joint, Options, Scene


def unit(rng: np.random.Generator) -> np.ndarray:
    q = rng.normal(size=4)
    return q / np.linalg.norm(q)


def rotate(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    out = np.zeros(3)
    mujoco.mju_rotVecQuat(out, v, q)
    return out


def pair(seed: int) -> tuple[Scene, Equality]:
    """A free body, one that hangs on it as an equality with all axes locked would have it, and that equality."""
    rng = np.random.default_rng(seed)
    pose = np.concatenate([rng.normal(size=3), unit(rng)])
    anchor, axes = rng.normal(size=3), unit(rng)
    bodies = []
    for label in "ab":
        root = rng.normal(size=(3, 3))
        spread = 0.1 * (root @ root.T + np.eye(3))
        inertia = np.trace(spread) * np.eye(3) - spread
        bodies.append(Body(label, mass=rng.uniform(0.5, 2.0), com=0.2 * rng.normal(size=3), inertia=inertia))
    bodies[1].parent, bodies[1].position, bodies[1].rotation = "a", pose[:3], pose[3:]
    scene = Scene(bodies=bodies, joints=[Joint("a", "free", "a")], options=Options(solver_tolerance=1e-14))
    equality = Equality("loop", "axes", "a", "b", anchor=anchor, relative_pose=pose, axes=axes)
    return scene, equality


def tree_of(scene: Scene, equality: Equality) -> Scene:
    """The pair joined by what the equality leaves free: slides, then hinges, with its limits, in their order."""
    tree = Scene(bodies=scene.bodies, joints=list(scene.joints), options=scene.options)
    for i in range(6):
        if not equality.locked[i]:
            axis = rotate(equality.axes, np.eye(3)[i % 3])
            kind = "slide" if i < 3 else "hinge"
            joint = Joint(f"{kind}{i}", kind, "b", anchor=equality.anchor, axis=axis)
            if np.isfinite(equality.limits[i]).any():
                joint.limit = tuple(equality.limits[i])
            joint.limit_solref, joint.limit_solimp = equality.limit_solref, equality.limit_solimp
            tree.joints.append(joint)
    return tree


def loose(scene: Scene, equality: Equality) -> Scene:
    """The pair as two free bodies, held by the equality."""
    a, b = scene.bodies
    free = Body("b", mass=b.mass, com=b.com, inertia=b.inertia)
    joints = [Joint("a", "free", "a"), Joint("b", "free", "b")]
    return Scene(bodies=[a, free], joints=joints, equalities=[equality], options=scene.options)


def tree_state(model: mujoco.MjModel, seed: int, spread: float = 1.0) -> mujoco.MjData:
    """A random state of the tree."""
    data, rng = mujoco.MjData(model), np.random.default_rng([seed, 1])
    mujoco.mj_integratePos(model, data.qpos, spread * rng.normal(size=model.nv), 1.0)
    data.qvel[:] = rng.normal(size=model.nv)
    mujoco.mj_forward(model, data)
    return data


def free_motion(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[np.ndarray, np.ndarray]:
    """(q, qd) of both bodies as free ones."""
    q, qd = [], []
    for body in (1, 2):
        spin = np.zeros(6)
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body, spin, 0)
        local = rotate(data.xquat[body] * [1, -1, -1, -1], spin[:3])
        q += [data.xpos[body], data.xquat[body]]
        qd += [spin[3:], local]
    return np.concatenate(q), np.concatenate(qd)


def tree_motion(scene: Scene, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(q, qd) of both bodies as free ones at a random state of the tree, and a's acceleration, by MuJoCo."""
    model = converging(to_mujoco(scene))
    data = tree_state(model, seed)
    return *free_motion(model, data), data.qacc[:6].copy()
