"""Pours a cup by gradients: how far to tilt it and where to take it, so that the liquid lands in a tray.

    python examples/pour_angle.py [page.html]

The cup is tilted about its rim along a smooth ramp. When the ramp has ended, the liquid is in the air, and where it
will land is known in closed form: the loss is the mean squared distance from the tray's middle, read before any
splash. Its gradient by tilt and place goes back through every step of the liquid (`wall_*` inputs of the program).
"""

from __future__ import annotations

import argparse

import numpy as np
import torch

from warpsim.particles import Domain, Liquid, ParticleProgram, WallShape, box_lattice
from warpsim.tape import CheckpointedTape
from warpsim.view.page import (
    BOX,
    ENDLESS,
    PLANE,
    BodyInfo,
    CloudDrawable,
    Item,
    Look,
    Page,
    RigidDrawable,
    Take,
    write_page,
)

CELL, STEP, STEPS = 0.01, 5e-4, 700
WIDTH, HEIGHT, THICK = 0.03, 0.04, 0.01
TRAY, TRAY_HALF = 0.2, 0.03  # m: where the tray's middle is, and half its length, on the table z = 0
RIM = torch.tensor([0.0, 0.0, 0.20], dtype=torch.float64)  # where the lip is before the tilt
ITERATIONS = 8
REST = 200  # steps more, in which the liquid must miss the cup


def cup() -> tuple[list[WallShape], np.ndarray]:
    """Five boxes, and where they are in the frame of the lip (the upper edge of the wall at +x)."""
    outer, half = WIDTH / 2 + THICK, (HEIGHT + THICK) / 2
    floor = -HEIGHT - THICK / 2
    boxes = [((outer, outer, THICK / 2), (0.0, 0.0, floor))]
    for axis, sign in ((0, -1.0), (0, 1.0), (1, -1.0), (1, 1.0)):
        size, place = [outer, outer, half], [0.0, 0.0, -half]
        size[axis], place[axis] = THICK / 2, sign * (WIDTH + THICK) / 2
        boxes.append((tuple(size), tuple(place)))
    offsets = np.array([place for _, place in boxes]) - [WIDTH / 2, 0.0, 0.0]
    return [WallShape("box", size) for size, _ in boxes], offsets


def motion(tilt: torch.Tensor, slide: torch.Tensor, offsets: torch.Tensor) -> dict[str, torch.Tensor]:
    """Poses and twists of the five boxes at each step, for a tilt (rad) about y and a slide (m) along x."""
    s = torch.clamp(torch.arange(STEPS + 1, dtype=torch.float64) / (0.8 * STEPS), max=1.0)
    ramp = s * s * (3.0 - 2.0 * s)
    angle, x = tilt * ramp, slide * ramp
    cos, sin, zero = torch.cos(angle), torch.sin(angle), torch.zeros_like(angle)
    rows = [torch.stack(row, -1) for row in ((cos, zero, sin), (zero, zero + 1.0, zero), (-sin, zero, cos))]
    arms = torch.einsum("tij,kj->tki", torch.stack(rows, 1), offsets)[:-1]
    lip = RIM + torch.stack([x, zero, zero], -1)[:-1]
    half = angle[:-1] / 2
    rotation = torch.stack([torch.cos(half), 0 * half, torch.sin(half), 0 * half], -1)
    omega = torch.stack([zero, torch.cat([angle.diff(), zero[:1]]) / STEP, zero], -1)[:-1]
    velocity = torch.stack([torch.cat([x.diff(), zero[:1]]) / STEP, zero, zero], -1)[:-1]
    spin = omega[:, None].expand_as(arms)
    twist = torch.cat([spin, velocity[:, None] + torch.linalg.cross(spin, arms)], -1)
    count = len(offsets)
    return {
        "wall_position": (lip[:, None] + arms)[:, None],
        "wall_rotation": rotation[:, None, None].expand(-1, 1, count, -1),
        "wall_twist": twist[:, None],
    }


