"""The quadruped lying on its belly, and how it should stand."""

from __future__ import annotations

import numpy as np
import quadruped
from common import write
from pxr import Usd

from warpsim.io.usd import author

DOCUMENTATION = """The quadruped of quadruped.usda lies on its belly, feet far forward. `Task` asks for targets
of its drives, six knots for each joint, with which it rises to its stance within 1.5 s and then stands for a second.
The first guess pulls the legs in and stays crouched."""

LYING, FOLDED, CROUCHED = (130.0, -88.0), (130.0, -150.0), (65.0, -130.0)
"""Hip pitch and knee of all legs, degrees."""
RISE, STAND = 1.5, 1.0
"""s."""


def build() -> Usd.Stage:
    """The scene."""
    stage = quadruped.build(LYING, 0.05)
    stage.GetRootLayer().documentation = DOCUMENTATION
    world, trunk = stage.GetPrimAtPath("/World"), stage.GetPrimAtPath("/World/Trunk")
    stance = author.site(world, "Stance", position=(0, 0, quadruped.HEIGHT))
    task = author.task(world, duration=RISE + STAND, iterations=15)
    legs = [4 * [0.0, *pose] for pose in (LYING, FOLDED, *4 * [CROUCHED])]
    guess = np.round(np.radians(legs), 4).ravel().tolist()
    author.task_part(task, "Knots", "Drives", channel="driveTarget", count=len(legs), values=guess)
    held = {"subject": trunk, "target": stance, "when": "running", "window": (RISE, RISE + STAND)}
    author.task_part(task, "Reach", "Height", axes=["z"], weight=100, tolerance=0.1 * quadruped.HEIGHT, **held)
    author.task_part(task, "Pose", "Upright", leverArm=0.5, tolerance=0.1, angleTolerance=5, **held)
    author.task_part(task, "Smoothness", "Smooth", weight=1e-3)
    author.task_part(task, "KeepJointLimits", "JointLimits")
    return stage


if __name__ == "__main__":
    print(write(build(), "rise"))
