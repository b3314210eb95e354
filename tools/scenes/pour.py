"""A seven-joint arm pours a cup into a mug."""

from __future__ import annotations

import numpy as np
from common import BLUE, DARK, ORANGE, WHITE, servo, turn, write
from pxr import Sdf, Usd, UsdGeom

from warpsim.io.usd import author

DOCUMENTATION = """A 7-dof arm (8 kg) holds a square cup, 60 mm wide and two thirds full, beside a mug whose opening
is 72 mm wide. The task: joint trajectories, by drive targets at knots, that pour the cup into the mug. As authored, the
arm tips the cup over one of its corners beside the mug and spills everything. The particles are 5 mm apart on cells of
10 mm."""

PITCH, CUP, CUP_HEIGHT, MUG, MUG_HEIGHT, WALL = 0.005, 0.06, 0.055, 0.072, 0.1, 0.006
YAW = 45.0  # deg: the arm stands askew, so that cup and mug, along the axes, are poured over a corner
LIP = np.array([0.40, 0.0, 0.19])  # the corner over which the cup is poured, on the hand's axis, in the arm's frame, m
MUG_AT = np.array([0.38, 0.19, 0.0])  # middle of the mug's bottom, likewise
DURATION, KNOTS = 1.8, 6
TILT = (0.0, -18.0, -85.0, -122.0, -122.0, -122.0)  # deg of the hand at the knots

LINKS = (
    # name, axis, origin (m), far end (m), radius, mass, limits (deg), stiffness, damping, largest torque
    ("Shoulder", "Z", (0, 0, 0.04), (0, 0, 0.08), 0.05, 2.0, (-170, 170), 400, 40, 90),
    ("UpperArm", "Y", (0, 0, 0.08), (0, 0, 0.15), 0.045, 1.8, (-110, 110), 400, 40, 90),
    ("Roll", "Z", (0, 0, 0.15), (0, 0, 0.22), 0.04, 1.2, (-170, 170), 300, 30, 60),
    ("Forearm", "Y", (0, 0, 0.22), (0.15, 0, 0.22), 0.035, 1.2, (-130, 130), 300, 30, 60),
    ("Wrist", "X", (0.15, 0, 0.22), (0.24, 0, 0.20), 0.03, 0.8, (-170, 170), 200, 16, 30),
    ("Palm", "Y", (0.24, 0, 0.20), (0.30, 0, 0.19), 0.025, 0.5, (-110, 110), 200, 16, 30),
    ("Hand", "X", (0.30, 0, 0.19), (0.33, 0, 0.19), 0.02, 0.3, (-170, 170), 100, 8, 20),
)
GLASS = 0.4  # opacity
SIDES = {"Left": (0, -1), "Right": (0, 1), "Front": (1, -1), "Back": (1, 1)}


def vessel(parent: Usd.Prim, width: float, height: float, at: np.ndarray, color: tuple) -> None:
    """A square glass of five boxes; `at` is the middle of its floor's upper side in the parent's frame."""
    outer = width / 2 + WALL
    boxes = [author.box(parent, "Floor", (outer, outer, WALL / 2), position=at - [0, 0, WALL / 2], color=color)]
    for name, (axis, sign) in SIDES.items():
        size, place = [outer, outer, (height + WALL) / 2], at + [0, 0, (height - WALL) / 2]
        size[axis] = WALL / 2
        place[axis] += sign * (width + WALL) / 2
        boxes.append(author.box(parent, name, size, position=place, color=color))
    for box in boxes:
        UsdGeom.Gprim(box).CreateDisplayOpacityAttr([GLASS])


