"""The ant, and that it should run."""

from __future__ import annotations

import ant
from common import write
from pxr import Usd

from warpsim.io.usd import author

DOCUMENTATION = """The ant of ant.usda should run along x, as fast as it can. `Training` asks for a policy that sees its
body and joints and drives the eight motors every 0.02 s. It is rewarded for speed and for going on, and pays for its
controls, for joints parked at their stops and for a body about to leave the heights of 0.2 to 1 m, which ends an
episode."""


def build() -> Usd.Stage:
    """The scene."""
    stage = ant.build()
    stage.GetRootLayer().documentation = DOCUMENTATION
    world, torso = stage.GetPrimAtPath("/World"), stage.GetPrimAtPath("/World/Torso")
    training = author.task_part(world, "Training", "Training", seconds=240.0, seed=0, retry=0.5)
    author.task_part(training, "Progress", "Forward", subject=torso, direction=(1, 0, 0))
    author.task_part(training, "Alive", "Alive")
    author.task_part(training, "ActionCost", "Controls", weight=0.05)
    author.task_part(training, "JointStops", "Stops", weight=0.1)
    near = {"margin": 0.25, "weight": 6.0, "ahead": 0.1}
    author.task_part(training, "Fall", "Fall", subject=torso, minimum=0.2, maximum=1.0, **near)
    author.task_part(training, "Starts", "Starts", position=0.1, velocity=0.1, kick=0.5)
    return stage


if __name__ == "__main__":
    print(write(build(), "ant_run"))
