"""A quadrotor before four gates."""

from __future__ import annotations

from common import BLUE, GREEN, ORANGE, RED, WHITE, turn, write
from pxr import Usd
from quadrotor import air, drone

from warpsim.io.usd import author

OPENING, BAR = 0.4, 0.03
"""m: half the clear width of a gate, and half the thickness of its bars."""
GATES = (
    # middle in m, heading of the passage in degrees about z
    ((1.5, 0.3, 1.0), 0),
    ((3.2, 1.2, 1.6), 60),
    ((2.2, 2.8, 1.1), 165),
    ((0.3, 2.2, 1.4), 230),
)
DOCUMENTATION = """The quadrotor of quadrotor.usda, on the ground in air that drags on it, before a course of four
square gates with a clear width of 0.8 m, which are only to be seen. They are to be flown through in the order of their
names, each along its x axis. Four actuators push along z at the rotors (control is thrust in N, 0 to 6)."""


def build() -> Usd.Stage:
    """The scene."""
    stage = author.new_stage(documentation=DOCUMENTATION)
    world = author.world(stage)
    author.physics_scene(stage, gravity=9.81, steps_per_second=500, attributes=air())
    author.ground(world, color=WHITE)
    drone(world)
    for number, ((place, heading), color) in enumerate(zip(GATES, (ORANGE, BLUE, GREEN, RED), strict=True)):
        gate = author.frame(world, f"Gate{number}", position=place, rotation=turn("Z", heading))
        side = OPENING + BAR
        for name, y, z in (("Left", side, 0), ("Right", -side, 0), ("Top", 0, side), ("Bottom", 0, -side)):
            half = (BAR, OPENING + 2 * BAR, BAR) if z else (BAR, BAR, OPENING)
            author.box(gate, name, half, position=(0, y, z), color=color, collides=False)
    return stage


if __name__ == "__main__":
    print(write(build(), "gates"))
