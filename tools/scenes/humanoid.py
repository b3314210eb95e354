"""A humanoid that stands under its drives."""

from __future__ import annotations

from common import BLUE, DARK, GRAY, ORANGE, WHITE, servo, write
from pxr import Usd

from warpsim.io.usd import author

DOCUMENTATION = """A humanoid of 1.6 m and about 47 kg with 21 joints: three in the waist, three in each hip, a knee,
two in each ankle, two in each shoulder, an elbow. Hips and ankles are compounds: several hinges between one pair of
bodies. Drives hold it upright on two flat feet; motors (control -1 to 1) act beside them. Neighbors that overlap do
not collide."""

ROOT_HEIGHT = 0.96
"""m: the pelvis, with legs straight."""


def _hinge(
    child: Usd.Prim, name: str, parent: Usd.Prim, axis: str, limits, stiffness: float, strength: float
) -> Usd.Prim:
    return author.revolute(
        child,
        name,
        parent,
        child,
        axis,
        limits=limits,
        drive=servo(stiffness, 0.1 * stiffness, 0.0, strength),
        attributes={"newton:armature": 0.02, "newton:damping": 0.01},
    )


def _leg(pelvis: Usd.Prim, side: str, y: float, skin: Usd.Prim) -> tuple[list[Usd.Prim], list[Usd.Prim]]:
    inward = (-10, 45) if y > 0 else (-45, 10)
    thigh = author.body(pelvis, f"{side}Thigh", position=(0, y, -0.05))
    author.capsule(thigh, "Shape", 0.06, 0.28, position=(0, 0, -0.2), mass=4.5, color=BLUE, material=skin)
    joints = [
        _hinge(thigh, "HipX", pelvis, "X", inward, 500, 150),
        _hinge(thigh, "HipZ", pelvis, "Z", (-40, 40), 300, 100),
        _hinge(thigh, "HipY", pelvis, "Y", (-110, 30), 600, 200),
    ]
    shin = author.body(thigh, "Shin", position=(0, 0, -0.42))
    author.capsule(shin, "Shape", 0.045, 0.28, position=(0, 0, -0.2), mass=2.5, color=GRAY, material=skin)
    joints.append(_hinge(shin, "Knee", thigh, "Y", (-2, 150), 600, 200))
    foot = author.body(shin, "Foot", position=(0, 0, -0.43))
    author.box(foot, "Sole", (0.12, 0.05, 0.02), position=(0.035, 0, -0.04), mass=1.0, color=DARK, material=skin)
    joints += [
        _hinge(foot, "AnkleY", shin, "Y", (-45, 45), 600, 120),
        _hinge(foot, "AnkleX", shin, "X", (-30, 30), 400, 80),
    ]
    author.filter_pairs(shin, pelvis)
    return joints, [thigh, shin, foot]


def _arm(chest: Usd.Prim, side: str, y: float, skin: Usd.Prim) -> tuple[list[Usd.Prim], list[Usd.Prim]]:
    outward = (-5, 120) if y > 0 else (-120, 5)
    upper = author.body(chest, f"{side}UpperArm", position=(0, y, 0.22))
    author.capsule(upper, "Shape", 0.035, 0.2, position=(0, 0, -0.13), mass=1.5, color=ORANGE, material=skin)
    joints = [
        _hinge(upper, "ShoulderX", chest, "X", outward, 100, 40),
        _hinge(upper, "ShoulderY", chest, "Y", (-120, 60), 100, 40),
    ]
    lower = author.body(upper, "LowerArm", position=(0, 0, -0.27))
    author.capsule(lower, "Shape", 0.03, 0.18, position=(0, 0, -0.12), mass=1.0, color=GRAY, material=skin)
    author.sphere(lower, "Hand", 0.04, position=(0, 0, -0.26), mass=0.4, color=ORANGE, material=skin)
    joints.append(_hinge(lower, "Elbow", upper, "Y", (-120, 2), 80, 30))
    return joints, [upper, lower]


def build() -> Usd.Stage:
    """The scene."""
    stage = author.new_stage(documentation=DOCUMENTATION)
    world = author.world(stage)
    author.physics_scene(
        stage, gravity=9.81, steps_per_second=500, attributes={"mjc:option:integrator": "implicitfast"}
    )
    skin = author.material(world, "Skin", friction=0.9)
    author.ground(world, color=WHITE, material=skin)
    pelvis = author.body(world, "Pelvis", position=(0.03, 0, ROOT_HEIGHT), articulation_root=True)
    author.capsule(pelvis, "Shape", 0.09, 0.12, axis="Y", mass=8.0, color=BLUE, material=skin)
    chest = author.body(pelvis, "Chest", position=(0, 0, 0.14))
    author.capsule(chest, "Ribs", 0.1, 0.16, axis="Y", position=(0, 0, 0.16), mass=12.0, color=ORANGE, material=skin)
    author.capsule(chest, "Belly", 0.08, 0.1, axis="Y", position=(0, 0, 0.02), mass=3.0, color=ORANGE, material=skin)
    joints = [_hinge(chest, f"Waist{axis}", pelvis, axis, (-35, 35), 600, 150) for axis in "ZYX"]
    head = author.body(chest, "Head", position=(0, 0, 0.4))
    author.sphere(head, "Shape", 0.09, mass=3.5, color=WHITE, material=skin)
    author.fixed(head, "Neck", chest, head)
    for side, sign in (("Left", 1), ("Right", -1)):
        hinges, leg = _leg(pelvis, side, 0.1 * sign, skin)
        joints += hinges
        author.filter_pairs(chest, leg[0])
        hinges, arm = _arm(chest, side, 0.24 * sign, skin)
        joints += hinges
        author.filter_pairs(pelvis, *arm)
    motors = author.frame(world, "Motors")
    for joint in joints:
        name = joint.GetParent().GetName() + joint.GetName()
        name = name if name.startswith(("Left", "Right", "Chest")) else _side(joint) + name
        author.actuator(motors, name, joint, gear=(40, 0, 0, 0, 0, 0), control_range=(-1, 1))
    return stage


def _side(joint: Usd.Prim) -> str:
    return "Left" if "/Left" in str(joint.GetPath()) else "Right"


if __name__ == "__main__":
    print(write(build(), "humanoid"))
