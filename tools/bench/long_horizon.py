"""Memory of long gradients: a humanoid in contact, horizons up to a million steps, each in a process of its own.

    python -m tools.bench.long_horizon [steps …] [--budget 256MB] [--json FILE]

Controls are knots every 100 steps. Reported: growth of the process's resident memory between the loaded program and the
peak of forward and backward pass, the plan's own account, and time per step.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import mujoco
import numpy as np
import warp as wp

from tools.bench.cases import CASES
from warpsim.mjcf import read_mjcf
from warpsim.model.compile import compile_model
from warpsim.model.derive import Derivation
from warpsim.precision import numpy_real, real
from warpsim.program import RigidProgram
from warpsim.tape import CheckpointedTape, KnotInputs

_EVERY = 100
_WARM_STEPS = 50


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _settled(path: Path, steps: int) -> dict[str, np.ndarray]:
    """The humanoid lying on the ground, by MuJoCo."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, nstep=steps)
    return {"q": data.qpos[None].copy(), "qd": data.qvel[None].copy(), "warm_start": data.qacc[None].copy()}


def run(steps: int, budget: str) -> dict[str, float]:
    """One gradient of the final height of the torso by all knots."""
    path = CASES["humanoid-ground"].path
    scene = read_mjcf(path)
    model = compile_model(scene)
    Derivation(model).run()
    program = RigidProgram(model, controls=("actuator",))
    state = {name: value.astype(numpy_real) for name, value in _settled(path, 2000).items()}

    def gradient(count: int) -> tuple[CheckpointedTape, KnotInputs, float, float]:
        tape = CheckpointedTape(program, steps=count, memory_budget=budget)
        values = 0.02 * np.random.default_rng(0).normal(size=(KnotInputs.count(count, _EVERY), 1, model.nu))
        knots = KnotInputs("actuator", wp.array(values.astype(numpy_real), dtype=real), _EVERY)
        begin = time.perf_counter()
        rollout = tape.forward(state, knots, progress=count > 100_000)
        middle = time.perf_counter()
        seed = np.zeros((1, model.nq), numpy_real)
        seed[0, 2] = 1.0
        tape.backward(rollout, state_seeds={"q": {-1: seed}}, progress=count > 100_000)
        return tape, knots, middle - begin, time.perf_counter() - middle

    gradient(_WARM_STEPS)  # loads kernels and libraries: what counts is what a horizon adds
    loaded = _peak_bytes()
    tape, knots, forward, backward = gradient(steps)
    print(tape.plan, file=sys.stderr)
    return {
        "steps": steps,
        "growth_bytes": _peak_bytes() - loaded,
        "user_bytes": 2 * knots.knots.size * np.dtype(numpy_real).itemsize,
        "plan_bytes": tape.plan.bytes,
        "forward_us": 1e6 * forward / steps,
        "backward_us": 1e6 * backward / steps,
        "gradient_norm": float(np.linalg.norm(knots.gradient.numpy())),
    }


def main() -> int:
    """Runs each horizon in a fresh process and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.long_horizon", description=__doc__)
    parser.add_argument("steps", nargs="*", type=int, default=[100, 10_000, 1_000_000])
    parser.add_argument("--budget", default="256MB")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(run(options.steps[0], options.budget)))
        return 0
    rows = []
    columns = ("steps", "memory growth", "planned", "user's knots and gradient", "forward µs/step", "backward µs/step")
    print(f"| {' | '.join(columns)} | gradient norm |")
    print("|---|---|---|---|---|---|---|")
    for steps in options.steps:
        command = [sys.executable, "-m", "tools.bench.long_horizon", str(steps), "--budget", options.budget, "--one"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        row = json.loads(done.stdout.splitlines()[-1])
        rows.append(row)
        print(
            f"| {steps} | {row['growth_bytes'] / 1e6:.1f} MB | {row['plan_bytes'] / 1e6:.1f} MB "
            f"| {row['user_bytes'] / 1e6:.1f} MB "
            f"| {row['forward_us']:.1f} | {row['backward_us']:.1f} | {row['gradient_norm']:.2e} |",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
