"""A ball to be thrown over a wall: the loss along first-order, zeroth-order and mixed gradients, for five seeds.

    python -m tools.evidence.over_a_wall                   # writes docs/evidence/over_a_wall.json and the picture
    python -m tools.evidence.over_a_wall --output /tmp/wall --seeds 2

The wall stops every throw near the first one, and there the distance to the target hardly depends on the velocity: the
exact gradient leads nowhere. Smoothed over throws that fly higher, the loss has a slope. All descend by steps of the
same length along their gradients, which shrink at the same rate.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch

from warpsim.optimizers.estimators import GradientEstimator
from warpsim.scene import Body, Joint, Options, Scene, Shape
from warpsim.sim.simulator import Simulator

ROOT = Path(__file__).resolve().parents[2]
WORLDS, STEPS, TARGET = 32, 160, 2.5
DEVIATION, ITERATIONS, LENGTH, DECAY = 1.0, 60, 0.3, 0.95
SOLVED = 0.02
"""m²: within 14 cm of the target."""
KINDS = ("exact", "first", "zeroth", "mixed")
LABELS = {
    "exact": "first-order, exact",
    "first": "first-order, smoothed",
    "zeroth": "zeroth-order",
    "mixed": "mix",
}

Losses = Callable[[torch.Tensor], torch.Tensor]


def thrower() -> Simulator:
    """A ball that is thrown, and a wall between it and its target."""
    scene = Scene(options=Options(timestep=0.005))
    scene.shapes.append(
        Shape("wall", "box", position=np.array([1.2, 0.0, -0.5]), size=np.array([0.3, 1.0, 1.0]), condim=1)
    )
    scene.bodies.append(Body("ball"))
    for name, axis in (("x", [1.0, 0.0, 0.0]), ("z", [0.0, 0.0, 1.0])):
        scene.joints.append(Joint(name, "slide", "ball", axis=np.array(axis)))
    scene.shapes.append(Shape("ball", "sphere", "ball", size=np.array([0.1, 0.0, 0.0]), condim=1))
    return Simulator(scene, worlds=WORLDS)


def misses(sim: Simulator) -> Losses:
    """Squared distance from the target along x after 0.8 s, by the velocity (k, 2) of the throw."""

    def losses(v: torch.Tensor) -> torch.Tensor:
        rows = v if len(v) == WORLDS else v.expand(WORLDS, -1)
        return (sim.rollout(STEPS, qd=rows, outputs=()).q[-1, :, 0] - TARGET).square()[: len(v)]

    return losses


def descend(losses: Losses, kind: str, seed: int, iterations: int = ITERATIONS) -> list[float]:
    """Loss along normalized descent, before it and after each iteration."""
    start = np.random.default_rng(seed).normal([2.5, 2.0], 0.1)
    x = torch.as_tensor(start)
    gradient = exact_gradient(losses)
    if kind != "exact":
        estimator = GradientEstimator(losses, kind=kind, deviation=DEVIATION, samples=WORLDS, seed=seed)
        gradient = lambda x: estimator(x).gradient  # noqa: E731
    curve = [float(losses(x[None])[0])]
    for k in range(iterations):
        slope = gradient(x)
        x = x - LENGTH * DECAY**k * slope / max(float(slope.norm()), 1e-3)
        curve.append(float(losses(x[None])[0]))
    return curve


def exact_gradient(losses: Losses) -> Callable[[torch.Tensor], torch.Tensor]:
    """The simulation's own gradient at one point."""

    def gradient(x: torch.Tensor) -> torch.Tensor:
        leaf = x.detach().clone().requires_grad_()
        (slope,) = torch.autograd.grad(losses(leaf[None])[0], leaf)
        return slope

    return gradient


def measure(
    seeds: Sequence[int], kinds: Sequence[str] = KINDS, iterations: int = ITERATIONS
) -> dict[str, list[list[float]]]:
    """Curves by kind, one per seed."""
    losses = misses(thrower())
    return {kind: [descend(losses, kind, seed, iterations) for seed in seeds] for kind in kinds}


def to_markdown(curves: dict[str, list[list[float]]]) -> str:
    """The table."""
    lines = ["| | start, median m² | end, median m² | best seed | worst seed | solved |", "|---|---|---|---|---|---|"]
    for kind, found in curves.items():
        first, ends = statistics.median(c[0] for c in found), sorted(c[-1] for c in found)
        solved = sum(end < SOLVED for end in ends)
        lines.append(
            f"| {LABELS[kind]} | {first:.2f} | {statistics.median(ends):.2g} | {ends[0]:.2g} | {ends[-1]:.2g} | "
            f"{solved} of {len(ends)} |"
        )
    return "\n".join(lines) + "\n"


def draw(curves: dict[str, list[list[float]]], path: Path) -> None:
    """Thin lines for seeds, a thick one for their median."""
    figure, axis = plt.subplots(figsize=(7, 3.6))
    for color, (kind, found) in zip(("tab:red", "tab:orange", "tab:green", "tab:blue"), curves.items(), strict=True):
        for curve in found:
            axis.semilogy(curve, color=color, lw=0.6, alpha=0.5)
        axis.semilogy(np.median(np.array(found), axis=0), color=color, lw=2, label=LABELS[kind])
    axis.axhline(SOLVED, color="gray", ls=":", lw=1)
    axis.set(xlabel="iteration", ylabel="squared miss, m²", title="A ball over a wall")
    axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures, prints the table, writes the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--output", type=Path, help="folder for all files; default: docs/evidence and docs/images")
    given = parser.parse_args(arguments)
    data = given.output or ROOT / "docs" / "evidence"
    pictures = given.output or ROOT / "docs" / "images"
    for folder in (data, pictures):
        folder.mkdir(parents=True, exist_ok=True)
    curves = measure(range(given.seeds))
    shown = {kind: [[float(f"{loss:.6g}") for loss in curve] for curve in found] for kind, found in curves.items()}
    (data / "over_a_wall.json").write_text(json.dumps(shown) + "\n", encoding="utf-8")
    (data / "over_a_wall.md").write_text(to_markdown(curves), encoding="utf-8")
    draw(curves, pictures / "over_a_wall.png")
    print(to_markdown(curves))


if __name__ == "__main__":
    main()
