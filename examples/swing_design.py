"""Design: the lengths of a swinging arm's links and its motors' torques, found together.

    python examples/swing_design.py [--output swing.usda]

The arm hangs at rest and should bring the ball at its end to rest at a point that it cannot even reach as it is built.
The task in the USD file lets two attributes vary, the scales along the links, beside the knots of the torques. A longer
link is heavier and harder to turn: its mass and inertia follow from its shape, and the gradient knows.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path

import torch

import warpsim as ws

SCENE = Path(__file__).resolve().parents[1] / "scenes" / "swing.usda"
LENGTHS = ("/World/Upper.xformOp:scale", "/World/Lower.xformOp:scale")
PIVOT, TARGET = (0.0, 0.0, 1.5), (0.85, 0.0, 1.0)  # m
WIDTH, BALL, RADIUS = 0.03, 0.3, 0.05  # m, kg, m
KILOGRAMS_PER_METER = 600 * WIDTH**2  # of the bars: density times cross section


def main(output: str | None = None) -> ws.OptimizedTask:
    """Solves the task and checks that the arm has grown, in length and in mass."""
    done = ws.optimize(SCENE)
    print(f"{done.result.message}; {done.result.iterations} iterations, {done.result.seconds:.1f} s")
    for verdict in done.after.verdicts:
        print(" ", verdict.text)
    assert done.solved, "the ball should come to rest at the target"

    needed = math.dist(PIVOT, TARGET)
    before, after = ([done.changes[path][when][0] for path in LENGTHS] for when in ("before", "after"))
    print(f"links of {before[0]:.3f} and {before[1]:.3f} m became {after[0]:.3f} and {after[1]:.3f} m long")
    assert sum(before) < needed <= sum(after) + 0.01, "only longer links reach the target"
    check_masses(done, after)
    if output:
        with torch.no_grad():
            motion = done.problem.episode(done.problem.choice(done.result.x[None]), shown=True).trajectory
        print("wrote", ", ".join(str(path) for path in motion.save(output)))
    return done


def check_masses(done: ws.OptimizedTask, lengths: list[float]) -> None:
    """The result's file, loaded like any other, has bars whose masses and inertias are those of the new lengths."""
    with tempfile.TemporaryDirectory() as folder:
        result = ws.Simulator(done.save(folder, film=False)[0])
    start = result.rollout(steps=1, qd=[1.0, 0.0], outputs=("potential_energy", "kinetic_energy"))  # hanging, 1 rad/s
    mass, energy, inertia, pivot = 0.0, 0.0, 0.0, 0.0  # inertia about the pivot, whose depth grows along the arm
    for length in lengths:
        bar, middle = KILOGRAMS_PER_METER * length, pivot + length / 2
        mass += bar
        energy += bar * 9.81 * (PIVOT[2] - middle)
        inertia += bar * ((length**2 + WIDTH**2) / 12 + middle**2)
        pivot += length
    energy += BALL * 9.81 * (PIVOT[2] - pivot)
    inertia += BALL * (0.4 * RADIUS**2 + pivot**2)
    print(f"bars of {mass:.3f} kg together; {inertia:.4f} kg·m² about the pivot")
    for name, expected in (("potential_energy", energy), ("kinetic_energy", inertia / 2)):
        found = float(start[name][0].squeeze())
        assert abs(found - expected) < 1e-6 * expected, f"{name} {found} J should be that of the new bars, {expected} J"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="a .usda file for the motion")
    main(parser.parse_args().output)
