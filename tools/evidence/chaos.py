"""A chaotic double pendulum: the horizon that `warpsim validity` names, and what float32 makes of gradients beyond it.

    python -m tools.evidence.chaos                     # writes docs/evidence/chaos.json and docs/images/chaos.png

The gradient of the lower rod's final angle by both initial angles, for horizons from 0.25 s on, in float32 and in
float64, each in a process of its own. Where the two no longer agree, float32 computes the gradient of its rounding.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from warpsim.check.validity import measure_validity
from warpsim.scene import Body, Joint, Options, Scene, Shape
from warpsim.sim.simulator import Simulator

ROOT = Path(__file__).resolve().parents[2]
TIMESTEP = 0.002
SECONDS = 10.0
SPACING = 0.25


def double_pendulum(timestep: float = TIMESTEP) -> Scene:
    """Two rods, swung high enough to be chaotic."""
    scene = Scene(options=Options(timestep=timestep))
    for name, parent, place in (("upper", None, 0.0), ("lower", "upper", -0.5)):
        scene.bodies.append(Body(name, parent, position=np.array([0.0, 0.0, place])))
        scene.joints.append(Joint(name, "hinge", name, axis=np.array([0.0, 1.0, 0.0])))
        scene.shapes.append(
            Shape(name, "capsule", name, np.array([0.0, 0.0, -0.25]), size=np.array([0.02, 0.2, 0.0]), collides=False)
        )
    scene.joints[0].initial_q, scene.joints[1].initial_q = np.array([2.0]), np.array([1.0])
    return scene


def final_slopes(steps: Sequence[int]) -> list[list[float]]:
    """Gradients of the final lower angle by both initial angles after each number of steps."""
    sim = Simulator(double_pendulum())
    found = []
    for count in steps:
        q = sim.initial_state()["q"][0].clone().requires_grad_()
        sim.rollout(count, q=q, outputs=()).q[-1, 0, 1].backward()
        assert q.grad is not None
        found.append([float(x) for x in q.grad])
    return found


def slopes_in(precision: str, steps: Sequence[int]) -> np.ndarray:
    """`final_slopes` of a process that computes in the given precision, (n, 2)."""
    command = [sys.executable, "-m", "tools.evidence.chaos", "--slopes", *map(str, steps)]
    environment = {**os.environ, "WARPSIM_PRECISION": precision, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return np.array(json.loads(done.stdout.splitlines()[-1]))


def deviations(single: np.ndarray, double: np.ndarray) -> np.ndarray:
    """(n,) relative to the float64 gradient."""
    return np.linalg.norm(single - double, axis=1) / np.linalg.norm(double, axis=1)


def draw(data: dict[str, object], path: Path) -> None:
    """Deviation over the horizon, with the named one."""
    figure, axis = plt.subplots(figsize=(7, 3.4))
    axis.semilogy(data["seconds"], data["deviation"], "o-", ms=3, label="float32 against float64")
    axis.axvline(data["horizon_float32"], color="tab:red", label="horizon named for float32")  # type: ignore[arg-type]
    axis.axhline(1.0, color="gray", ls=":", lw=1)
    axis.set(xlabel="horizon, s", ylabel="deviation of the gradient", title="A chaotic double pendulum")
    axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and writes the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="folder for all files; default: docs/evidence and docs/images")
    parser.add_argument("--slopes", type=int, nargs="+", metavar="STEPS", help="only print gradients after these steps")
    given = parser.parse_args(arguments)
    if given.slopes:
        print(json.dumps(final_slopes(given.slopes)))
        return
    steps = [round(s / TIMESTEP) for s in np.arange(SPACING, SECONDS + SPACING / 2, SPACING)]
    growth = measure_validity(Simulator(double_pendulum()), steps[-1]).growth
    error = deviations(slopes_in("float32", steps), slopes_in("float64", steps))
    data: dict[str, object] = {
        "seconds": [round(count * TIMESTEP, 6) for count in steps],
        "deviation": [float(f"{e:.4g}") for e in error],
        "horizon_float32": round(growth.valid_seconds("float32"), 3),
        "horizon_float64": round(growth.valid_seconds("float64"), 3),
        "lyapunov": round(growth.lyapunov, 4),
    }
    folders = (given.output or ROOT / "docs" / "evidence", given.output or ROOT / "docs" / "images")
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    (folders[0] / "chaos.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    draw(data, folders[1] / "chaos.png")
    print(json.dumps({name: value for name, value in data.items() if not isinstance(value, list)}))


if __name__ == "__main__":
    main()
