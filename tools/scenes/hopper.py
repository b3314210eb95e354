"""A one-legged robot in a vertical plane: torso, thigh, leg and foot, with servos at hip, knee and ankle."""

from __future__ import annotations

import numpy as np
from common import BLUE, DARK, GRAY, ORANGE, WHITE, turn, write
from pxr import Usd

from warpsim.io.usd import author

TORSO, LINK, FOOT = 0.4, 0.35, 0.3
"""Lengths of the torso, of thigh and leg, and of the foot, m."""
SOLE = 0.04
"""Radius of the foot, m."""
BEND = 30.0
"""Thigh and leg off the vertical, standing, degrees."""
HEIGHT = float(2 * LINK * np.cos(np.radians(BEND)) + SOLE + TORSO / 2)
"""Of the torso's middle over the ground, standing, m."""
DOCUMENTATION = """A planar hopper of 7 kg: a torso that moves along x and z and turns about y, a thigh, a leg and a
foot. It stands on its foot with its knee bent, all joints at zero, and servos hold it so: a control of -1 to 1 asks for
that many radians off this pose. Its links do not collide with one another."""

_SERVOS = {"Hip": (120.0, 4.0, 80.0), "Knee": (120.0, 4.0, 80.0), "Ankle": (60.0, 2.0, 40.0)}
"""Stiffness, N·m/rad, damping, N·m·s/rad, and largest torque, N·m."""


def build() -> Usd.Stage:
    """The scene."""
    stage = author.new_stage(documentation=DOCUMENTATION)
    world = author.world(stage)
    author.physics_scene(
        stage, gravity=9.81, steps_per_second=500, attributes={"mjc:option:integrator": "implicitfast"}
    )
    rubber = author.material(world, "Rubber", friction=1.0)
    author.ground(world, color=WHITE, material=rubber)
    torso = author.body(world, "Torso", position=(0, 0, HEIGHT), articulation_root=True)
    author.capsule(torso, "Shape", 0.06, TORSO - 0.12, mass=3.5, color=ORANGE, material=rubber)
    author.generic(torso, "Plane", None, torso, limits=dict.fromkeys(("transY", "rotX", "rotZ")))
    thigh = author.body(torso, "Thigh", position=(0, 0, -TORSO / 2), rotation=turn("Y", -BEND))
    author.capsule(thigh, "Shape", 0.04, LINK - 0.08, position=(0, 0, -LINK / 2), mass=1.5, color=BLUE)
    leg = author.body(thigh, "Leg", position=(0, 0, -LINK), rotation=turn("Y", 2 * BEND))
    author.capsule(leg, "Shape", 0.035, LINK - 0.07, position=(0, 0, -LINK / 2), mass=1.2, color=GRAY)
    foot = author.body(leg, "Foot", position=(0, 0, -LINK), rotation=turn("Y", -BEND))
    author.capsule(
        foot, "Shape", SOLE, FOOT - 2 * SOLE, axis="X", position=(0.05, 0, 0), mass=0.8, color=DARK, material=rubber
    )
    for name, parent, child, limits in (
        ("Hip", torso, thigh, (-70, 100)),
        ("Knee", thigh, leg, (-55, 90)),
        ("Ankle", leg, foot, (-60, 60)),
    ):
        joint = author.revolute(
            child,
            name,
            parent,
            child,
            "Y",
            limits=limits,
            attributes={"newton:armature": 0.02, "newton:damping": 0.002},
        )
        stiffness, damping, torque = _SERVOS[name]
        author.actuator(
            world,
            f"{name}Servo",
            joint,
            gain=(stiffness,),
            bias=(0.0, -stiffness, -damping),
            control_range=(-1, 1),
            force_range=(-torque, torque),
        )
    author.filter_pairs(torso, leg, foot)
    author.filter_pairs(thigh, foot)
    return stage


if __name__ == "__main__":
    print(write(build(), "hopper"))
