"""The seven-joint arm, and where it should push the cube."""

from __future__ import annotations

import arm
import numpy as np
from common import GREEN, write
from pxr import Gf, Usd, UsdGeom

from warpsim.io.usd import author

DOCUMENTATION = """The 7-dof arm of arm.usda should push the cube over the table to `Target`, 21 cm away and not
straight ahead, within 4 s, or 2000 steps. It begins above the cube, out of contact. Two tasks ask for the targets of
its drives, twelve knots for each joint. `Approach` has the hand follow `Guide`, whose keyframes lead it behind the
cube and on; `Push` brings the cube to the target, best from the answer of the first."""

HAND = "/World/Arm/Shoulder/UpperArm/Elbow/Forearm/Wrist/Palm/Hand"
CUBE, TARGET = np.array((0.55, 0.0, 0.53)), np.array((0.74, 0.09, 0.53))
"""Centers, m."""
SPARE = 5.0
"""How far drive targets stay from the limits of the joints, degrees."""


def _guide(stage: Usd.Stage, pusher: Usd.Prim) -> Usd.Prim:
    """A frame whose keyframes lead the hand down behind the cube and along its way."""
    first = np.array(UsdGeom.Xformable(pusher).ComputeLocalToWorldTransform(Usd.TimeCode.Default()))[3, :3]
    along = (TARGET - CUBE) / np.linalg.norm(TARGET - CUBE)
    behind, end = CUBE - 0.09 * along, TARGET - 0.09 * along
    guide = author.site(stage.GetPrimAtPath("/World"), "Guide", position=first)
    for time, place in ((0, first), (0.6, behind + (0, 0, 0.12)), (1.2, behind), (3.4, end), (4, end)):
        where = Gf.Vec3d(*map(float, np.round(place + (0, 0, 0.01), 4)))
        guide.GetAttribute("xformOp:translate").Set(where, time * stage.GetTimeCodesPerSecond())
    return guide


def _task(world: Usd.Prim, name: str, iterations: int) -> Usd.Prim:
    """A task with its controls and limits."""
    task = author.task(world, name, duration=4, iterations=iterations)
    ready = np.radians([link[5] for link in arm.LINKS]).tolist()
    lower, upper = np.radians([link[6] for link in arm.LINKS]).T + np.radians([[SPARE], [-SPARE]])
    bounds = {"lower": lower.tolist(), "upper": upper.tolist()}
    author.task_part(
        task, "Knots", "Drives", channel="driveTarget", count=12, interpolation="cubic", values=ready, **bounds
    )
    author.task_part(task, "Smoothness", "Smooth", weight=1e-3)
    author.task_part(task, "KeepJointLimits", "JointLimits", angleTolerance=0.1)
    author.task_part(task, "KeepControlLimits", "DriveLimits")
    return task


def build() -> Usd.Stage:
    """The scene."""
    stage = arm.build()
    stage.GetRootLayer().documentation = DOCUMENTATION
    world, cube = stage.GetPrimAtPath("/World"), stage.GetPrimAtPath("/World/Cube")
    pusher = author.site(stage.GetPrimAtPath(HAND), "Pusher", position=(0, 0, 0.085))
    guide = _guide(stage, pusher)
    target = author.frame(world, "Target", position=TARGET)
    author.box(target, "Marker", (0.03, 0.03, 0.001), position=(0, 0, -0.0285), color=GREEN, collides=False)
    follow = {"subject": pusher, "target": guide, "when": "running"}
    approach = _task(world, "Approach", iterations=25)
    author.task_part(approach, "Reach", "Follow", weight=100, **follow)
    push = _task(world, "Push", iterations=10)
    author.task_part(push, "Reach", "Follow", weight=1, **follow)
    author.task_part(push, "Reach", "Arrive", subject=cube, target=target, weight=100, tolerance=0.01)
    return stage


if __name__ == "__main__":
    print(write(build(), "push"))
