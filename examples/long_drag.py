"""10,000 steps in contact: an arm drags a block to a target, differentiated within 64 MB, the gradient checked.

    python examples/long_drag.py [--output drag.usda]

The task in the USD file asks for drive velocities that leave the block within 1 mm of a target after 20 s, during which
it never stops sliding over the floor. The gradient goes back through all steps; checkpoints keep its memory below the
file's budget. What the arm does in the first 100 steps still counts at the end, so the gradient of the end with respect
to those controls is compared with central differences.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

import warpsim as ws

SCENE = Path(__file__).resolve().parents[1] / "scenes" / "drag.usda"
EARLY, EVERY = 100, 40  # controls whose gradient is checked, and which of them also one by one
BUDGET = 64e6  # bytes, as in the file
TOLERANCE = 1e-6  # relative, of gradient and central differences


def end_of_drag(sim: ws.Simulator, controls: torch.Tensor, change: torch.Tensor) -> torch.Tensor:
    """A number, m, of where the block ends when the first controls are changed."""
    changed = torch.cat([controls[:EARLY] + change, controls[EARLY:]])
    motion = sim.rollout(controls=changed, keep_every=len(controls), memory="64MB")
    x, y, _ = motion.body_position("/World/Block")[-1, 0]
    return x + 0.7 * y


def check_gradient(sim: ws.Simulator, controls: torch.Tensor) -> float:
    """Largest difference between gradient and central differences, relative."""
    change = torch.zeros(EARLY, 2, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(end_of_drag(sim, controls, change), change)
    generator = torch.Generator().manual_seed(0)
    directions = [torch.randn(EARLY, 2, dtype=torch.float64, generator=generator) for _ in range(2)]  # of all 200
    for step in range(0, EARLY, EVERY):
        for joint in range(2):
            single = torch.zeros(EARLY, 2, dtype=torch.float64)
            single[step, joint] = 1.0
            directions.append(single)
    worst = 0.0
    for direction in directions:
        size = 5e-3 / float(direction.norm())
        with torch.no_grad():
            a, b, c, d = (float(end_of_drag(sim, controls, s * size * direction)) for s in (1, -1, 2, -2))
        slope = (8 * (a - b) - (c - d)) / (12 * size)  # central differences of fourth order
        worst = max(worst, abs(float((gradient * direction).sum()) / slope - 1))
    return worst


def main(output: str | None = None) -> float:
    """Solves the task, then checks the gradient of its solution."""
    done = ws.optimize(SCENE)
    for verdict in done.after.verdicts:
        print(verdict.text)
    assert done.solved, "the block should have been dragged to its target"

    with torch.no_grad():
        episode = done.problem.episode(done.problem.choice(done.result.x[None]))
    controls, sim = episode.inputs["drive_velocity"][:, 0], done.problem.sim
    plan = sim.plan(len(controls), memory="64MB")
    print(f"{len(controls)} steps; the gradient takes {plan.bytes / 1e6:.1f} MB in {plan.segments} segments")
    assert len(controls) >= 10_000 and plan.bytes <= BUDGET, "the gradient should fit its budget"

    worst = check_gradient(sim, controls)
    print(f"gradient of the first {EARLY} controls: {worst:.1e} from central differences at most, relative")
    assert worst < TOLERANCE, "the gradient should agree with central differences"
    if output:
        motion = sim.rollout(controls=controls, keep_every=10)
        print("wrote", ", ".join(str(path) for path in motion.save(output)))
    return worst


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="a .usda file for the motion")
    main(parser.parse_args().output)
