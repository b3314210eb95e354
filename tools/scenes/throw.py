"""A thrown ball and the place it should reach."""

from __future__ import annotations

from common import GREEN, ORANGE, WHITE, stiff, write
from pxr import Usd

from warpsim.io.usd import author

DOCUMENTATION = """A ball of 0.2 kg is thrown from a height of 0.3 m with the velocity authored on it. `Target` is a
frame in the air, 1 m away: which velocity passes through it after 0.4 s? `Task` asks just that, for `warpsim optimize`.
The ground, stiff enough for the ball to sink in by less than 2 mm, stops it if it falls short."""


def build() -> Usd.Stage:
    """The scene."""
    stage = author.new_stage(documentation=DOCUMENTATION)
    world = author.world(stage)
    author.physics_scene(stage, gravity=9.81, steps_per_second=1000)
    rubber = author.material(world, "Rubber", friction=0.8, attributes=stiff(0.002))
    author.ground(world, color=WHITE, material=rubber)
    ball = author.body(world, "Ball", position=(0, 0, 0.3), velocity=(2, 0, 1.5))
    author.sphere(ball, "Shape", 0.05, mass=0.2, color=ORANGE, material=rubber)
    target = author.site(world, "Target", position=(1, 0, 0.4))
    author.sphere(target, "Marker", 0.03, color=GREEN, collides=False)
    task = author.task(world, duration=0.4)
    author.task_part(task, "Variable", "Velocity", attributes=f"{ball.GetPath()}.physics:velocity")
    author.task_part(task, "Reach", "Hit", subject=ball, target=target, tolerance=0.001)
    return stage


if __name__ == "__main__":
    print(write(build(), "throw"))
