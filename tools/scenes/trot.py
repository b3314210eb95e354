"""The quadruped, and how far it should walk."""

from __future__ import annotations

import numpy as np
import quadruped
from common import GREEN, write
from pxr import Usd

from warpsim.io.usd import author

DOCUMENTATION = """The quadruped of quadruped.usda should be at `Goal`, 0.8 m ahead, after 2 s, without falling or
turning. `Task` asks for a gait: targets of its drives that repeat every 0.4 s, each a mean, a cosine and a sine. The
first guess only lifts diagonal pairs of feet in turn: the hips do not swing."""

PERIOD, SECONDS, DISTANCE = 0.4, 2.0, 0.8
LIFT = 14.0
"""Amplitude of the knees in the first guess, degrees."""


def _guess() -> list[float]:
    """Means, cosines and sines of abduction, hip and knee of the four legs, rad."""
    means = 4 * [0.0, quadruped.PITCH, quadruped.KNEE]
    cosines = [
        part for sign in (1, -1, -1, 1) for part in (0.0, 0.0, sign * LIFT)
    ]  # front left and right, rear likewise
    return np.round(np.radians([*means, *cosines, *12 * [0.0]]), 4).tolist()


def build() -> Usd.Stage:
    """The scene."""
    stage = quadruped.build()
    stage.GetRootLayer().documentation = DOCUMENTATION
    world, trunk = stage.GetPrimAtPath("/World"), stage.GetPrimAtPath("/World/Trunk")
    goal = author.frame(world, "Goal", position=(DISTANCE, 0, quadruped.HEIGHT))
    author.cylinder(goal, "Marker", 0.03, 0.002, position=(0, 0, 0.001 - quadruped.HEIGHT), color=GREEN, collides=False)
    task = author.task(world, duration=SECONDS, iterations=15)
    author.task_part(task, "Periodic", "Gait", channel="driveTarget", period=PERIOD, harmonics=1, values=_guess())
    author.task_part(task, "Pose", "Arrive", subject=trunk, target=goal, leverArm=0.5, tolerance=0.05, angleTolerance=5)
    author.task_part(task, "StayAbove", "Up", subject=trunk, height=0.8 * quadruped.HEIGHT)
    author.task_part(task, "KeepJointLimits", "JointLimits")
    return stage


if __name__ == "__main__":
    print(write(build(), "trot"))
