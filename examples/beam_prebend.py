"""A beam of rubber is shaped so that it is straight under its own weight: its rest shape is sought.

Clamped at one end, a beam that is made straight sags by a third of its length. Here the parameter "beam.rest", where
each point is when nothing pulls at it, is chosen so that the beam comes to rest straight: by Newton's method with the
gradients of the whole motion, from the curved rest shape, in which it starts, to the equilibrium.

    python examples/beam_prebend.py [-o beam.html]
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

RATE, STEPS = 50, 120
LENGTH, SIDE, HEIGHT = 0.5, 0.05, 0.35
CELLS = 8
KNOTS = 6
TOLERANCE = 1e-3
"""m: how far from the straight line any point of the axis may be."""


def write_scene(path: Path) -> None:
    """A straight beam that a wall holds at one end."""
    stage = author.new_stage(documentation="A soft beam, clamped at one end.")
    author.physics_scene(stage, steps_per_second=RATE)
    world = author.world(stage)
    author.ground(world, color=(0.85, 0.85, 0.88))
    wall = {"position": (-0.02, 0, 0.25), "color": (0.45, 0.5, 0.55), "collides": False}
    author.box(world, "Wall", (0.02, 0.08, 0.25), **wall)
    beam = author.soft(
        world,
        "Beam",
        box=(LENGTH, SIDE, SIDE),
        cells=(CELLS, 1, 1),
        order=2,
        position=(0.5 * LENGTH, 0, HEIGHT),
        young=2e6,
        density=1000,
        damping=0.02,
        mass_damping=3.0,
        collides=False,
        color=(0.8, 0.35, 0.3),
    )
    points = np.array(beam.GetAttribute("points").Get())
    author.attach(beam, "Clamp", np.flatnonzero(points[:, 0] < -0.5 * LENGTH + 1e-6).tolist())
    author.save(stage, path)


def bent(straight: torch.Tensor, knots: torch.Tensor) -> torch.Tensor:
    """The beam with its sections moved and turned: their slopes are the sums of the knots' powers of the length."""
    share = straight[:, 0] / LENGTH
    powers = torch.arange(1, KNOTS + 1, dtype=torch.float64)
    # slopes first, by which sections turn; then the axis that has these slopes
    fine = torch.linspace(0, 1, 401, dtype=torch.float64)
    angle = (knots * fine[:, None] ** powers).sum(-1)
    step = LENGTH / 400
    x, z = (
        torch.cat([torch.zeros(1, dtype=torch.float64), torch.cumsum(0.5 * step * (f[1:] + f[:-1]), 0)])
        for f in (torch.cos(angle), torch.sin(angle))
    )
    low = (share * 400).floor().clamp(0, 399).long()
    rest = share * 400 - low
    axis_x, axis_z = (f[low] * (1 - rest) + f[low + 1] * rest for f in (x, z))
    own = (knots * share[:, None] ** powers).sum(-1)
    above = straight[:, 2] - HEIGHT
    return torch.stack(
        [axis_x - above * torch.sin(own), straight[:, 1], HEIGHT + axis_z + above * torch.cos(own)], dim=-1
    )


def shape(sim: ws.Simulator, iterations: int) -> tuple[ws.Trajectory, ws.Trajectory, float, float]:
    """The motion found, that of the straight beam, and how far the axes of both end from the line at most, m."""
    straight = sim.parameter("beam.rest")[0]
    axis = ((straight[:, 1].abs() < 1e-6) & ((straight[:, 2] - HEIGHT).abs() < 1e-6)).nonzero()[:, 0]

    def run(values: torch.Tensor) -> ws.Trajectory:
        rest = bent(straight, values)
        return sim.rollout(STEPS, parameters={"beam.rest": rest}, start={"beam.x": rest}, memory="64MB")

    def off(made: ws.Trajectory) -> torch.Tensor:
        return made["beam.x"][-1, 0, axis, 2] - HEIGHT

    knots = torch.zeros(KNOTS, dtype=torch.float64)
    with torch.no_grad():
        first = run(knots)
    watched = torch.linspace(0, len(axis) - 1, KNOTS + 1).round().long()[1:]
    for k in range(iterations):
        values = knots.clone().requires_grad_()
        heights = off(run(values))[watched]
        rows = [torch.autograd.grad(height, values, retain_graph=True)[0] for height in heights]
        heights = heights.detach()
        print(f"{k}: {1e3 * float(heights.abs().max()):.3f} mm from straight")
        knots = knots - torch.linalg.solve(torch.stack(rows), heights)
    with torch.no_grad():
        best = run(knots)
    return best, first, float(off(best).abs().max()), float(off(first).abs().max())


def main(output: str | None = None, iterations: int = 5) -> None:
    """Seeks the rest shape, checks that the beam ends straight and at rest, and writes a page with both motions."""
    with tempfile.TemporaryDirectory() as folder:
        write_scene(Path(folder) / "beam.usda")
        sim = ws.Simulator(Path(folder) / "beam.usda")
        made, first, distance, before = shape(sim, iterations)
        speed = float(made["beam.v"][-1].abs().max())
        print(f"{1e3 * before:.1f} mm from straight at first, {1e3 * distance:.2f} mm at last, at {speed:.1e} m/s")
        assert before > 0.1, "the straight beam hardly sags"
        assert distance < TOLERANCE, f"the beam is {distance:.4f} m from straight"
        assert speed < 5e-3, f"the beam still moves at {speed:.4f} m/s"
        if output is not None:
            page, other = made.page(title="A beam that its weight makes straight"), first.page().takes[0]
            takes = [replace(page.takes[0], name="shaped"), replace(other, name="made straight", ghost=True)]
            print(f"written to {write_page(Path(output), replace(page, takes=takes))}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", help="page to write")
    main(parser.parse_args().output)
