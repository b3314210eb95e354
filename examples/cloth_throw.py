"""A cloth is thrown so that it lies flat at a place 1.2 m away, turned by a quarter: its initial velocities are sought.

The cloth flies for half a second under gravity, slowed by air, and stretches and bends on its way. The objective is the
mean square distance of its points from where they should be; its gradient by all initial velocities comes back through
50 implicit steps.

    python examples/cloth_throw.py [-o throw.html]
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import warpsim as ws
from warpsim.io.usd import author
from warpsim.view.page import write_page

STEPS = 50
TOLERANCE = 0.01
"""m, of the root mean square distance."""


def write_scene(path: Path, cells: int = 7) -> None:
    """A square cloth 1 m above the ground, and a frame where it should get to."""
    stage = author.new_stage(documentation="A cloth in the air.")
    author.physics_scene(stage, steps_per_second=100)
    world = author.world(stage)
    author.ground(world, color=(0.85, 0.85, 0.88))
    author.box(world, "Target", (0.2, 0.2, 0.005), position=(1.2, 0, 0.79), color=(0.35, 0.7, 0.4), collides=False)
    author.cloth(
        world,
        "Cloth",
        (0.4, 0.4),
        (cells, cells),
        position=(0, 0, 1),
        young=2e5,
        thickness=5e-4,
        density=300,
        damping=0.02,
        mass_damping=0.5,
        bending=20.0,
        color=(0.2, 0.4, 0.8),
    )
    author.save(stage, path)


def throw(sim: ws.Simulator, iterations: int = 25) -> tuple[ws.Trajectory, ws.Trajectory, float, float]:
    """The motion found, the first one, and how far both end from the target (root mean square, m)."""
    points = sim.scene.matters[0].initial["x"]
    quarter = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    target = torch.as_tensor((points - [0.0, 0.0, 1.0]) @ quarter.T + [1.2, 0.0, 0.8])
    velocity = torch.tensor([1.5, 0.0, 1.0], dtype=torch.float64).repeat(len(points), 1).requires_grad_()
    first = sim.rollout(STEPS, start={"cloth.v": velocity.detach()})

    def loss(made: ws.Trajectory) -> torch.Tensor:
        return (made["cloth.x"][-1, 0] - target).square().sum(-1).mean()

    def closure() -> torch.Tensor:
        search.zero_grad()
        value = loss(sim.rollout(STEPS, start={"cloth.v": velocity}))
        value.backward()
        return value

    search = torch.optim.LBFGS([velocity], max_iter=iterations, line_search_fn="strong_wolfe")
    search.step(closure)
    last = sim.rollout(STEPS, start={"cloth.v": velocity.detach()})
    return last, first, float(loss(last)) ** 0.5, float(loss(first)) ** 0.5


def main(output: str | None = None) -> None:
    """Throws, checks that the cloth arrives, and writes a page that shows both throws."""
    with tempfile.TemporaryDirectory() as folder:
        write_scene(Path(folder) / "throw.usda")
        sim = ws.Simulator(Path(folder) / "throw.usda")
        last, first, distance, before = throw(sim)
        print(f"{before:.3f} m away at first, {1e3 * distance:.2f} mm at last")
        assert distance < TOLERANCE, f"the cloth is {distance:.3f} m from its place"
        if output is not None:
            page, other = last.page(title="A cloth thrown onto a target"), first.page().takes[0]
            takes = [replace(page.takes[0], name="found"), replace(other, name="first guess", ghost=True)]
            print(f"written to {write_page(Path(output), replace(page, takes=takes))}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", help="page to write")
    main(parser.parse_args().output)
