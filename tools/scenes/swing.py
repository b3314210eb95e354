"""A swinging arm whose links may change length."""

from __future__ import annotations

from common import BLUE, GREEN, ORANGE, RED, turn, write
from pxr import Gf, Usd, UsdGeom

from warpsim.io.usd import author

LENGTHS = (0.5, 0.4)
"""m: of the two links at first."""
DOCUMENTATION = """A two-link arm hangs from a pivot at a height of 1.5 m and holds a ball of 0.3 kg at its end; a motor
of at most 3 N·m turns each joint. `Task` asks for a swing that brings the ball to rest at `Target` after 1 s, and lets
the lengths of the links vary beside the motors' torques. Each link is a bar of wood one unit long whose body is scaled
along x: that one number moves its end, with the joint and all that hangs there, and gives its mass and inertia."""
PIVOT = 1.5
"""m: height from which the arm hangs."""
TARGET = (0.85, 0.0, 1.0)
"""m: 0.99 m from the pivot, out of reach at first."""


def describe_task(task: Usd.Prim, ball: Usd.Prim, target: Usd.Prim, motors: list[Usd.Prim]) -> None:
    """What varies and what is wanted."""
    for name in ("Upper", "Lower"):
        author.task_part(
            task,
            "Variable",
            f"{name}Length",
            attributes=f"/World/{name}.xformOp:scale",
            components=[0],
            lower=[0.2, 0.5, 0.5],
            upper=[0.8, 2.0, 2.0],
        )
    author.task_part(task, "Knots", "Torques", targets=motors, count=11, values=[1.0, 0.3] * 11, interpolation="cubic")
    author.task_part(task, "Reach", "Arrive", subject=ball, target=target, weight=10.0, tolerance=0.01)
    author.task_part(task, "Velocity", "Stop", subject=ball, tolerance=0.1)
    author.task_part(task, "Effort", "Gently", when="running", weight=0.001)
    author.task_part(task, "KeepControlLimits", "Within")


def build() -> Usd.Stage:
    """The scene."""
    stage = author.new_stage(documentation=DOCUMENTATION)
    world = author.world(stage)
    author.physics_scene(stage, gravity=9.81, steps_per_second=500)
    parent, height, motors = None, PIVOT, []
    for name, length, color in zip(("Upper", "Lower"), LENGTHS, (BLUE, ORANGE), strict=True):
        link = author.body(world, name, position=(0, 0, height), rotation=turn("Y", 90))
        UsdGeom.Xformable(link).AddScaleOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Vec3d(length, 1, 1))
        author.box(link, "Bar", (0.5, 0.015, 0.015), position=(0.5, 0, 0), density=600, color=color)
        joint = author.revolute(world, f"{name}Joint", parent, link, "Y", attributes={"newton:damping": 0.001})
        motors.append(author.actuator(world, f"{name}Motor", joint, control_range=(-3, 3)))
        parent, height = link, height - length
    ball = author.body(world, "Ball", position=(0, 0, height))
    author.sphere(ball, "Shape", 0.05, mass=0.3, color=RED)
    author.fixed(world, "Grip", parent, ball)
    target = author.frame(world, "Target", position=TARGET)
    author.sphere(target, "Marker", 0.04, color=GREEN, collides=False)
    describe_task(author.task(world, duration=1.0, iterations=60), ball, target, motors)
    return stage


if __name__ == "__main__":
    print(write(build(), "swing"))
