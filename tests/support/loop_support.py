"""Two bodies joined by an equality that locks some axes, and the same pair as a tree for MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np
from pxr import Usd

from contact_support import converging
from mujoco_oracle import to_mujoco
from warpsim.io.usd import author
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


def crank_stage(
    loop: str,
    limits: dict[str, tuple[float, float]] | None = None,
    drives: dict[str, dict[str, float]] | None = None,
    hardness: float = 0.9999,
) -> Usd.Stage:
    """A slider-crank let go 60° above the rail, joints about y and along x; the named joint closes the loop."""
    stage = author.new_stage()
    world = author.world(stage)
    author.physics_scene(stage, steps_per_second=2000, attributes={"mjc:option:integrator": "rk4"})
    raised = np.radians(60.0)
    lean = np.arcsin(0.2 * np.sin(raised) / 0.6)
    pin = np.array([0.2 * np.cos(raised), 0, 0.2 * np.sin(raised)])
    wrist = np.array([pin[0] + 0.6 * np.cos(lean), 0, 0])
    bodies = {}
    for name, place, angle, length in (("Crank", pin / 2, -raised, 0.2), ("Rod", (pin + wrist) / 2, lean, 0.6)):
        turn = (np.cos(angle / 2), 0, np.sin(angle / 2), 0)
        bodies[name] = author.body(world, name, position=place, rotation=turn)
        author.capsule(bodies[name], "Shape", 0.01, length, axis="X", mass=1.0)
    bodies["Slider"] = author.body(world, "Slider", position=wrist)
    author.box(bodies["Slider"], "Shape", (0.05, 0.05, 0.05), mass=1.0)
    hard = (hardness, hardness, 0.001, 0.5, 2.0)

    def options(name: str) -> dict:
        attributes = {"mjc:solref": (0.001, 1.0), "mjc:solimp": hard} if name == loop else {}
        if limits and name in limits:
            attributes |= {"mjc:solreflimit": (0.02, 0.5), "mjc:solimplimit": hard}
        bounds, drive = (limits or {}).get(name), (drives or {}).get(name)
        return {"closes_loop": name == loop, "attributes": attributes, "limits": bounds, "drive": drive}

    author.revolute(world, "Motor", None, bodies["Crank"], "Y", anchor=(0, 0, 0))
    author.revolute(world, "Pin", bodies["Crank"], bodies["Rod"], "Y", anchor=pin, **options("Pin"))
    author.revolute(world, "Wrist", bodies["Rod"], bodies["Slider"], "Y", anchor=wrist, **options("Wrist"))
    author.prismatic(world, "Rail", None, bodies["Slider"], (1, 0, 0), **options("Rail"))
    author.filter_pairs(bodies["Crank"], bodies["Rod"], bodies["Slider"])
    author.filter_pairs(bodies["Rod"], bodies["Slider"])
    return stage
