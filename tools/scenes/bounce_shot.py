"""A ball thrown at a target by way of the ground."""

from __future__ import annotations

from common import GREEN, RED, WHITE, stiff, write
from pxr import Usd

from warpsim.io.usd import author

DOCUMENTATION = """A rubber ball of 0.1 kg is thrown and should pass `Target`, 2 m away and 0.5 m up, after 0.6 s and
one bounce on the ground. `Task` asks for the velocity it is thrown with, for `warpsim optimize`: the gradient goes
through the bounce, which is an impact at its own moment within a step."""


def build() -> Usd.Stage:
    """The scene."""
    stage = author.new_stage(documentation=DOCUMENTATION)
    world = author.world(stage)
    author.physics_scene(stage, gravity=9.81, steps_per_second=2000, attributes={"warpsim:impacts": True})
    rubber = author.material(world, "Rubber", friction=0.3, restitution=0.8, attributes=stiff(0.001))
    author.ground(world, color=WHITE, material=rubber)
    ball = author.body(world, "Ball", position=(0, 0, 0.6), velocity=(2, 0.3, -3))
    author.sphere(ball, "Shape", 0.06, mass=0.1, color=RED, material=rubber)
    target = author.frame(world, "Target", position=(2, 0, 0.5))
    author.sphere(target, "Marker", 0.04, color=GREEN, collides=False)
    task = author.task(world, duration=0.6)
    author.task_part(
        task, "Variable", "Velocity", attributes=f"{ball.GetPath()}.physics:velocity", lower=[-6], upper=[6]
    )
    author.task_part(task, "Reach", "Hit", subject=ball, target=target, tolerance=0.01)
    return stage


if __name__ == "__main__":
    print(write(build(), "bounce_shot"))
