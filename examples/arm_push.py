"""A seven-joint arm reaches behind a cube and pushes it over the table, 21 cm to a target.

    python examples/arm_push.py [--output out/push]

Both steps are tasks in the USD file. `Approach` finds, by gradients through the motion, drive targets with which the
hand follows a keyframed guide: inverse kinematics and dynamics in one. That touches the cube, but leaves it centimeters
short. `Push` goes on from there, by gradients through the contacts of hand, cube and table over 2000 steps, and must
bring the cube within 1 cm of its target, all joints within their limits.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from pxr import Usd

import warpsim as ws

SCENE = Path(__file__).resolve().parents[1] / "scenes" / "push.usda"
UNTOUCHED = 0.8  # s


def begin_with(approach: Path, path: Path) -> Path:
    """Writes the scene with the answer of `Approach`, in its result, as the first guess of `Push`."""
    solved, stage = Usd.Stage.Open(str(approach)), Usd.Stage.Open(str(SCENE))
    answer = solved.GetAttributeAtPath("/World/Approach/Drives.values").Get()
    stage.GetAttributeAtPath("/World/Push/Drives.values").Set(answer)
    stage.Export(str(path))
    return path


def solve(folder: Path) -> ws.OptimizedTask:
    """Solves both tasks; the second's result is `result.usda` of the folder, over `push.usda`."""
    result, *_ = ws.optimize(SCENE, "/World/Approach").save(folder / "approach", film=False)
    done = ws.optimize(begin_with(result, folder / "push.usda"), "/World/Push")
    done.save(folder, film=False)
    return done


def main(output: str | None = None) -> ws.OptimizedTask:
    """Solves the tasks and checks the second."""
    if output:
        done = solve(Path(output))
        print(f"wrote {output}")
    else:
        with tempfile.TemporaryDirectory() as folder:
            done = solve(Path(folder))

    motion = done.after.motion
    cube = motion.positions[:, [body.name for body in done.problem.sim.scene.bodies].index("/World/Cube")]
    moved = np.linalg.norm(cube - cube[0], axis=1)
    print(f"after the approach: {done.before.verdicts[-1].text}")
    print(*(verdict.text for verdict in done.after.verdicts), sep="\n")
    print(f"the cube is first touched after {motion.times[np.argmax(moved > 1e-3)]:.1f} s and moves {moved[-1]:.3f} m")
    assert done.problem.steps == 2000
    assert not done.before.solved, "following the guide should not be enough"
    assert done.solved, "the cube should end within 1 cm of its target, joint limits kept"
    assert moved[-1] >= 0.2, "the push should be 20 cm or more"
    assert moved[motion.times < UNTOUCHED].max() < 1e-3, "the arm should begin out of contact"
    return done


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="a folder for the result, as of `warpsim optimize`")
    main(parser.parse_args().output)
