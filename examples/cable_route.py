"""An arm routes a cable through two clips: the path of its joints is sought.

One end of the cable is fixed on a table, the other is held by an arm of three joints. The clips are open at the top.
The way of the arm's hand is chosen so that two points of the cable come to lie within the clips, by derivatives of the
whole motion, through arm, cable and what both touch.

    python examples/cable_route.py [-o route.html]
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

RATE, STEPS = 100, 150
FURTHEST = 0.04
"""m, of a change of the way."""
HANGING = 4
"""Iterations that look at the hanging cable alone."""
POINTS, SPACING, RADIUS = 25, 0.03, 0.005
"""Of the cable: its points, their distance and its radius, m."""
CLIPS = {8: (0.23, 0.07), 16: (0.43, 0.135)}
"""Point of the cable → where its clip stands, m."""
WIDE, HIGH = 0.012, 0.04
"""m: half of a clip's opening, and its height."""
BASE = (0.35, -0.45, 0.0)
"""m: foot of the arm."""
UPPER, LOWER, SHOULDER = 0.4, 0.4, 0.25
"""m: lengths of the arm's links, and how high its shoulder is."""
BEGIN, UP = (SPACING * (POINTS - 1), 0.0, 0.16), (0.68, 0.0, 0.22)
"""m: where the hand is at first, and where it lifts the cable."""


def write_scene(path: Path) -> None:
    """A table, two clips, an arm, and a cable from a socket to the arm's hand."""
    stage = author.new_stage(documentation="A cable, two clips and an arm.")
    author.physics_scene(stage, steps_per_second=RATE)
    world = author.world(stage)
    author.ground(world, color=(0.85, 0.85, 0.88))
    along = np.arctan2(*(np.subtract(CLIPS[16], CLIPS[8])[::-1]))
    turn = (float(np.cos(along / 2)), 0.0, 0.0, float(np.sin(along / 2)))
    side = np.array([-np.sin(along), np.cos(along)])
    for k, (x, y) in enumerate(CLIPS.values()):
        for name, sign in (("Left", 1.0), ("Right", -1.0)):
            at = np.array([x, y]) + sign * (WIDE + 0.006) * side
            place = {"position": (float(at[0]), float(at[1]), 0.5 * HIGH), "rotation": turn}
            author.box(world, f"Clip{k}{name}", (0.008, 0.006, 0.5 * HIGH), color=(0.9, 0.65, 0.2), **place)
    yaw, shoulder, elbow = angles(torch.tensor([BEGIN], dtype=torch.float64))[0].tolist()
    links = _links(yaw, shoulder, elbow)
    turret, upper, lower = (
        author.body(
            world,
            name,
            position=tuple(map(float, at)),
            rotation=tuple(map(float, q)),
            mass=m,
            inertia=(0.01, 0.01, 0.01),
            center_of_mass=c,
            **options,
        )
        for name, (at, q), m, c, options in (
            ("Turret", links[0], 1.0, (0, 0, 0), {"articulation_root": True}),
            ("Upper", links[1], 0.6, (0.5 * UPPER, 0, 0), {}),
            ("Lower", links[2], 0.4, (0.5 * LOWER, 0, 0), {}),
        )
    )
    looks = {"color": (0.35, 0.4, 0.5), "collides": False}
    author.box(turret, "Turret", (0.04, 0.04, 0.5 * SHOULDER), position=(0, 0, -0.5 * SHOULDER), **looks)
    author.box(upper, "Link", (0.5 * UPPER, 0.02, 0.02), position=(0.5 * UPPER, 0, 0), **looks)
    author.box(lower, "Link", (0.5 * LOWER, 0.015, 0.015), position=(0.5 * LOWER, 0, 0), **looks)
    drive = {"stiffness": 3.0, "damping": 0.12}
    for name, one, other, axis in (
        ("Yaw", None, turret, "Z"),
        ("Shoulder", turret, upper, "Y"),
        ("Elbow", upper, lower, "Y"),
    ):
        author.revolute(world, name, one, other, axis, drive=drive)
    line = np.stack([SPACING * np.arange(POINTS), np.zeros(POINTS), np.linspace(RADIUS, BEGIN[2], POINTS)], axis=1)
    cable = author.cable(
        world,
        "Cable",
        line,
        young=2e6,
        thickness=2 * RADIUS,
        density=1200,
        damping=0.02,
        mass_damping=1.0,
        bending=0.5,
        friction=0.4,
        contact_stiffness=2000.0,
        contact_damping=5.0,
        color=(0.15, 0.35, 0.75),
    )
    author.attach(cable, "Socket", [0])
    author.attach(cable, "Grip", [POINTS - 1], lower)
    author.save(stage, path)


def angles(hand: torch.Tensor) -> torch.Tensor:
    """(n, 3) rad: joints with which the hand is at (n, 3) places."""
    away = hand - torch.tensor(BASE, dtype=hand.dtype)
    flat, up = torch.hypot(away[:, 0], away[:, 1]), away[:, 2] - SHOULDER
    reach = torch.hypot(flat, up)
    inner = torch.arccos((UPPER**2 + LOWER**2 - reach**2) / (2 * UPPER * LOWER))
    lift = torch.atan2(up, flat) + torch.arccos((UPPER**2 + reach**2 - LOWER**2) / (2 * UPPER * reach))
    return torch.stack([torch.atan2(away[:, 1], away[:, 0]), -lift, torch.pi - inner], dim=1)


