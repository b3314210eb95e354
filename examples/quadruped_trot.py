"""A quadruped that lifts its feet in turn learns to trot, 0.8 m forward in 2 s.

    python examples/quadruped_trot.py [--output out/trot]

The task is in the USD file: a gait of 36 numbers, the means and the first harmonics of twelve drive targets, that
brings the trunk to a goal ahead, level and facing forward. It is found by gradients through 1000 steps of walking.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import warpsim as ws

SCENE = Path(__file__).resolve().parents[1] / "scenes" / "trot.usda"


def main(output: str | None = None) -> ws.OptimizedTask:
    """Solves the task and checks the motion."""
    done = ws.optimize(SCENE)
    trunk = [body.name for body in done.problem.sim.scene.bodies].index("/World/Trunk")
    before, after = (outcome.motion.positions[:, trunk] for outcome in (done.before, done.after))
    forward = [float(path[-1, 0] - path[0, 0]) for path in (before, after)]
    print(*(verdict.text for verdict in done.after.verdicts), sep="\n")
    print(f"it moves {forward[1]:.3f} m forward in {done.after.duration:.1f} s; the first guess {forward[0]:.3f} m")
    assert forward[0] < 0.5, "the first guess should not get that far"
    assert forward[1] >= 0.5, "it should walk 0.5 m or more"
    assert done.solved, "it should arrive, level, without falling, joint limits kept"
    if output:
        print("wrote", ", ".join(str(path) for path in done.save(output, film=False)))
    return done


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="a folder for the result, as of `warpsim optimize`")
    main(parser.parse_args().output)
