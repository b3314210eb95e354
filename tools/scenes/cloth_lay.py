"""A cloth in two hands that a gantry moves, and the table it should be laid on."""

from __future__ import annotations

import numpy as np
from common import DARK, GRAY, GREEN, ORANGE, WHITE, write
from pxr import Usd

from warpsim.io.usd import author

DOCUMENTATION = """A cloth of 0.4 m × 0.3 m hangs from a bar of 0.3 kg that a gantry holds: a slide along x carries
one along z. Two corners of the cloth are held by the bar, which feels its weight. `Task` asks for the targets of both
drives over 1.2 s, such that the cloth lies flat in its place on the table, its corners where the markers are. It starts
from a straight path, which leaves the cloth askew."""
LENGTH, WIDTH, CELLS, TOP = 0.4, 0.3, (8, 6), 0.3


def build() -> Usd.Stage:
    """The scene."""
    stage = author.new_stage(documentation=DOCUMENTATION)
    world = author.world(stage)
    author.physics_scene(stage, gravity=9.81, steps_per_second=100)
    wood = author.material(world, "Wood", friction=0.6)
    author.ground(world, color=WHITE, material=wood)
    author.box(world, "Table", (0.4, 0.3, TOP / 2), position=(0.2, 0, TOP / 2), color=ORANGE, material=wood)
    height, left = TOP + LENGTH + 0.03, -0.05
    inertia = {"mass": 0.3, "inertia": (2e-3, 1e-4, 2e-3)}
    carriage = author.body(world, "Carriage", position=(left, 0, height + 0.1), articulation_root=True, **inertia)
    author.box(carriage, "Block", (0.03, 0.2, 0.015), color=GRAY, collides=False)
    bar = author.body(world, "Bar", position=(left, 0, height), **inertia)
    author.box(bar, "Rod", (0.006, 0.17, 0.006), position=(0, 0, 0.008), color=DARK, collides=False)
    drive = {"stiffness": 400.0, "damping": 40.0}
    author.prismatic(world, "Along", None, carriage, "X", drive=drive)
    author.prismatic(world, "Down", carriage, bar, "Z", drive=drive)
    cloth = author.cloth(
        world,
        "Cloth",
        (LENGTH, WIDTH),
        CELLS,
        position=(left, 0, height - LENGTH / 2),
        rotation=(np.sqrt(0.5), 0, -np.sqrt(0.5), 0),
        young=5e4,
        poisson=0.3,
        thickness=1e-3,
        density=250,
        damping=0.02,
        mass_damping=1.0,
        bending=4.0,
        friction=0.6,
        contact_stiffness=300.0,
        contact_damping=1.0,
        color=(0.75, 0.25, 0.22),
    )
    rows, last = CELLS[1] + 1, CELLS[0] * (CELLS[1] + 1)
    author.attach(cloth, "Hands", [last, last + rows - 1], bar)
    task = author.task(world, duration=1.2, iterations=40)
    straight = np.linspace(0, 1, 6)[:, None] * [0.45, -LENGTH - 0.02]
    author.task_part(task, "Knots", "Path", channel="driveTarget", count=6, values=straight.ravel().tolist(), scale=0.1)
    corners = {"Near": 0, "NearLeft": rows - 1, "Far": last, "FarLeft": last + rows - 1}
    for name, point in corners.items():
        x, y = (-0.2 if point < last else 0.2), (-0.15 if point % rows == 0 else 0.15)
        spot = author.site(world, f"{name}Spot", position=(0.2 + x, y, TOP + 0.002))
        author.sphere(spot, "Marker", 0.01, color=GREEN, collides=False)
        place = author.point_place(cloth, name, point)
        author.task_part(task, "Reach", f"Lay{name}", subject=place, target=spot, tolerance=0.02)
    return stage


if __name__ == "__main__":
    print(write(build(), "cloth_lay"))
