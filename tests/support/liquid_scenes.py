"""Scenes with cups of liquid, authored."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pxr import Usd

from warpsim.io.usd import author

SIDES = {"Left": (0, -1), "Right": (0, 1), "Front": (1, -1), "Back": (1, 1)}


def add_cup(
    body: Usd.Prim, width: float, height: float, thickness: float, *, at=(0.0, 0.0, 0.0), lid: bool = False, **options
) -> None:
    """A square cup of boxes, the middle of its floor at a point of the body's frame."""
    outer, half = width / 2 + thickness, (height + thickness) / 2
    x, y, z = at
    author.box(body, "Floor", (outer, outer, thickness / 2), position=(x, y, z - thickness / 2), **options)
    for name, (axis, sign) in SIDES.items():
        size, place = [outer, outer, half], [x, y, z + (height - thickness) / 2]
        size[axis] = thickness / 2
        place[axis] += sign * (width + thickness) / 2
        author.box(body, name, size, position=place, **options)
    if lid:
        author.box(body, "Lid", (outer, outer, thickness / 2), position=(x, y, z + height + thickness / 2), **options)


def arm_with_cup(path: Path, *, steps_per_second: int = 500, **liquid) -> Path:
    """A two-joint arm with drives that holds a cup, half full."""
    stage = author.new_stage()
    author.physics_scene(stage, steps_per_second=steps_per_second)
    world = author.world(stage)
    upper = author.body(
        world, "Upper", position=(0, 0, 0.5), mass=1.0, inertia=(0.01, 0.01, 0.002), articulation_root=True
    )
    hand = author.body(world, "Hand", position=(0.2, 0, 0.5), mass=0.3, inertia=(0.002, 0.002, 0.002))
    add_cup(hand, 0.03, 0.04, 0.005, at=(0.05, 0, 0))
    gains = {"stiffness": 0.5, "damping": 0.02}
    author.revolute(world, "Shoulder", None, upper, "Y", drive=gains)
    author.revolute(world, "Elbow", upper, hand, "Y", drive=gains)
    author.liquid(world, "Coffee", inside=hand, pitch=0.005, fill=0.5, viscosity=0.1, **liquid)
    author.save(stage, path)
    return path


def floating_cup(path: Path) -> Path:
    """A closed cup, half full, that flies and tumbles without gravity."""
    stage = author.new_stage()
    author.physics_scene(stage, gravity=0.0, steps_per_second=500)
    world = author.world(stage)
    cup = author.body(
        world,
        "Cup",
        position=(0.1, 0.02, 0.3),
        mass=0.05,
        center_of_mass=(0, 0, 0),
        inertia=(2e-5, 3e-5, 4e-5),
        velocity=(0.3, -0.1, 0.2),
        angular_velocity=(200.0, 120.0, -60.0),
    )
    add_cup(cup, 0.03, 0.03, 0.01, lid=True)
    author.liquid(world, "Water", inside=((0.085, 0.005, 0.3), (0.115, 0.035, 0.33)), pitch=0.005, fill=0.5)
    author.save(stage, path)
    return path


def unaligned(scene, seed: int = 3):
    """A scene whose liquid is off the kinks of a fresh fill: jittered, slightly pressed, off the grid's planes."""
    liquid, rng = scene.matters[0], np.random.default_rng(seed)
    x = liquid.initial["x"]
    liquid.initial["x"] = x + rng.uniform(-2e-4, 2e-4, x.shape)
    liquid.initial["volume_ratio"] = rng.uniform(0.9985, 0.9995, len(x))
    liquid.data["domain"] = (np.array([-0.2137, -0.3119, 0.2031]), np.array([0.6, 0.35, 0.9]))
    return scene
