"""A stack of boxes."""

from __future__ import annotations

from common import BLUE, GREEN, ORANGE, RED, WHITE, write
from pxr import Usd

from warpsim.io.usd import author

DOCUMENTATION = """Five wooden boxes (600 kg/m³, friction 0.6), each a little smaller than the one below, stand on the
ground on top of one another and should go on doing so."""


def build() -> Usd.Stage:
    """The scene."""
    stage = author.new_stage(documentation=DOCUMENTATION)
    world = author.world(stage)
    author.physics_scene(stage, gravity=9.81, steps_per_second=500)
    wood = author.material(world, "Wood", friction=0.6, density=600)
    author.ground(world, color=WHITE, material=wood)
    height = 0.0
    for place, color in enumerate((BLUE, ORANGE, GREEN, RED, BLUE)):
        half = 0.15 - 0.02 * place
        box = author.body(world, f"Box{place}", position=(0.005 * place, 0, height + half))
        author.box(box, "Shape", (half, half, half), color=color, material=wood)
        height += 2 * half
    return stage


if __name__ == "__main__":
    print(write(build(), "stack"))
