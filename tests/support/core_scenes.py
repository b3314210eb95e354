"""Scenes with everything the smooth core can hold, for tests of derivatives and determinism."""

from __future__ import annotations

import numpy as np

from warpsim.scene import Actuator, Body, Drive, Joint, Medium, Mesh, Options, Scene, Shape, Site, Tendon


def _turned(rng: np.random.Generator) -> np.ndarray:
    q = rng.normal(size=4)
    return q / np.linalg.norm(q)


def _axis(rng: np.random.Generator) -> np.ndarray:
    axis = rng.normal(size=3)
    return axis / np.linalg.norm(axis)


def _pose(rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {"position": rng.uniform(-0.3, 0.3, 3), "rotation": _turned(rng)}


def _inertia(rng: np.random.Generator, mass: float) -> np.ndarray:
    edges = rng.uniform(0.2, 0.5, 3) ** 2
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return turn @ np.diag(mass / 12.0 * (edges.sum() - edges)) @ turn.T


def _tetrahedron() -> Mesh:
    vertices = np.array([[0.0, 0.0, 0.0], [0.3, 0.0, 0.0], [0.0, 0.25, 0.0], [0.0, 0.0, 0.35]])
    return Mesh("tetrahedron", vertices, np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]))


def _bodies(rng: np.random.Generator) -> list[Body]:
    """Mass from shapes, from shapes scaled, and authored; one massless link; one kinematic body with a rider."""
    return [
        Body("base", None, **_pose(rng), gravity_compensation=0.3),
        Body("arm", "base", **_pose(rng)),
        Body("wrist", "arm", **_pose(rng), mass=0.8),
        Body("tool", "wrist", **_pose(rng), mass=0.5, com=rng.uniform(-0.1, 0.1, 3), inertia=_inertia(rng, 0.5)),
        Body("tip", "tool", **_pose(rng), gravity_compensation=1.2),
        Body("pole", None, **_pose(rng)),
        Body("mover", None, **_pose(rng), mass=1.0, com=np.zeros(3), inertia=_inertia(rng, 1.0), kinematic=True),
        Body("rider", "mover", **_pose(rng)),
    ]


def _joints(rng: np.random.Generator) -> list[Joint]:
    def joint(name: str, kind: str, body: str, **given) -> Joint:
        return Joint(name, kind, body, anchor=rng.uniform(-0.2, 0.2, 3), axis=_axis(rng), **given)

    return [
        joint("float", "free", "base", stiffness=3.0, damping=0.2, rest=np.append(rng.normal(size=3), _turned(rng))),
        joint(
            "shoulder", "hinge", "arm", reference=0.2, stiffness=2.0, rest=np.array([0.4]), damping=0.3, armature=0.05,
            actuator_force_limit=(-40.0, 40.0),
        ),
        joint("ball", "ball", "wrist", stiffness=1.5, rest=_turned(rng), damping=0.1, armature=0.01),
        joint("reach", "slide", "tool", reference=0.1, stiffness=5.0, damping=0.4),
        joint("roll", "hinge", "tool", damping=0.05, armature=0.02),
        joint("swing", "hinge", "pole", damping=0.1, actuator_force_limit=(-0.2, 0.2)),
        joint("carried", "free", "mover"),
        joint("nod", "hinge", "rider", stiffness=1.0),
    ]  # fmt: skip


def _shapes(rng: np.random.Generator) -> list[Shape]:
    """Every kind that has a mass, over the bodies that need one."""

    def shape(name: str, kind: str, body: str, size: tuple[float, float, float], **given) -> Shape:
        return Shape(name, kind, body, **_pose(rng), size=np.array(size), **given)

    return [
        shape("sphere", "sphere", "base", (0.12, 0.0, 0.0), density=900.0),
        shape("box", "box", "base", (0.1, 0.15, 0.2), density=500.0),
        shape("capsule", "capsule", "arm", (0.05, 0.2, 0.0), mass=1.1),
        shape("cylinder", "cylinder", "arm", (0.08, 0.1, 0.0), density=400.0),
        shape("cone", "cone", "wrist", (0.1, 0.12, 0.0)),
        shape("ellipsoid", "ellipsoid", "wrist", (0.05, 0.08, 0.11)),
        shape("mesh", "mesh", "tip", (1.0, 1.0, 1.0), mesh="tetrahedron", density=800.0),
        shape("hull", "hull", "pole", (1.0, 1.0, 1.0), mesh="tetrahedron", density=1200.0),
        shape("ride", "box", "rider", (0.1, 0.13, 0.2), mass=0.6),
        shape("ground", "plane", "base", (0.0, 0.0, 0.0)),
    ]


