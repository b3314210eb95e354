"""Small scenes with deformables for the tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from pxr import Usd

import warpsim as ws
from warpsim.io.usd import author


def new_world(rate: int = 100, **options: Any) -> tuple[Usd.Stage, Usd.Prim]:
    """A new stage with a physics scene of so many steps a second, and its world."""
    stage = author.new_stage(**options)
    author.physics_scene(stage, steps_per_second=rate)
    return stage, author.world(stage)


def everything(path: Path) -> Path:
    """A cloth in the hand of an arm (one corner hard, one springy), a third corner moved by a control; a ball on it."""
    stage, world = new_world(rate=100)
    author.ground(world)
    arm = author.body(
        world,
        "Arm",
        position=(-0.45, 0, 0.6),
        mass=0.8,
        center_of_mass=(0.1, 0.02, 0.01),
        inertia=(0.01, 0.02, 0.02),
        articulation_root=True,
    )
    author.box(arm, "Bar", (0.2, 0.02, 0.02), position=(0.2, 0, 0), collides=False)
    author.revolute(world, "Shoulder", None, arm, "Y", drive={"stiffness": 0.5, "damping": 0.02})
    start = {"position": (0.02, 0.01, 0.68), "velocity": (0.1, 0.05, -0.6), "angular_velocity": (0, 60, 20)}
    ball = author.body(world, "Ball", **start)
    author.sphere(ball, "Ball", 0.06, density=300)
    cloth = author.cloth(
        world,
        "Cloth",
        (0.4, 0.4),
        (4, 4),
        position=(0, 0, 0.6),
        young=5e4,
        thickness=1e-3,
        density=400,
        damping=0.01,
        mass_damping=0.3,
        bending=20.0,
        friction=0.4,
        contact_stiffness=800.0,
        contact_damping=2.0,
        pinned=[20],
    )
    author.point_place(cloth, "Corner", 24)
    author.attach(cloth, "Hard", [0], arm)
    author.attach(cloth, "Springy", [4], arm, stiffness=500.0, damping=0.5)
    author.attach(cloth, "Fixed", [24])
    author.save(stage, path)
    return path


def directional(
    loss: Any, given: dict[str, torch.Tensor], name: str, direction: torch.Tensor, step: float
) -> tuple[float, float]:
    """Central difference along a direction, and an estimate of its error from half the step."""
    found = []
    with torch.no_grad():
        for h in (step, 0.5 * step):
            ends = [float(loss({**given, name: given[name] + sign * h * direction})) for sign in (1.0, -1.0)]
            found.append((ends[0] - ends[1]) / (2 * h))
    return (4 * found[1] - found[0]) / 3, abs(found[1] - found[0])


def random_direction(value: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """As large as the value, or 0.1 where that is larger."""
    return torch.as_tensor(rng.normal(size=tuple(value.shape))) * value.abs().clamp_min(0.1)


def parameters(sim: ws.Simulator, names: tuple[str, ...]) -> dict[str, torch.Tensor]:
    """The scene's own values of some parameters, shared by all worlds."""
    return {name: sim.parameter(name)[0].clone() for name in names}
