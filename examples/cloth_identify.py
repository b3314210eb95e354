"""Stiffness, bending and damping of a cloth are identified from its measured motion, noise included.

A cloth held at two corners is let go and swings. Twelve of its points are measured fifty times a second with an error
of 2 mm. Starting from values two to four times off, the material is found that moves as was measured, by gradients
through a hundred implicit steps.

    python examples/cloth_identify.py [-o identify.html]
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

STEPS, EVERY, NOISE = 100, 2, 2e-3
TRUTH = {"cloth.young": 2e4, "cloth.bending": 40.0, "cloth.damping": 0.02}
"""Pa, –, s."""
TOLERANCE = {"cloth.young": 0.1, "cloth.bending": 0.25, "cloth.damping": 0.15}
"""Relative errors that are allowed with such noise."""


def write_scene(path: Path, cells: int = 6) -> None:
    """A cloth held at two corners, level at first."""
    stage = author.new_stage(documentation="A cloth held at two corners.")
    author.physics_scene(stage, steps_per_second=100)
    world = author.world(stage)
    author.ground(world, color=(0.85, 0.85, 0.88))
    cloth = author.cloth(
        world,
        "Cloth",
        (0.4, 0.4),
        (cells, cells),
        position=(0, 0, 0.8),
        young=5e4,
        thickness=1e-3,
        density=300,
        damping=0.06,
        bending=10.0,
        collides=False,
        color=(0.45, 0.3, 0.7),
    )
    author.attach(cloth, "Hold", [0, cells])
    author.save(stage, path)


def measure(sim: ws.Simulator) -> tuple[torch.Tensor, torch.Tensor]:
    """Which points are measured, and where they were found to be: (12,), (times, 12, 3) m."""
    rng = np.random.default_rng(0)
    seen = torch.as_tensor(rng.permutation(len(sim.scene.matters[0].initial["x"]))[:12].copy())
    motion = sim.rollout(STEPS, parameters={name: torch.tensor(value) for name, value in TRUTH.items()})
    places = motion["cloth.x"][::EVERY, 0, seen].detach()
    return seen, places + NOISE * torch.as_tensor(rng.normal(size=tuple(places.shape)))


def identify(sim: ws.Simulator, iterations: int = 25) -> tuple[dict[str, float], list[float]]:
    """The material that moves as was measured, and the root mean square error on the way, m."""
    seen, measured = measure(sim)
    logs = {name: sim.parameter(name)[0].log().clone().requires_grad_() for name in TRUTH}
    errors: list[float] = []

    def closure() -> torch.Tensor:
        search.zero_grad()
        made = sim.rollout(STEPS, parameters={name: value.exp() for name, value in logs.items()})
        loss = (made["cloth.x"][::EVERY, 0, seen] - measured).square().mean()
        (1e4 * loss).backward()
        errors.append(float(loss.detach()) ** 0.5)
        return 1e4 * loss.detach()

    search = torch.optim.LBFGS(list(logs.values()), max_iter=iterations, line_search_fn="strong_wolfe")
    search.step(closure)
    return {name: float(value.detach().exp()) for name, value in logs.items()}, errors


def main(output: str | None = None) -> None:
    """Identifies, checks against the truth, and writes a page: as measured, as found, as guessed at first."""
    with tempfile.TemporaryDirectory() as folder:
        write_scene(Path(folder) / "cloth.usda")
        sim = ws.Simulator(Path(folder) / "cloth.usda")
        found, errors = identify(sim)
        print(f"error {1e3 * errors[0]:.1f} mm -> {1e3 * errors[-1]:.2f} mm after {len(errors)} gradients")
        for name, value in found.items():
            off = value / TRUTH[name] - 1.0
            print(
                f"{name}: {float(sim.parameter(name)[0]):g} -> {value:.4g}, true {TRUTH[name]:g} ({100 * off:+.1f} %)"
            )
            assert abs(off) < TOLERANCE[name], f"{name} is {100 * off:.0f} % off"
        if output is not None:
            choices = {"found": found, "truth": TRUTH, "first guess": {}}
            made = {
                take: sim.rollout(STEPS, parameters={k: torch.tensor(v) for k, v in values.items()}).page()
                for take, values in choices.items()
            }
            takes = [replace(p.takes[0], name=name, ghost=name != "found") for name, p in made.items()]
            page = replace(made["found"], takes=takes, title="A cloth's material from its motion")
            print(f"written to {write_page(Path(output), page)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", help="page to write")
    main(parser.parse_args().output)
