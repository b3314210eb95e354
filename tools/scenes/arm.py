"""A seven-joint arm on a table, with an object to push."""

from __future__ import annotations

from common import DARK, GRAY, ORANGE, RED, WHITE, servo, turn, write
from pxr import Usd

from warpsim.io.usd import author

DOCUMENTATION = """A 7-dof arm (roll and pitch joints in turn, 1 m long, 9 kg) is fixed to a table; drives hold it in
a ready pose with its fingertip above a cube of 0.2 kg that lies on the table. Each drive's target is a control."""

LINKS = (
    # name, axis, length, radius, mass, drive target (deg), limits (deg), stiffness, damping, largest torque
    ("Shoulder", "Z", 0.10, 0.06, 2.5, 0, (-170, 170), 400, 40, 90),
    ("UpperArm", "Y", 0.25, 0.05, 2.0, 30, (-110, 110), 400, 40, 90),
    ("Elbow", "Z", 0.08, 0.045, 1.2, 0, (-170, 170), 300, 30, 60),
    ("Forearm", "Y", 0.22, 0.04, 1.2, 95, (-20, 150), 300, 30, 60),
    ("Wrist", "Z", 0.08, 0.035, 0.8, 0, (-170, 170), 100, 8, 20),
    ("Palm", "Y", 0.09, 0.035, 0.6, 45, (-110, 110), 100, 8, 20),
    ("Hand", "Z", 0.10, 0.03, 0.4, 0, (-170, 170), 50, 4, 20),
)


def build() -> Usd.Stage:
    """The scene."""
    stage = author.new_stage(documentation=DOCUMENTATION)
    world = author.world(stage)
    author.physics_scene(
        stage, gravity=9.81, steps_per_second=500, attributes={"mjc:option:integrator": "implicitfast"}
    )
    wood = author.material(world, "Wood", friction=0.6)
    author.ground(world, color=WHITE, material=wood)
    author.box(world, "Table", (0.6, 0.5, 0.02), position=(0.3, 0, 0.48), color=GRAY, material=wood)
    base = author.body(
        world, "Arm", position=(0, 0, 0.5), articulation_root=True, attributes={"newton:selfCollisionEnabled": False}
    )
    author.cylinder(base, "Foot", 0.08, 0.1, position=(0, 0, 0.05), mass=3.0, color=DARK, material=wood)
    author.fixed(base, "Mount", None, base)
    parent, reach = base, 0.10
    for name, axis, length, radius, mass, target, limits, stiffness, damping, strength in LINKS:
        link = author.body(parent, name, position=(0, 0, reach))
        author.capsule(
            link,
            "Shape",
            radius,
            max(length - radius, 0.02),
            position=(0, 0, length / 2),
            mass=mass,
            color=ORANGE,
            material=wood,
        )
        author.revolute(
            link,
            "Joint",
            parent,
            link,
            axis,
            limits=limits,
            drive=servo(stiffness, damping, target, strength),
            attributes={"newton:armature": 0.05},
        )
        author.move(link, rotation=turn(axis, target))
        parent, reach = link, length
    author.site(parent, "Fingertip", position=(0, 0, reach + 0.03))
    cube = author.body(world, "Cube", position=(0.55, 0, 0.53))
    author.box(cube, "Shape", (0.03, 0.03, 0.03), mass=0.2, color=RED, material=wood)
    return stage


if __name__ == "__main__":
    print(write(build(), "arm"))
