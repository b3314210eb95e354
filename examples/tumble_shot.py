"""A graphics shot: a log tumbles over boxes and lands in a keyframed pose on a keyframed frame.

    python examples/tumble_shot.py [--output shot.usda]

The keyframes are time samples of a prim in the USD file, and its task asks for the velocity and the spin with which the
log must be thrown, 20 % away from the animator's first try, which misses by half a meter. Impacts happen at their own
moments within a step, so the gradient through them is the motion's own.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

import warpsim as ws

SCENE = Path(__file__).resolve().parents[1] / "scenes" / "tumble_shot.usda"
RADIUS = 0.06  # m, of the log
JOLT = 0.3  # m/s: a larger change of velocity within one step is an impact


def main(output: str | None = None) -> ws.OptimizedTask:
    """Solves the shot and checks that the log strikes, tumbles and lands."""
    done = ws.optimize(SCENE)
    print(f"{done.result.message}; {done.result.iterations} iterations, {done.result.seconds:.1f} s")
    for when, outcome in (("first try", done.before), ("result", done.after)):
        print(when, *(verdict.text for verdict in outcome.verdicts), sep="\n  ")
    for path, change in done.changes.items():
        print(f"{path}: {change['before']} became {change['after']}")
    assert done.before.verdicts[0].value > 0.5 and done.solved, "the log should land as keyed, and not by luck"

    with torch.no_grad():
        motion = done.problem.episode(done.problem.choice(done.result.x[None]), shown=True).trajectory
    velocity, spin = motion.qd[:, 0, :3], motion.qd[:-1, 0, 3:]
    impacts = int((velocity.diff(dim=0).norm(dim=-1) > JOLT).sum())
    turned = float(spin.norm(dim=-1).sum() * done.problem.sim.timestep)
    height = float(motion.body_position("/World/Log")[-1, 0, 2])
    print(f"{impacts} impacts, {torch.rad2deg(torch.tensor(turned)):.0f}° of tumbling, at last {height:.4f} m up")
    assert impacts >= 3 and turned > torch.pi, "the log should tumble over the boxes"
    assert abs(height - RADIUS) < 0.002, "the log should have landed on the ground"
    if output:
        print("wrote", ", ".join(str(path) for path in motion.save(output)))
    return done


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="a .usda file for the motion")
    main(parser.parse_args().output)
