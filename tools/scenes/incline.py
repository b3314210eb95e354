"""Two blocks on a slope: one slides, one rests."""

from __future__ import annotations

import numpy as np
from common import BLUE, GRAY, ORANGE, stiff, turn, write
from pxr import Usd

from warpsim.io.usd import author

ANGLE = 25.0
"""Of the slope, degrees."""
DOCUMENTATION = f"""Two blocks of 1 kg on a slope of {ANGLE:.0f} degrees, tan 25° = 0.466. A pair's friction is the mean
of its two materials'.

Block, wood on wood (friction 0.3, less than 0.466), is pushed off downhill at 0.2 m/s and keeps sliding, with
acceleration g (sin 25° - 0.3 cos 25°) = 1.479 m/s².

Brick, rubber on wood (friction 0.6, more than 0.466), rests. A soft contact lets what rests on a slope creep at
g sin 25° (1 - d)/(n d b impratio), with d the impedance, b = contactDamping/d, n the points in touch; with the values
here (d = 0.999, contactDamping 200 per s, n = 4, impratio 1000) that is 5 nm/s, so the brick moves by less than 1 µm in
10 s."""
HARD = {"mjc:solimp": (0.999, 0.999, 0.001, 0.5, 2.0)}
"""Contacts that give way by a thousandth."""
DEPTH = 1e-8
"""m by which the blocks start inside the slab, so that they touch from the first step on."""


def build() -> Usd.Stage:
    """The scene."""
    stage = author.new_stage(documentation=DOCUMENTATION)
    world = author.world(stage)
    author.physics_scene(stage, gravity=9.81, steps_per_second=500, attributes={"mjc:option:impratio": 1000.0})
    wood = author.material(world, "Wood", friction=0.3, attributes=stiff(0.01))
    rubber = author.material(world, "Rubber", friction=0.9, attributes=stiff(0.01))
    slope = author.frame(world, "Slope", position=(0, 0, 6), rotation=turn("Y", ANGLE))
    author.box(slope, "Slab", (12, 1, 0.1), position=(10, 0, -0.1), color=GRAY, material=wood, attributes=HARD)
    angle = np.radians(ANGLE)
    height = 0.1 - DEPTH
    place = np.array([height * np.sin(angle), 0, 6 + height * np.cos(angle)])
    for name, material, side, color in (("Block", wood, 0.3, BLUE), ("Brick", rubber, -0.3, ORANGE)):
        push = (0.2, 0, 0) if name == "Block" else None
        block = author.body(world, name, position=place + (0, side, 0), rotation=turn("Y", ANGLE), velocity=push)
        author.box(block, "Shape", (0.2, 0.15, 0.1), mass=1.0, color=color, material=material, attributes=HARD)
    return stage


if __name__ == "__main__":
    print(write(build(), "incline"))
