"""Scenes that hold one of everything."""

from __future__ import annotations

import numpy as np

from warpsim.scene import Actuator, Body, Drive, Equality, Joint, Mesh, Scene, Sensor, Shape, Site, Tendon, validate

TETRAHEDRON = Mesh(
    "tetrahedron",
    np.array([[0.0, 0, 0], [0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1]]),
    np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]),
)


def everything() -> Scene:
    """A scene with one of each thing that USD can hold, compounds with references included."""
    turn = np.array([0.5, 0.5, -0.5, 0.5])
    scene = Scene(
        bodies=[
            Body("base", position=np.array([0, 0, 1.0]), rotation=turn),
            Body("arm", "base", np.array([0.3, 0, 0]), turn, mass=2.0, com=np.array([0.1, 0, 0]), inertia=np.eye(3)),
            Body("hand", "arm", np.array([0.2, 0.1, 0]), mass=1.0),
            Body("fixed", "hand", np.array([0, 0, 0.2])),
            Body("mover", position=np.array([3.0, 0, 0]), mass=1.0, com=np.zeros(3), inertia=np.eye(3), kinematic=True),
            Body("rail", position=np.array([0, 5.0, 0]), gravity_compensation=0.5),
        ],
        joints=[
            Joint("base", "free", "base", initial_qd=np.arange(6.0)),
            Joint("roll", "hinge", "arm", np.array([0.1, 0, 0]), np.array([1.0, 0, 0]), reference=0.3, limit=(-1, 1)),
            Joint("pitch", "hinge", "arm", np.array([0, 0.1, 0]), np.array([0, 0.6, 0.8]), reference=-0.4),
            Joint("wrist", "ball", "hand", np.array([0, 0, 0.05]), damping=0.1, initial_q=np.array([0.6, 0, 0.8, 0])),
            Joint("mover", "free", "mover"),
            Joint("slide", "slide", "rail", axis=np.array([0, 0, 1.0]), initial_q=np.array([0.2]), stiffness=3.0),
        ],
        shapes=[
            Shape("ground", "plane", friction=np.array([0.5, 0.01, 0.001])),
            Shape("box", "box", "base", size=np.array([0.1, 0.2, 0.3]), density=300.0, friction_combine="average"),
            Shape("ball", "sphere", "hand", size=np.array([0.1, 0, 0]), mass=0.5, condim=4, restitution=0.5),
            Shape("can", "cylinder", "fixed", size=np.array([0.1, 0.2, 0]), rotation=turn, margin=0.01, gap=0.005),
            Shape("pill", "capsule", "rail", size=np.array([0.1, 0.2, 0]), solref=np.array([-100.0, -10.0])),
            Shape("tip", "cone", "rail", np.array([1.0, 0, 0]), size=np.array([0.1, 0.2, 0]), priority=1),
            Shape("egg", "ellipsoid", "rail", np.array([2.0, 0, 0]), size=np.array([0.1, 0.2, 0.3]), contact_type=2),
            Shape("hull", "hull", "rail", np.array([0, 1.0, 0]), size=np.ones(3), mesh="tetrahedron"),
            Shape("mesh", "mesh", "rail", np.array([0, 2.0, 0]), size=np.ones(3), mesh="tetrahedron", solmix=0.5),
        ],
        sites=[Site("tip_site", "hand", np.array([0, 0, 0.1]), turn), Site("mark", None, np.ones(3))],
        tendons=[Tendon("tendon", ["roll", "pitch"], np.array([1.0, -0.5]), stiffness=2.0, limit=(-1.0, 1.0))],
        actuators=[
            Actuator("motor", "joint", "roll", gear=np.array([3.0, 0, 0, 0, 0, 0]), control_range=(-1, 1)),
            Actuator("servo", "joint", "slide", gain=np.array([9.0, 0, 0]), bias=np.array([0, -9.0, -1.0])),
            Actuator("muscle", "tendon", "tendon", dynamics="filter", time_constant=0.3, force_range=(-5.0, 5.0)),
            Actuator("jet", "site", "tip_site", gear=np.array([0, 0, 1.0, 0, 0, 0.2])),
        ],
        drives=[Drive("pitch", "pitch", stiffness=20.0, damping=2.0, target=0.5, max_force=7.0)],
        equalities=[
            Equality("mimic", "joint", "slide", "roll", polynomial=np.array([0.1, 0.2, 0.3, 0, 0])),
            Equality("rope", "distance", "hand", None, np.array([0, 0, 0.1]), np.zeros(3), distance_range=(0, 5.0)),
            Equality("hook", "connect", "hand", "rail", np.array([0, 0, 0.1]), np.array([0.1, 0, 0])),
            Equality(
                "guide",
                "axes",
                "base",
                "rail",
                np.array([0.1, 0, 0.2]),
                relative_pose=np.array([0, 1.0, 0, *turn]),
                axes=turn,
                locked=(False, True, True, True, True, False),
            ),
        ],
        sensors=[
            Sensor("gyro", "gyro", "tip_site"),
            Sensor("angle", "jointpos", "roll", target_kind="joint", noise=0.1),
        ],
        meshes={"tetrahedron": TETRAHEDRON},
        excluded_bodies={frozenset(("hand", "rail"))},
        excluded_pairs={frozenset(("ball", "pill"))},
    )
    scene.options.timestep, scene.options.integrator, scene.options.cone = 0.004, "rk4", "pyramidal"
    scene.medium.density, scene.medium.wind = 1.2, np.array([1.0, 0, 0])
    validate(scene)
    return scene
