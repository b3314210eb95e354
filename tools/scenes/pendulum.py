"""A pendulum: one body on one hinge, let go 60° from hanging."""

from __future__ import annotations

from common import GRAY, ORANGE, turn, write
from pxr import Usd

from warpsim.io.usd import author

DOCUMENTATION = """A rigid pendulum: a rod of 0.1 kg and a bob of 1 kg, 0.5 m below a hinge along y that is fixed to the
world at a height of 1 m. It starts at rest 60 degrees from hanging. No friction, so its energy is conserved."""


def build() -> Usd.Stage:
    """The scene."""
    stage = author.new_stage(documentation=DOCUMENTATION)
    world = author.world(stage)
    author.physics_scene(stage, gravity=9.81, steps_per_second=500)
    pendulum = author.body(world, "Pendulum", position=(0, 0, 1), articulation_root=True)
    author.capsule(pendulum, "Rod", 0.01, 0.46, position=(0, 0, -0.24), mass=0.1, color=GRAY)
    author.sphere(pendulum, "Bob", 0.05, position=(0, 0, -0.5), mass=1.0, color=ORANGE)
    author.revolute(pendulum, "Hinge", None, pendulum, "Y")
    author.move(pendulum, rotation=turn("Y", 60))
    return stage


if __name__ == "__main__":
    print(write(build(), "pendulum"))