def arm(world: Usd.Prim) -> Usd.Prim:
    """The arm; returns its hand."""
    moments = (0.01, 0.01, 0.01)
    base = author.body(world, "Arm", rotation=turn("Z", YAW), mass=3.0, inertia=moments, articulation_root=True)
    author.cylinder(base, "Foot", 0.07, 0.05, position=(0, 0, 0.025), color=DARK, collides=False)
    author.fixed(base, "Mount", None, base)
    parent, before = base, np.zeros(3)
    for name, axis, origin, end, radius, mass, limits, stiffness, damping, strength in LINKS:
        start, span = np.array(origin, dtype=float), np.array(end, dtype=float) - np.array(origin)
        length = float(np.linalg.norm(span))
        moments = np.full(3, mass * (length**2 / 12 + radius**2 / 4))
        link = author.body(
            parent,
            name,
            position=start - before,
            mass=mass,
            center_of_mass=span / 2,
            inertia=moments,
            attributes={"mjc:gravcomp": 1.0},
        )
        along = np.array([1.0 + span[2] / length, -span[1] / length, span[0] / length, 0.0])  # turns z into the span
        author.capsule(
            link,
            "Shape",
            radius,
            length,
            position=span / 2,
            rotation=along / np.linalg.norm(along),
            color=ORANGE,
            collides=False,
        )
        author.revolute(
            link,
            "Joint",
            parent,
            link,
            axis,
            limits=limits,
            drive=servo(stiffness, damping, 0.0, strength),
            attributes={"newton:armature": 0.05},
        )
        parent, before = link, start
    return parent


def start() -> np.ndarray:
    """(knots, 7) rad: the hand tips the cup over, the other joints rest."""
    values = np.zeros((KNOTS, len(LINKS)))
    values[:, 6] = np.radians(TILT)
    return values


def build() -> Usd.Stage:
    """The scene."""
    stage = author.new_stage(documentation=DOCUMENTATION)
    world = author.world(stage)
    author.physics_scene(
        stage, gravity=9.81, steps_per_second=500, attributes={"mjc:option:integrator": "implicitfast"}
    )
    floor = author.ground(world, color=WHITE)
    floor.CreateAttribute("warpsim:particles:stick", Sdf.ValueTypeNames.Double, False).Set(1.0)
    hand = arm(world)
    grip = LIP - [0.0, (CUP / 2 + WALL / 2) * np.sqrt(2.0), CUP_HEIGHT] - np.array(LINKS[-1][2])
    cup = author.frame(hand, "Cup", position=grip, rotation=turn("Z", -YAW))
    vessel(cup, CUP, CUP_HEIGHT, np.zeros(3), BLUE)
    angle = np.radians(YAW)
    along, across = np.array([np.cos(angle), np.sin(angle), 0.0]), np.array([-np.sin(angle), np.cos(angle), 0.0])
    mug = author.frame(world, "Mug", position=MUG_AT[0] * along + MUG_AT[1] * across)
    vessel(mug, MUG, MUG_HEIGHT, np.array([0, 0, WALL]), WHITE)
    inside = author.box(
        mug, "Inside", (MUG / 2, MUG / 2, MUG_HEIGHT / 2), position=(0, 0, WALL + MUG_HEIGHT / 2), collides=False
    )
    inside.GetAttribute("visibility").Set("invisible")
    coffee = author.liquid(
        world,
        "Coffee",
        inside=cup,
        pitch=PITCH,
        fill=0.65,
        bulk_modulus=1.75e4,
        viscosity=0.02,
        substeps=2,
        max_nodes=14000,
        domain=((-0.15, 0.05, -0.02), (0.55, 0.65, 0.36)),
        color=(0.25, 0.12, 0.05),
    )
    task = author.task(
        world,
        duration=DURATION,
        method="polyak",
        learningRate=1.6,
        iterations=15,
        stopAtSuccess=True,
        memoryBudget="400MB",
    )
    knots = start()
    limits = np.radians([[low, high] for *_, (low, high), _, _, _ in LINKS]).T
    bounds = np.repeat(limits[:, None], KNOTS, axis=1)
    bounds[:, 0] = knots[0]  # where the arm stands
    author.task_part(
        task,
        "Knots",
        "Motion",
        channel="driveTarget",
        count=KNOTS,
        interpolation="cubic",
        metric="rates",
        values=knots.ravel(),
        lower=bounds[0].ravel(),
        upper=bounds[1].ravel(),
    )
    author.task_part(task, "Fill", "Pour", subject=coffee, target=inside, above=4 * PITCH, tolerance=0.05, heldFor=0.5)
    author.task_part(task, "Smoothness", "Smooth", weight=1e-4)
    author.task_part(task, "KeepJointLimits", "Limits")
    return stage


if __name__ == "__main__":
    print(write(build(), "pour"))
