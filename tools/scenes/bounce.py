"""A ball that bounces on the ground."""

from __future__ import annotations

from common import RED, WHITE, stiff, write
from pxr import Usd

from warpsim.io.usd import author

DOCUMENTATION = """A rubber ball of 1 kg and 0.1 m radius falls by 0.2 m onto the ground with restitution 0.8 and a
sideways velocity of 0.2 m/s: each bounce reaches 0.64 of the height before. A touch lasts 3 ms, hence the small time
step."""


def build() -> Usd.Stage:
    """The scene."""
    stage = author.new_stage(documentation=DOCUMENTATION)
    world = author.world(stage)
    author.physics_scene(stage, gravity=9.81, steps_per_second=4000)
    rubber = author.material(world, "Rubber", friction=0.5, restitution=0.8, attributes=stiff(0.0141, 0.0709))
    author.ground(world, color=WHITE, material=rubber)
    ball = author.body(world, "Ball", position=(0, 0, 0.3), velocity=(0.2, 0, 0))
    author.sphere(ball, "Shape", 0.1, mass=1.0, color=RED, material=rubber)
    return stage


if __name__ == "__main__":
    print(write(build(), "bounce"))
