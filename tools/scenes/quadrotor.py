"""A quadrotor in air."""

from __future__ import annotations

from common import DARK, GRAY, RED, WHITE, write
from pxr import Usd

from warpsim.io.usd import author

ARM = 0.17
"""m from the middle to each rotor, along x and y."""
DOCUMENTATION = """A quadrotor of 1 kg on the ground, in air (1.2 kg/m³, 1.8e-5 Pa s) that drags on it. Four actuators
push along z at the rotors (control is thrust in N, 0 to 6) and turn the body about z with 0.016 m of torque per
thrust, the two diagonals in opposite senses. It takes off with more than 2.4525 N on each."""


def air() -> dict[str, float]:
    """Scene attributes of air at sea level."""
    return {"mjc:option:density": 1.2, "mjc:option:viscosity": 1.8e-5}


def drone(world: Usd.Prim) -> Usd.Prim:
    """The quadrotor on the ground at the origin, with its actuators."""
    body = author.body(
        world, "Drone", position=(0, 0, 0.065), mass=1.0, center_of_mass=(0, 0, 0), inertia=(0.01, 0.01, 0.018)
    )
    author.box(body, "Hull", (0.08, 0.05, 0.03), color=RED)
    for place, (x, y) in enumerate(((1, 1), (-1, 1), (-1, -1), (1, -1))):
        rotor = author.site(body, f"Rotor{place}", position=(ARM * x, ARM * y, 0.03))
        author.cylinder(body, f"Disc{place}", 0.1, 0.01, position=(ARM * x, ARM * y, 0.03), color=DARK)
        spin = 0.016 if x * y > 0 else -0.016
        author.actuator(world, f"Thrust{place}", rotor, gear=(0, 0, 1, 0, 0, spin), control_range=(0, 6))
    author.box(body, "Skids", (0.1, 0.07, 0.005), position=(0, 0, -0.06), color=GRAY)
    return body


def build() -> Usd.Stage:
    """The scene."""
    stage = author.new_stage(documentation=DOCUMENTATION)
    world = author.world(stage)
    author.physics_scene(stage, gravity=9.81, steps_per_second=500, attributes=air())
    author.ground(world, color=WHITE)
    drone(world)
    return stage


if __name__ == "__main__":
    print(write(build(), "quadrotor"))
