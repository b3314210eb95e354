"""A block that slides down a slope."""

from __future__ import annotations

import numpy as np
from common import BLUE, GREY, turn, write
from pxr import Usd

from warpsim.usd import author

ANGLE = 25.0
"""Of the slope, degrees."""
DOCUMENTATION = f"""A block of 1 kg on a slope of {ANGLE:.0f} degrees with friction 0.3, pushed off downhill at 0.2
m/s. As tan 25° = 0.466 is more than 0.3 it keeps sliding, with acceleration g (sin 25° - 0.3 cos 25°) = 1.479
m/s²."""


def build() -> Usd.Stage:
    """The scene."""
    stage = author.new_stage(documentation=DOCUMENTATION)
    world = author.world(stage)
    author.physics_scene(stage, gravity=9.81, steps_per_second=500)
    wood = author.material(world, "Wood", friction=0.3)
    slope = author.frame(world, "Slope", position=(0, 0, 6), rotation=turn("Y", ANGLE))
    author.box(slope, "Slab", (12, 1, 0.1), position=(10, 0, -0.1), color=GREY, material=wood)
    angle = np.radians(ANGLE)
    place = np.array([0.1 * np.sin(angle), 0, 6 + 0.1 * np.cos(angle)])  # the block's underside touches the slab
    block = author.body(world, "Block", position=place, rotation=turn("Y", ANGLE), velocity=(0.2, 0, 0))
    author.box(block, "Shape", (0.2, 0.15, 0.1), mass=1.0, color=BLUE, material=wood)
    return stage


if __name__ == "__main__":
    print(write(build(), "incline"))
