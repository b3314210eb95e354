"""A round body on four legs of two joints: a hip that turns about the vertical, and a knee."""

from __future__ import annotations

import numpy as np
from common import BLUE, DARK, ORANGE, WHITE, write
from pxr import Usd, UsdPhysics

from warpsim.io.usd import author

RADIUS, LEG, UPPER, LOWER = 0.25, 0.08, 0.2, 0.4
"""Of the body; of a leg; how far each of a leg's links goes along x and along y, m: the widths of the ant that
reinforcement learning is tried on."""
DENSITY = 5.0
"""kg/m³."""
HEIGHT, BEND = 0.557, 1.0
"""Of the body's middle at the start, m; of the knees, rad."""
TORQUE = 150.0
"""N·m at a control of 1."""
CORNERS = {"FrontLeft": (1, 1), "BackLeft": (-1, 1), "BackRight": (-1, -1), "FrontRight": (1, -1)}
DOCUMENTATION = """An ant: a ball of 25 cm on four legs, each with a hip that turns about the vertical by 30 degrees to
both sides and a knee that bends by 30 to 70 degrees, driven by motors of up to 150 N·m. Rotors make every joint as
hard to turn as 1 kg·m². Only its feet touch the ground, and nothing of it touches itself."""


def _capsule_mass(length: float) -> float:
    return DENSITY * np.pi * LEG**2 * (length + 4 / 3 * LEG)


def _link(body: Usd.Prim, name: str, reach: tuple[float, float], color: tuple[float, float, float]) -> Usd.Prim:
    """A capsule from a body's origin along its x and y."""
    length, angle = float(np.hypot(*reach)), float(np.arctan2(reach[1], reach[0]))
    return author.capsule(
        body,
        name,
        LEG,
        length,
        axis="X",
        position=(reach[0] / 2, reach[1] / 2, 0),
        rotation=(np.cos(angle / 2), 0, 0, np.sin(angle / 2)),
        mass=_capsule_mass(length),
        color=color,
    )


def _leg(world: Usd.Prim, torso: Usd.Prim, corner: str, x: int, y: int) -> tuple[list[Usd.Prim], Usd.Prim]:
    """Adds a leg; returns the shapes that touch nothing, and the foot."""
    upper = author.body(torso, f"{corner}Leg", position=(UPPER * x, UPPER * y, 0))
    lower = author.body(upper, "Shin", position=(UPPER * x, UPPER * y, 0))
    links = [_link(upper, "Shape", (UPPER * x, UPPER * y), BLUE), _link(lower, "Shape", (LOWER * x, LOWER * y), DARK)]
    foot = author.sphere(lower, "Foot", LEG, position=(LOWER * x, LOWER * y, 0), mass=1e-6, color=DARK)
    per_degree = {"newton:armature": 1.0, "newton:damping": float(np.radians(1.0))}
    hip = author.revolute(upper, "Hip", torso, upper, "Z", limits=(-30, 30), attributes=per_degree)
    axis = (-y / np.sqrt(2), x / np.sqrt(2), 0)
    knee = author.revolute(
        lower,
        "Knee",
        upper,
        lower,
        axis,
        limits=(30, 70),
        attributes={**per_degree, "state:angular:physics:position": float(np.degrees(BEND))},
    )
    for name, joint in (("Hip", hip), ("Knee", knee)):
        author.actuator(world, f"{corner}{name}", joint, gear=(TORQUE, 0, 0, 0, 0, 0), control_range=(-1, 1))
    return links, foot


def build() -> Usd.Stage:
    """The scene."""
    stage = author.new_stage(documentation=DOCUMENTATION)
    world = author.world(stage)
    author.physics_scene(stage, gravity=9.81, steps_per_second=100)
    rubber = author.material(world, "Rubber", friction=1.0)
    ground = author.ground(world, extent=40.0, color=WHITE, material=rubber)
    torso = author.body(world, "Torso", position=(0, 0, HEIGHT), articulation_root=True)
    ball = DENSITY * 4 / 3 * np.pi * RADIUS**3
    links, feet = [author.sphere(torso, "Shape", RADIUS, mass=ball, color=ORANGE)], []
    for corner, (x, y) in CORNERS.items():
        links.append(_link(torso, f"{corner}Root", (UPPER * x, UPPER * y), ORANGE))
        more, foot = _leg(world, torso, corner, x, y)
        links += more
        feet.append(foot)
    floor = author.collision_group(world, "Floor", [ground])
    soles = author.collision_group(world, "Soles", feet)
    UsdPhysics.CollisionGroup(soles).CreateFilteredGroupsRel().AddTarget(soles.GetPath())
    inner = author.collision_group(world, "Links", links, filtered=[floor, soles])
    UsdPhysics.CollisionGroup(inner).CreateFilteredGroupsRel().AddTarget(inner.GetPath())
    return stage


if __name__ == "__main__":
    print(write(build(), "ant"))
