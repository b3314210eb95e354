"""CPU times of reading and writing USD: `python -m tools.bench_usd` from the project's root.

Reads `scenes/humanoid.usda`, writes 1,000 frames of it, and checks that what was written reads back exactly.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from warpsim.scene import Scene
from warpsim.scene.description import JOINT_DOF_SIZE, JOINT_Q_SIZE
from warpsim.usd.motion import Motion
from warpsim.usd.reader import read_usd
from warpsim.usd.writer import write_result

SOURCE = Path(__file__).resolve().parents[1] / "scenes" / "humanoid.usda"
FRAMES = 1000
REPEATS = 5


def made_up_motion(scene: Scene) -> Motion:
    """Numbers of the right shapes: every frame and body differs."""
    rng = np.random.default_rng(0)
    sizes = [sum(table[joint.kind] for joint in scene.joints) for table in (JOINT_Q_SIZE, JOINT_DOF_SIZE)]
    q, qd = (rng.normal(size=(FRAMES, size)) for size in sizes)
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    rotations = rng.normal(size=(FRAMES, len(scene.bodies), 4))
    rotations /= np.linalg.norm(rotations, axis=2, keepdims=True)
    positions, velocities, spins = rng.normal(size=(3, FRAMES, len(scene.bodies), 3))
    return Motion(scene.options.timestep * np.arange(FRAMES), q, qd, positions, rotations, velocities, spins)


def fastest(action: Callable[[], object]) -> float:
    """Seconds of the quickest of several runs."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Prints the two times."""
    scene = read_usd(SOURCE)
    motion = made_up_motion(scene)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.usda"
        reading = fastest(lambda: read_usd(SOURCE))
        writing = fastest(lambda: write_result(out, SOURCE, scene, motion))
        again = read_usd(out, time=float(FRAMES - 1))
        found = np.concatenate([joint.initial_q for joint in again.joints if joint.initial_q is not None])
    if not np.array_equal(found, motion.q[-1]):
        raise SystemExit("the last frame does not read back: no times")
    print(f"read {SOURCE.name}: {1e3 * reading:.0f} ms")
    print(f"write {FRAMES} frames of {len(scene.bodies)} bodies: {1e3 * writing:.0f} ms")


if __name__ == "__main__":
    main()