def _actuators(rng: np.random.Generator) -> list[Actuator]:
    """Every transmission and every dynamics; two are cut by their ranges."""
    six, three = rng.normal(size=6), np.concatenate([rng.normal(size=3), np.zeros(3)])
    one = np.array([1.4, 0.0, 0.0, 0.0, 0.0, 0.0])
    servo = dict(gain=np.array([6.0, 0.5, 0.2]), bias=np.array([0.1, -6.0, -0.5]))
    return [
        Actuator("motor", "joint", "shoulder", gear=one, control_range=(-5.0, 5.0)),
        Actuator("cut control", "joint", "roll", gear=one, control_range=(-0.1, 0.1)),
        Actuator("cut force", "joint", "swing", gear=one, gain=np.array([30.0, 0.0, 0.0]), force_range=(-0.5, 0.5)),
        Actuator("lagged", "joint", "reach", gear=one, **servo, dynamics="filter", time_constant=0.05),
        Actuator("turn", "joint", "ball", gear=three, **servo, dynamics="filterexact", time_constant=0.08),
        Actuator("thrust", "joint", "float", gear=six, gain=np.array([1.0, 0.0, 0.3]), dynamics="integrator"),
        Actuator("pull", "tendon", "rope", gear=one, **servo, dynamics="filter", activation_early=True),
        Actuator("jet", "site", "nozzle", gear=rng.normal(size=6), bias=np.array([0.2, 0.0, -0.4])),
        Actuator(
            "full", "site", "ground hook", gear=rng.normal(size=6), dynamics="integrator", activation_range=(-0.2, 0.2)
        ),
    ]


def rich_scene(integrator: str, seed: int = 0) -> Scene:
    """Eight bodies with all joint kinds, springs, tendons, actuators, drives, a medium and all ways to a mass."""
    rng = np.random.default_rng(seed)
    return Scene(
        bodies=_bodies(rng),
        joints=_joints(rng),
        shapes=_shapes(rng),
        sites=[
            Site("nozzle", "tip", **_pose(rng)),
            Site("ground hook", "arm", **_pose(rng)),
        ],
        tendons=[
            Tendon("rope", ["shoulder", "reach", "swing"], np.array([0.7, -1.2, 0.4]), 4.0, 0.3, (-0.05, 0.05)),
            Tendon("belt", ["roll", "nod"], np.array([1.0, -0.6]), stiffness=2.0, damping=0.1),
        ],
        actuators=_actuators(rng),
        drives=[
            Drive("track", "shoulder", stiffness=8.0, damping=0.7, target=0.3, target_velocity=-0.2),
            Drive("weak", "reach", stiffness=50.0, damping=2.0, target=2.0, max_force=0.3),
            Drive("nodding", "nod", stiffness=3.0, damping=0.2, max_force=500.0),
        ],
        meshes={"tetrahedron": _tetrahedron()},
        medium=Medium(density=3.0, viscosity=0.1, wind=np.array([0.5, -0.3, 0.2])),
        options=Options(gravity=np.array([0.4, -0.3, -9.6]), timestep=0.003, integrator=integrator, constraints=False),
    )


QUATERNIONS = (3, 8, 18)
"""Where q of `rich_scene` holds quaternions: free, ball and the kinematic body's free joint."""


def rich_state(kind: str, seed: int = 0) -> dict[str, np.ndarray]:
    """A state of `rich_scene`.

    Args:
        kind: "random"; "rest" (random configuration, no velocity); "identity" (no rotation, no velocity anywhere).
        seed: Of the random numbers.
    """
    rng = np.random.default_rng([seed, 9])
    q, qd, activation = rng.uniform(-0.6, 0.6, 23), rng.normal(size=20), rng.uniform(-0.1, 0.1, 5)
    for first in QUATERNIONS:
        q[first : first + 4] = np.array([1.0, 0.0, 0.0, 0.0]) if kind == "identity" else _turned(rng)
    return {"q": q, "qd": qd if kind == "random" else 0.0 * qd, "activation": activation}
