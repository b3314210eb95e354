"""The plain projectile: two numbers to choose, and a gradient anyone can check by hand."""

from __future__ import annotations

from common import BLUE, GREEN, write
from pxr import Usd

from warpsim.io.usd import author

DOCUMENTATION = """A ball flies in a vertical plane for 3 s, 300 steps of 0.01 s, and should end 6 m away: the loss is
(x - 6)²/2, whatever the height. Gravity is a small moon's, so that it comes down about where it rose. It is held to the
plane by a joint that leaves x and z free, whose initial velocities are the two variables. From (2.5, 1) m/s it ends at
x = 7.5 m, so that the gradient is (1.5·3, 0) = (4.5, 0); the best horizontal velocity is 2 m/s."""


def build() -> Usd.Stage:
    """The scene."""
    stage = author.new_stage(documentation=DOCUMENTATION)
    world = author.world(stage)
    author.physics_scene(stage, gravity=0.65, steps_per_second=100)
    ball = author.body(world, "Ball", mass=1.0, inertia=(0.01, 0.01, 0.01))
    author.sphere(ball, "Shape", 0.15, color=BLUE, collides=False)
    joint = author.generic(world, "Plane", None, ball, limits=dict.fromkeys(("transY", "rotX", "rotY", "rotZ")))
    author.set_attributes(joint, {"state:transX:physics:velocity": 2.5, "state:transZ:physics:velocity": 1.0})
    target = author.frame(world, "Target", position=(6, 0, 0))
    author.sphere(target, "Marker", 0.15, color=GREEN, collides=False)
    task = author.task(world, duration=3.0)
    author.task_part(task, "Variable", "Across", attributes=f"{joint.GetPath()}.state:transX:physics:velocity")
    author.task_part(task, "Variable", "Up", attributes=f"{joint.GetPath()}.state:transZ:physics:velocity")
    author.task_part(task, "Reach", "Hit", subject=ball, target=target, axes=["x"], tolerance=0.001)
    return stage


if __name__ == "__main__":
    print(write(build(), "projectile"))
