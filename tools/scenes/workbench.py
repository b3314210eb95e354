"""Things whose properties are to be found from measurements."""

from __future__ import annotations

from common import BLUE, GRAY, GREEN, NEWTON_METERS_PER_DEGREE, ORANGE, write
from pxr import Usd

from warpsim.io.usd import author

LINK = 0.4
"""m: length of an arm link."""
DOCUMENTATION = """A workbench of three experiments whose physics is only guessed. Block, 1 kg, is pushed along a wooden
table at 3 m/s. Arm hangs from the ceiling: two links of 0.4 m, hinges along y with viscous friction, a motor on each
(control is torque in N m). Ball, 60 g, is thrown at 7 m/s through air that drags on it. Friction, the masses and
inertias of the links, the damping of their joints and the density of the air are guesses, to be fitted to data."""


def build() -> Usd.Stage:
    """The scene."""
    stage = author.new_stage(documentation=DOCUMENTATION)
    world = author.world(stage)
    air = {"mjc:option:density": 2.0, "mjc:option:viscosity": 1.8e-5}
    author.physics_scene(stage, gravity=9.81, steps_per_second=500, attributes=air)
    wood = author.material(world, "Wood", friction=0.55)
    author.box(world, "Table", (3, 0.5, 0.05), position=(2, 0, 0.45), color=GRAY, material=wood)
    block = author.body(world, "Block", position=(-0.5, 0, 0.5499), velocity=(3, 0, 0))
    author.box(block, "Shape", (0.1, 0.08, 0.05), mass=1.0, color=BLUE, material=wood)
    links = (
        # name, place, mass, inertia, damping per rad/s
        ("Upper", (0, 2, 2), 0.7, (0.03, 0.02, 0.02), 0.4),
        ("Fore", (0, 0, -LINK), 1.3, (0.008, 0.004, 0.006), 0.04),
    )
    parent = None
    for name, place, mass, inertia, damping in links:
        link = author.body(
            world if parent is None else parent,
            name,
            position=place,
            mass=mass,
            center_of_mass=(0, 0, -LINK / 2),
            inertia=inertia,
            articulation_root=parent is None,
        )
        author.capsule(link, "Shape", 0.03, LINK - 0.06, position=(0, 0, -LINK / 2), color=ORANGE, collides=False)
        joint = author.revolute(
            link, "Joint", parent, link, "Y", attributes={"newton:damping": damping * NEWTON_METERS_PER_DEGREE}
        )
        author.actuator(world, f"{name}Motor", joint)
        parent = link
    ball = author.body(world, "Ball", position=(-1, -1, 1.5), velocity=(6, 0, 4))
    author.sphere(ball, "Shape", 0.1, mass=0.06, color=GREEN)
    return stage


if __name__ == "__main__":
    print(write(build(), "workbench"))
