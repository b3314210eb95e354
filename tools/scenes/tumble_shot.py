"""A shot for an animator: a log that tumbles down steps and lands as its keyframes say."""

from __future__ import annotations

from common import GRAY, GREEN, ORANGE, WHITE, stiff, write
from pxr import Gf, Usd

from warpsim.io.usd import author

FRAMES_PER_SECOND = 24
RADIUS, HEIGHT = 0.06, 0.2
"""m: of the log, a capsule."""
START = (-0.5, 0.0, 0.75)
VELOCITY, SPIN = (1.76, 0.08, 0.4), (24.0, 200.0, 32.0)
"""m/s and degrees/s: of the animator's first try."""
KEYS = (
    # frame, place in m, rotation (w, x, y, z), weight
    (0, START, (1.0, 0.0, 0.0, 0.0), 0.0),
    (9, (0.3074, 0.025, 0.3744), (0.57634, 0.10056, 0.8093, 0.05248), 1000.0),
    (15, (0.7357, -0.0347, 0.1643), (-0.65031, -0.13605, 0.7412, -0.09601), 100.0),
    (22, (1.0708, -0.1158, 0.0607), (-0.79999, -0.59986, 0.00733, 0.01134), 1.0),
)
"""Early keys weigh most: a search that meets them first is led through the later, more sensitive impacts."""
DOCUMENTATION = """A log is thrown, tumbles over two boxes and lands on the ground. `Ghost` is what the animator has
keyed: time samples of where the log should be on some frames, the last of them landed. `Task` asks for the velocity and
the spin of the throw that meet the keys; impacts happen at their own moments, so that the gradient goes through
them."""


def describe_task(world: Usd.Prim, log: Usd.Prim, ghost: Usd.Prim) -> None:
    """What varies and what is wanted."""
    task = author.task(world, duration=KEYS[-1][0] / FRAMES_PER_SECOND, method="levenbergMarquardt")
    for name, attribute, scale in (("Velocity", "velocity", 0.5), ("Spin", "angularVelocity", 60.0)):
        author.task_part(task, "Variable", name, attributes=f"{log.GetPath()}.physics:{attribute}", scale=scale)
    for frame, _, _, weight in KEYS[1:]:
        last = {"tolerance": 0.01, "angleTolerance": 3.0} if frame == KEYS[-1][0] else {}
        author.task_part(
            task,
            "Pose",
            f"Frame{frame}",
            subject=log,
            target=ghost,
            leverArm=0.2,
            weight=weight,
            when="time",
            time=frame / FRAMES_PER_SECOND,
            **last,
        )


def build() -> Usd.Stage:
    """The scene."""
    stage = author.new_stage(documentation=DOCUMENTATION)
    stage.SetTimeCodesPerSecond(FRAMES_PER_SECOND)
    stage.SetStartTimeCode(0)
    stage.SetEndTimeCode(KEYS[-1][0])
    world = author.world(stage)
    author.physics_scene(stage, gravity=9.81, steps_per_second=1000, attributes={"warpsim:impacts": True})
    wood = author.material(world, "Wood", friction=0.5, restitution=0.2, attributes=stiff(0.002))
    author.ground(world, color=WHITE, material=wood)
    for name, half, position in (
        ("High", (0.3, 0.4, 0.2), (-0.3, 0, 0.2)),
        ("Low", (0.2, 0.4, 0.1), (0.2, 0, 0.1)),
    ):
        author.box(world, name, half, position=position, color=GRAY, material=wood)
    log = author.body(world, "Log", position=START, velocity=VELOCITY, angular_velocity=SPIN)
    author.capsule(log, "Shape", RADIUS, HEIGHT, axis="X", density=500, color=ORANGE, material=wood)
    ghost = author.frame(world, "Ghost", position=START)
    author.capsule(ghost, "Shape", RADIUS, HEIGHT, axis="X", color=GREEN, collides=False)
    for frame, place, rotation, _ in KEYS:
        ghost.GetAttribute("xformOp:translate").Set(Gf.Vec3d(*place), frame)
        ghost.GetAttribute("xformOp:orient").Set(Gf.Quatd(*rotation), frame)
    describe_task(world, log, ghost)
    return stage


if __name__ == "__main__":
    print(write(build(), "tumble_shot"))
