"""A cart on a rail with a pole on it; the control pushes the cart."""

from __future__ import annotations

from common import BLUE, GRAY, ORANGE, turn, write
from pxr import Usd

from warpsim.io.usd import author

DOCUMENTATION = """Cart-pole: a 1 kg cart slides along x within 2 m to each side; a pole of 0.1 kg and 1 m stands on
it and turns freely about y, starting 3 degrees off upright. The one actuator pushes the cart with up to 20 N (control
-1 to 1)."""


def build() -> Usd.Stage:
    """The scene."""
    stage = author.new_stage(documentation=DOCUMENTATION)
    world = author.world(stage)
    author.physics_scene(stage, gravity=9.81, steps_per_second=500)
    author.cylinder(world, "Rail", 0.02, 5.0, axis="X", position=(0, 0, 1), color=GRAY, collides=False)
    cart = author.body(world, "Cart", position=(0, 0, 1), articulation_root=True)
    author.box(cart, "Box", (0.15, 0.1, 0.05), mass=1.0, color=BLUE)
    slider = author.prismatic(
        cart, "Slider", None, cart, "X", limits=(-2, 2), attributes={"newton:damping": 0.1, "newton:armature": 0.01}
    )
    pole = author.body(cart, "Pole", position=(0, 0, 0.05))
    author.capsule(pole, "Rod", 0.02, 0.96, position=(0, 0, 0.5), mass=0.1, color=ORANGE)
    author.revolute(pole, "Hinge", cart, pole, "Y", attributes={"newton:damping": 1e-5})
    author.move(pole, rotation=turn("Y", 3))
    author.actuator(world, "Push", slider, gear=(20, 0, 0, 0, 0, 0), control_range=(-1, 1))
    return stage


if __name__ == "__main__":
    print(write(build(), "cartpole"))
