"""An arm that drags a block over the floor for a long time."""

from __future__ import annotations

from common import BLUE, GREEN, ORANGE, RED, WHITE, servo, write
from pxr import Usd

from warpsim.io.usd import author

LINK = 0.4
"""m: length of each of the arm's two links."""
ROD = 0.1
"""m: from the arm's end to the block's middle."""
DOCUMENTATION = """A two-link arm turns about the vertical and drags a block of 0.5 kg round over the floor on a short
rod for 20 s, 10,000 steps in contact. The shoulder's drive holds a velocity, so that whatever it does early shifts all
that comes after; the elbow's holds an angle. Contact forces begin smoothly, and the block never stops sliding. `Task`
asks for drive velocities that leave the block at `Target`, and bounds the memory of the gradient by 64 MB."""
SMOOTH = {"mjc:solimp": (0.0, 0.95, 0.002, 0.5, 2.0)}
"""Contact whose stiffness grows from 0 with depth."""


def build() -> Usd.Stage:
    """The scene."""
    stage = author.new_stage(documentation=DOCUMENTATION)
    world = author.world(stage)
    author.physics_scene(stage, gravity=9.81, steps_per_second=500, attributes={"mjc:option:tolerance": 1e-14})
    wood = author.material(world, "Wood", friction=0.4)
    author.ground(world, color=WHITE, material=wood, attributes=SMOOTH)
    drives = (servo(0.0, 6.0) | {"target_velocity": 30.0}, servo(6.0, 4.0, 30.0))  # of shoulder and elbow
    parent, joints = None, []
    for number, (name, color, drive) in enumerate(zip(("Upper", "Fore"), (BLUE, ORANGE), drives, strict=True)):
        link = author.body(world, name, position=(number * LINK, 0, 0.05))
        author.capsule(
            link,
            "Shape",
            0.03,
            LINK,
            axis="X",
            position=(LINK / 2, 0, 0),
            mass=1.0 - 0.3 * number,
            color=color,
        )
        joint = author.revolute(link, "Joint", parent, link, "Z", drive=drive, attributes={"newton:damping": 0.005})
        joints.append(joint)
        parent = link
    block = author.body(world, "Block", position=(2 * LINK + ROD, 0, 0.05))
    author.box(block, "Shape", (0.08, 0.06, 0.05), mass=0.5, color=RED, material=wood, attributes=SMOOTH)
    author.spherical(block, "Rod", parent, block, anchor=(2 * LINK, 0, 0.05), closes_loop=True)
    target = author.frame(world, "Target", position=(0.1, 0.75, 0.05))
    author.sphere(target, "Marker", 0.03, color=GREEN, collides=False)
    task = author.task(world, duration=20.0, memoryBudget="64MB", iterations=30)
    author.task_part(
        task,
        "Knots",
        "Velocities",  # rad/s
        channel="driveVelocity",
        targets=joints,
        count=6,
        values=[0.5, 0.0, 0.6, 0.1, 0.4, 0.0, 0.6, -0.1, 0.4, 0.0, 0.5, 0.0],
        lower=[0.0, -1.0],
        upper=[2.0, 1.0],
    )
    author.task_part(task, "Reach", "Arrive", subject=block, target=target, axes=["x", "y"], tolerance=0.001)
    return stage


if __name__ == "__main__":
    print(write(build(), "drag"))