def landing(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Where along x particles meet the table, if nothing stops them, m."""
    fall = (v[..., 2] + torch.sqrt(v[..., 2] ** 2 + 2 * 9.81 * x[..., 2])) / 9.81
    return x[..., 0] + fall * v[..., 0]


class Pour:
    """The cup, its liquid, and the loss."""

    def __init__(self) -> None:
        shapes, offsets = cup()
        self.offsets = torch.tensor(offsets)
        lower = np.array([-WIDTH, -WIDTH / 2, -HEIGHT])
        x = box_lattice(lower, lower + [WIDTH, WIDTH, 0.03], CELL / 2) + RIM.numpy()
        self.program = ParticleProgram(
            Domain.around((-0.15, -0.1, -0.3), (0.45, 0.1, 0.35), CELL),
            Liquid(1000.0, 1e5, 0.5),
            shapes,
            volume=(CELL / 2) ** 3,
            particles=len(x),
            step=STEP,
            max_nodes=12 * len(x),
        )
        self.start = self.program.start(x)
        self.tape = CheckpointedTape(self.program, steps=STEPS, memory="32MB")

    def run(self, values: np.ndarray) -> tuple[float, float, np.ndarray]:
        """Loss (m²), share of the liquid on its way into the tray, and the loss's gradient by tilt and slide."""
        variables = torch.tensor(values, dtype=torch.float64, requires_grad=True)
        given = motion(variables[0], variables[1], self.offsets)
        run = self.tape.forward(self.start, {name: value.detach().numpy().copy() for name, value in given.items()})
        state = run.state()
        x = torch.tensor(state["x"], requires_grad=True)
        v = torch.tensor(state["v"], requires_grad=True)
        place = landing(x, v)
        loss = ((place - TRAY) ** 2).mean()
        share = float(((place - TRAY).abs() < TRAY_HALF).double().mean())
        loss.backward()
        by = self.tape.backward(run, state_seeds={"x": {-1: x.grad.numpy()}, "v": {-1: v.grad.numpy()}})
        gradients = [torch.tensor(by.inputs[name].numpy()) for name in given]
        torch.autograd.backward(list(given.values()), gradients)
        return float(loss.detach()), share, variables.grad.numpy()

    def later(self, values: np.ndarray) -> tuple[float, np.ndarray]:
        """Share of the liquid that later falls into the tray, clear of the cup; (frames, n, 3) positions, m."""
        given = motion(*torch.tensor(values), self.offsets)
        rest = {name: np.concatenate([v.numpy(), np.repeat(v[-1:].numpy(), REST, 0)]) for name, v in given.items()}
        rest["wall_twist"][STEPS:] = 0.0
        tape = CheckpointedTape(self.program, steps=STEPS + REST)
        run = tape.forward(self.start, rest, keep_states=["x", "v"], keep_every=20, differentiate=False)
        x, v = (run.states[name].numpy()[:, 0] for name in ("x", "v"))
        below = x[-1, :, 2] < float(RIM[2]) - 0.01
        hits = (landing(torch.tensor(x[-1]), torch.tensor(v[-1])) - TRAY).abs().numpy() < TRAY_HALF
        return float((below & hits).mean()), x


def main(page: str | None = None) -> None:
    """Optimizes, asserts that the pour hits the tray, and writes a page to look at."""
    pour = Pour()
    values = np.array([1.8, 0.0])  # rad, m
    rates = np.array([0.08, 0.025])
    mean, square = np.zeros(2), np.zeros(2)
    first = best = None
    for k in range(1, ITERATIONS + 1):
        loss, share, gradient = pour.run(values)
        tilt = np.rad2deg(values[0])
        print(f"{k:2d}: tilt {tilt:5.1f} deg, slide {values[1]:.3f} m: loss {loss:.5f}, toward the tray {share:.1%}")
        first = share if first is None else first
        if best is None or loss < best[0]:
            best = (loss, values.copy())
        if share > 0.95:
            break
        mean, square = 0.7 * mean + 0.3 * gradient, 0.9 * square + 0.1 * gradient**2  # Adam
        values = values - rates * (mean / (1 - 0.7**k)) / (np.sqrt(square / (1 - 0.9**k)) + 1e-12)
    share, x = pour.later(best[1])
    print(f"tilt {np.rad2deg(best[1][0]):.1f} deg, slide {best[1][1]:.3f} m: {share:.1%} falls into the tray")
    assert first <= 0.05 and share >= 0.8, (first, share)
    if page:
        write_page(page, _page(x, best[1]))


def _page(x: np.ndarray, values: np.ndarray) -> Page:
    """The liquid as a cloud of points, the cup that is tilted, and the tray that it shall hit."""
    frames = len(x)
    shapes, offsets = cup()
    moved = motion(*torch.tensor(values), torch.tensor(offsets))
    steps = np.minimum(20 * np.arange(frames), STEPS - 1)
    positions, rotations = (moved[f"wall_{name}"].numpy()[steps, 0] for name in ("position", "rotation"))
    names = [f"/cup/wall{k}" for k in range(len(shapes))]
    glass, wood = np.array([0.55, 0.7, 0.85]), np.array([0.45, 0.25, 0.12])
    place, ground = np.eye(4), np.eye(4)
    place[:3, 3], ground[2, 3] = (TRAY, 0.0, THICK / 2), 0.0
    items = [
        Item(name, BOX, np.array(shape.size), np.eye(4), glass, name, look=Look(opacity=0.35))
        for name, shape in zip(names, shapes, strict=True)
    ]
    items.append(Item("/tray", BOX, np.array([TRAY_HALF, TRAY_HALF, THICK / 2]), place, wood, None))
    items.append(Item("/table", PLANE, np.array([ENDLESS, ENDLESS, 0.0]), ground, np.array([0.7, 0.7, 0.72]), None))
    cloud = CloudDrawable("/liquid", np.array([0.05, 0.25, 0.8]), CELL / 4)
    take = Take("pour", np.arange(frames) * 20 * STEP, positions, rotations, points={"/liquid": x})
    drawables = [*(RigidDrawable(item) for item in items), cloud]
    return Page("Pouring by gradients", [BodyInfo(name) for name in names], drawables, [take])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", nargs="?", help="an .html file for the motion before and after")
    main(parser.parse_args().page)
