"""A quadruped gets up from its belly and stands.

    python examples/quadruped_rise.py [--output out/rise]

The task is in the USD file: drive targets at six knots, 72 numbers, with which the trunk is at its stance height, level
and still from 1.5 s to 2.5 s. The first guess pulls the feet in and stays crouched; gradients through the
contacts of belly, legs and feet with the ground find the rest.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import warpsim as ws

SCENE = Path(__file__).resolve().parents[1] / "scenes" / "rise.usda"
STANCE = 0.3078  # m, the trunk's height with the feet on the ground and knees at a right angle


def main(output: str | None = None) -> ws.OptimizedTask:
    """Solves the task and checks the motion."""
    done = ws.optimize(SCENE)
    motion = done.after.motion
    height = motion.positions[:, [body.name for body in done.problem.sim.scene.bodies].index("/World/Trunk"), 2]
    standing = height[motion.times >= done.after.duration - 1.0]
    print(*(verdict.text for verdict in done.after.verdicts), sep="\n")
    print(f"the trunk rises from {height[0]:.3f} m and stands for a second between", end=" ")
    print(f"{100 * standing.min() / STANCE:.1f} and {100 * standing.max() / STANCE:.1f} % of its stance height")
    assert height[0] < 0.06, "it should begin on its belly"
    assert not done.before.solved, "the first guess should not be enough"
    assert done.solved, "it should stand level, at its stance height, joint limits kept"
    assert standing.min() >= 0.9 * STANCE, "it should stand at 90 % of its stance height or more"
    if output:
        print("wrote", ", ".join(str(path) for path in done.save(output, film=False)))
    return done


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="a folder for the result, as of `warpsim optimize`")
    main(parser.parse_args().output)
