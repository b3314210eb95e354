"""A cloth is laid flat on a table by two moving pins: the path of the pins is sought.

The cloth hangs from two corners above the table's edge. Where the pins are over time is a control, "cloth.pin"; six
knots of their common path are chosen so that the cloth lies where it should after 1.2 s. Contact with the table,
friction and the cloth's own stiffness are all part of the gradient.

    python examples/cloth_lay.py [-o lay.html]
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

STEPS, KNOTS = 120, 6
LENGTH, WIDTH, TOP = 0.4, 0.3, 0.3
CELLS = (8, 6)
TOLERANCE = 0.012
"""m, of the root mean square distance."""


def write_scene(path: Path) -> None:
    """A table, and a cloth that hangs beside the place where it should lie."""
    stage = author.new_stage(documentation="A cloth above a table.")
    author.physics_scene(stage, steps_per_second=100)
    world = author.world(stage)
    wood = author.material(world, "Wood", friction=0.6)
    author.ground(world, color=(0.85, 0.85, 0.88))
    author.box(
        world, "Table", (0.4, 0.3, 0.5 * TOP), position=(0.2, 0, 0.5 * TOP), color=(0.75, 0.6, 0.45), material=wood
    )
    author.cloth(
        world,
        "Cloth",
        (LENGTH, WIDTH),
        CELLS,
        position=(-0.05, 0, TOP + 0.5 * LENGTH + 0.03),
        rotation=(np.sqrt(0.5), 0, -np.sqrt(0.5), 0),
        young=5e4,
        thickness=1e-3,
        density=250,
        damping=0.02,
        mass_damping=1.0,
        bending=4.0,
        friction=0.6,
        contact_stiffness=300.0,
        contact_damping=1.0,
        pinned=[CELLS[0] * (CELLS[1] + 1), (CELLS[0] + 1) * (CELLS[1] + 1) - 1],
        color=(0.8, 0.3, 0.25),
    )
    author.save(stage, path)


def path_of_pins(knots: torch.Tensor) -> torch.Tensor:
    """(STEPS, 1, 2, 3) m: both pins along one path in x and z, smooth through the knots, at rest at first."""
    whole = torch.cat([torch.zeros(1, 2, dtype=torch.float64), knots])
    times = torch.linspace(0, len(whole) - 1, STEPS, dtype=torch.float64)
    left = times.floor().clamp_max(len(whole) - 2).long()
    share = times - left
    share = (3 - 2 * share) * share**2
    plane = whole[left] * (1 - share[:, None]) + whole[left + 1] * share[:, None]
    moves = torch.stack([plane[:, 0], torch.zeros_like(plane[:, 0]), plane[:, 1]], -1)
    return moves[:, None, None].expand(-1, 1, 2, -1)


def lay(sim: ws.Simulator, iterations: int = 30) -> tuple[ws.Trajectory, ws.Trajectory, float, float]:
    """The motion found, the first one, and how far both end from the target (root mean square, m)."""
    target = torch.as_tensor(flat_points() + [0.2, 0.0, TOP + 0.001])
    start = torch.linspace(0, 1, KNOTS + 1, dtype=torch.float64)[1:, None]
    end = torch.tensor([0.45, -LENGTH - 0.02], dtype=torch.float64)
    knots = (start * end).clone().requires_grad_()

    def loss(made: ws.Trajectory) -> torch.Tensor:
        return (made["cloth.x"][-1, 0] - target).square().sum(-1).mean()

    def run(values: torch.Tensor) -> ws.Trajectory:
        return sim.rollout(STEPS, {"cloth.pin": path_of_pins(values)}, memory="32MB")

    with torch.no_grad():
        first = best = run(knots)
    search = torch.optim.Adam([knots], lr=0.015)
    for _ in range(iterations):
        search.zero_grad()
        made = run(knots)
        value = loss(made)
        value.backward()
        if value < loss(best):
            best = made
        search.step()
    return best, first, float(loss(best).detach()) ** 0.5, float(loss(first)) ** 0.5


def flat_points() -> np.ndarray:
    """The cloth flat about the origin, (n, 3) m."""
    along, across = (np.linspace(-0.5 * s, 0.5 * s, c + 1) for s, c in zip((LENGTH, WIDTH), CELLS, strict=True))
    x, y = np.meshgrid(along, across, indexing="ij")
    return np.stack([x.ravel(), y.ravel(), np.zeros(x.size)], axis=1)


def main(output: str | None = None, iterations: int = 20) -> None:
    """Lays the cloth, checks that it lies flat in its place, and writes a page that shows both motions."""
    with tempfile.TemporaryDirectory() as folder:
        write_scene(Path(folder) / "lay.usda")
        sim = ws.Simulator(Path(folder) / "lay.usda")
        last, first, distance, before = lay(sim, iterations)
        print(f"{1e3 * before:.1f} mm from its place at first, {1e3 * distance:.1f} mm at last")
        assert distance < TOLERANCE, f"the cloth is {distance:.3f} m from its place"
        if output is not None:
            page, other = last.page(title="A cloth laid by two pins"), first.page().takes[0]
            takes = [replace(page.takes[0], name="found"), replace(other, name="first guess", ghost=True)]
            print(f"written to {write_page(Path(output), replace(page, takes=takes))}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", help="page to write")
    main(parser.parse_args().output)