def _links(yaw: float, shoulder: float, elbow: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """Places and rotations (w, x, y, z) of the three bodies."""

    def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        w, v = a[0] * b[0] - a[1:] @ b[1:], a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])
        return np.array([w, *v])

    def about(axis: int, angle: float) -> np.ndarray:
        q = np.zeros(4)
        q[0], q[1 + axis] = np.cos(angle / 2), np.sin(angle / 2)
        return q

    foot = np.array(BASE) + [0, 0, SHOULDER]
    first = about(2, yaw)
    second = product(first, about(1, shoulder))
    forward = np.array([np.cos(yaw) * np.cos(shoulder), np.sin(yaw) * np.cos(shoulder), -np.sin(shoulder)])
    return [(foot, first), (foot, second), (foot + UPPER * forward, product(second, about(1, elbow)))]


def targets(way: torch.Tensor) -> torch.Tensor:
    """(STEPS, 1, 3) rad: drive targets that take the hand up, over the clips (way[:3], m) and down (by way[3:])."""
    begin, up = (torch.tensor(place, dtype=way.dtype) for place in (BEGIN, UP))
    over, end = way[:3], way[:3] + way[3:]
    whole = angles(torch.stack([begin, up, over, over, 0.5 * (over + end), end]))
    times = torch.linspace(0, len(whole) - 1, STEPS, dtype=way.dtype)
    left = times.floor().clamp_max(len(whole) - 2).long()
    share = (times - left)[:, None]
    share = (3 - 2 * share) * share**2
    return (whole[left] * (1 - share) + whole[left + 1] * share - whole[0])[:, None]


def route(sim: ws.Simulator, iterations: int) -> tuple[ws.Trajectory, ws.Trajectory]:
    """The motion found, and that of the first guess, which does not swing the cable far enough.

    By Gauss–Newton steps: first to where the cable hangs over the clips and touches nothing, then with where it lies.
    """
    way = torch.tensor([0.66, 0.14, 0.24, 0.0, 0.0, -0.18], dtype=torch.float64)
    ready = STEPS * 3 // 5

    def run(values: torch.Tensor) -> ws.Trajectory:
        outputs = ("body_position", "body_rotation", "cable.solver_status")
        return sim.rollout(STEPS, {"drive_target": targets(values)}, outputs=outputs, memory="64MB")

    def final(made: ws.Trajectory) -> float:
        return float((beside(made).detach() - torch.tensor([0.0, RADIUS])).square().sum())

    motions = []
    for k in range(iterations):
        values = way.clone().requires_grad_()
        made = run(values)
        motions.append(made)
        missed = beside(made, ready)[:, 0]
        if k >= HANGING:
            missed = torch.cat([missed, beside(made)[:, 0]])
        rows = torch.stack([torch.autograd.grad(m, values, retain_graph=True)[0] for m in missed])
        missed = missed.detach()
        print(f"{k}: {told(made)}", flush=True)
        damped = rows @ rows.T + 1e-2 * torch.eye(len(rows), dtype=rows.dtype)
        step = rows.T @ torch.linalg.solve(damped, missed)
        way = way - step * min(1.0, FURTHEST / float(step.norm()))
    with torch.no_grad():
        motions.append(run(way))
    return min(motions, key=final), motions[0]


def beside(made: ws.Trajectory, step: int = -1) -> torch.Tensor:
    """(clips, 2) m: of the cable's points, how far from the middle of its clip across, and how high."""
    x = made["cable.x"][step, 0, list(CLIPS)]
    along = np.subtract(CLIPS[16], CLIPS[8])
    across = torch.as_tensor(np.array([-along[1], along[0]]) / np.linalg.norm(along))
    return torch.stack([(x[:, :2] - torch.tensor(list(CLIPS.values()), dtype=x.dtype)) @ across, x[:, 2]], dim=-1)


def told(made: ws.Trajectory) -> str:
    """Where both points are at last."""
    return "; ".join(f"{1e3 * a:+.1f} mm across, {1e3 * z:.1f} mm high" for a, z in beside(made).tolist())


def main(output: str | None = None, iterations: int = 10) -> None:
    """Seeks the path, checks that the cable lies within both clips, and writes a page that shows both motions."""
    with tempfile.TemporaryDirectory() as folder:
        write_scene(Path(folder) / "route.usda")
        sim = ws.Simulator(Path(folder) / "route.usda", controls=("drive_target",))
        made, first = route(sim, iterations)
        print(f"first: {told(first)}")
        print(f"found: {told(made)}")
        assert int(made["cable.solver_status"].abs().max()) == 0, "a step did not converge"
        assert bool((beside(first)[:, 0].abs() > WIDE).all()), "the first guess is in the clips already"
        place = beside(made).detach()
        inside = (place[:, 0].abs() < WIDE - RADIUS + 1e-3) & (place[:, 1] < 2 * RADIUS)
        assert bool(inside.all()), f"the cable is not within its clips: {told(made)}"
        if output is not None:
            page, other = made.page(title="A cable, routed through two clips"), first.page().takes[0]
            takes = [replace(page.takes[0], name="found"), replace(other, name="first guess", ghost=True)]
            print(f"written to {write_page(Path(output), replace(page, takes=takes))}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", help="page to write")
    main(parser.parse_args().output)
