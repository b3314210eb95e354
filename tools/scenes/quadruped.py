"""A quadruped that stands under its drives."""

from __future__ import annotations

import numpy as np
from common import BLUE, DARK, GRAY, WHITE, servo, turn, write
from pxr import Usd

from warpsim.io.usd import author

THIGH = CALF = 0.2
"""m."""
PITCH, KNEE = 45.0, -90.0
"""Standing pose, degrees."""
FOOT = 0.025
"""Radius, m."""
HEIGHT = float(THIGH * np.cos(np.radians(PITCH)) + CALF * np.cos(np.radians(PITCH + KNEE)) + FOOT)
"""Of the trunk over the ground, standing, m."""
DOCUMENTATION = """A quadruped of 12 kg: a trunk and four legs of three joints (abduction, hip, knee), round rubber
feet. Drives hold it crouched with its knees at a right angle; it stands on the ground from the start. Legs do not
collide with the trunk."""


def _leg(trunk: Usd.Prim, name: str, x: float, y: float, rubber: Usd.Prim, pose: tuple[float, float]) -> list[Usd.Prim]:
    side = np.sign(y)
    hip = author.body(
        trunk, f"{name}Hip", position=(x, y, 0), mass=0.5, center_of_mass=(0, 0, 0), inertia=(6e-4, 6e-4, 6e-4)
    )
    author.cylinder(hip, "Shape", 0.04, 0.05, axis="Y", position=(0, 0.03 * side, 0), color=DARK, collides=False)
    author.revolute(hip, "Abduction", trunk, hip, "X", limits=(-45, 45), **_actuated(0))
    thigh = author.body(hip, "Thigh", position=(0, 0.07 * side, 0), mass=0.9, center_of_mass=(0, 0, -0.05))
    author.capsule(thigh, "Shape", 0.025, THIGH - 0.05, position=(0, 0, -THIGH / 2), color=BLUE, material=rubber)
    author.revolute(thigh, "Pitch", hip, thigh, "Y", limits=(-60, 150), **_actuated(pose[0]))
    calf = author.body(thigh, "Calf", position=(0, 0, -THIGH), mass=0.2)
    author.capsule(calf, "Shape", 0.015, CALF - 0.06, position=(0, 0, -CALF / 2), color=GRAY, material=rubber)
    author.sphere(calf, "Foot", FOOT, position=(0, 0, -CALF), color=DARK, material=rubber)
    author.revolute(calf, "Knee", thigh, calf, "Y", limits=(-155, -20), **_actuated(pose[1]))
    author.move(thigh, rotation=turn("Y", pose[0]))
    author.move(calf, rotation=turn("Y", pose[1]))
    return [hip, thigh, calf]


def _actuated(target: float) -> dict:
    return {"drive": servo(120, 4, target, 33), "attributes": {"newton:armature": 0.01, "newton:damping": 0.002}}


def build(pose: tuple[float, float] = (PITCH, KNEE), height: float = HEIGHT) -> Usd.Stage:
    """The scene.

    Args:
        pose: Hip pitch and knee of all legs at the start, held by the drives, degrees.
        height: Of the trunk at the start, m.
    """
    stage = author.new_stage(documentation=DOCUMENTATION)
    world = author.world(stage)
    author.physics_scene(
        stage, gravity=9.81, steps_per_second=500, attributes={"mjc:option:integrator": "implicitfast"}
    )
    rubber = author.material(world, "Rubber", friction=0.9)
    author.ground(world, color=WHITE, material=rubber)
    trunk = author.body(world, "Trunk", position=(0, 0, height), articulation_root=True)
    author.box(trunk, "Shape", (0.2, 0.09, 0.05), mass=5.6, color=WHITE, material=rubber)
    for name, x, y in (
        ("FrontLeft", 0.18, 0.05),
        ("FrontRight", 0.18, -0.05),
        ("RearLeft", -0.18, 0.05),
        ("RearRight", -0.18, -0.05),
    ):
        author.filter_pairs(trunk, *_leg(trunk, name, x, y, rubber, pose))
    return stage


if __name__ == "__main__":
    print(write(build(), "quadruped"))
