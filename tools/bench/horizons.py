"""Gradients over longer and longer horizons: time, memory, and error against central differences.

    python -m tools.bench.horizons [--markdown FILE] [--json FILE]

warpsim runs a humanoid and an ant on the ground under control knots every 100 steps, each horizon in a process of its
own; MJX, Brax and Newton run what of it they can, with a control at every step (their memory grows with each step in
either case). Memory is what a gradient holds by each system's own account; for warpsim the growth of the process beside
it, beyond a process that has taken a short gradient.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import mujoco
import numpy as np
import warp as wp

from tools.bench.cases import CASES
from tools.bench.differences import directional_error
from tools.bench.peers.peers import PEERS
from tools.bench.peers.run import ENVIRONMENTS, run_peer
from tools.bench.report import add_files, environment, publish
from warpsim.core.precision import numpy_real, real
from warpsim.io.mjcf import read_mjcf
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.step.program import RigidProgram
from warpsim.tape import CheckpointedTape, KnotInputs

CHAOTIC = 1e6
"""A gradient of a larger norm belongs to a motion that no difference, however short, can follow."""
STEPS = (10, 100, 1_000, 10_000, 100_000)
PEER_STEPS = (10, 100, 1_000)
PEERS_ON = {"MJX": "ant-ground", "Brax": "ant-ground", "Newton": "humanoid-ground"}
"""Peers whose reverse mode spans a rollout, each on a case that it compiles in reasonable time."""
_EVERY = 100
_WARM_STEPS = 50
_SETTLE = 2000
_DIFFERENCES = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
"""The longer the horizon, the more contacts a long step would switch."""


@dataclass(frozen=True)
class Horizon:
    """One system's gradient over one horizon."""

    system: str
    case: str
    steps: int
    forward_us: float | None = None
    """Per step."""
    gradient_us: float | None = None
    """Per step, forward pass included."""
    memory: float | None = None
    """Bytes that the gradient holds."""
    growth: float | None = None
    """Bytes by which the process grew."""
    norm: float | None = None
    """Of the gradient."""
    error: float | None = None
    """Relative, along one random direction; the best of several lengths."""
    note: str = ""


class Knots:
    """A robot that lies on the ground, and the height of its root after some steps as a function of control knots."""

    def __init__(self, case: str, budget: str) -> None:
        self.budget = budget
        path = CASES[case].path
        scene = read_mjcf(path)
        self.model = compile_model(scene)
        Derivation(self.model).run()
        self.program = RigidProgram(self.model, controls=("actuator",))
        self.start = {name: value.astype(numpy_real) for name, value in _settled(path).items()}

    def values(self, steps: int) -> np.ndarray:
        """Knots at random, (count, 1, nu)."""
        shape = (KnotInputs.count(steps, _EVERY), 1, self.model.nu)
        return (0.02 * np.random.default_rng(0).normal(size=shape)).astype(numpy_real)

    def loss(self, tape: CheckpointedTape, values: np.ndarray) -> float:
        """Forward pass alone."""
        steps = tape.plan.steps
        run = tape.forward(self.start, _knots(values), keep_states=["q"], keep_every=steps, differentiate=False)
        found = float(run.states.q.numpy()[-1, 0, 2])
        run.release()
        return found

    def gradient(self, tape: CheckpointedTape, values: np.ndarray) -> np.ndarray:
        """Forward and backward pass."""
        knots = _knots(values)
        run = tape.forward(self.start, knots)
        seed = np.zeros((1, self.model.nq), numpy_real)
        seed[0, 2] = 1.0
        tape.backward(run, state_seeds={"q": {-1: seed}})
        return knots.gradient.numpy()

    def measure(self, steps: int) -> Horizon:
        """Time, memory and error of one horizon."""
        short = CheckpointedTape(self.program, steps=_WARM_STEPS, memory=self.budget)
        self.gradient(short, self.values(_WARM_STEPS))  # loads kernels and libraries
        loaded = _peak_bytes()
        tape = CheckpointedTape(self.program, steps=steps, memory=self.budget)
        values = self.values(steps)
        gradient = self.gradient(tape, values)
        growth = _peak_bytes() - loaded
        self.loss(tape, values)  # captures
        repeats = max(1, min(20, 2_000 // steps))
        forward = _best(lambda: self.loss(tape, values), repeats)
        backward = _best(lambda: self.gradient(tape, values), repeats)
        return Horizon(
            "warpsim",
            "",
            steps,
            1e6 * forward / steps,
            1e6 * backward / steps,
            float(tape.plan.bytes),
            float(growth),
            float(np.linalg.norm(gradient)),
            directional_error(gradient, values, lambda v: self.loss(tape, v), steps=_DIFFERENCES, seed=1),
        )


def _knots(values: np.ndarray) -> KnotInputs:
    return KnotInputs("actuator", wp.array(values, dtype=real), _EVERY)


def _settled(path: Path) -> dict[str, np.ndarray]:
    """The robot at rest on the ground, by MuJoCo."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, nstep=_SETTLE)
    return {"q": data.qpos[None].copy(), "qd": data.qvel[None].copy(), "warm_start": data.qacc[None].copy()}


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _best(act: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        act()
        times.append(time.process_time() - start)
    return min(times)


def in_own_process(case: str, steps: int, budget: str) -> Horizon:
    """warpsim over one horizon."""
    command = [sys.executable, "-m", "tools.bench.horizons", "--one", case, str(steps), "--budget", budget]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return replace(Horizon(**json.loads(done.stdout.splitlines()[-1])), case=case)


def of_peer(name: str, case: str, steps: int, environments: Path) -> Horizon:
    """A peer over one horizon."""
    peer = next(p for p in PEERS if p.name == name)
    row = run_peer(peer, replace(CASES[case], steps=steps), environments)
    memory = None if row.memory is None else steps * row.memory
    return Horizon(name, case, steps, row.forward, row.gradient, memory, error=row.error, note=row.note)


def to_markdown(rows: list[Horizon], budget: str) -> str:
    """The table."""
    here = environment("tools.bench.horizons")
    lines = [
        f"`{here['command']}`",
        "",
        f"{here['processor']}, one core of {here['cores']}, processor time. warpsim under a memory budget of {budget}.",
        "*Held*: what the gradient holds by the system's own account; *grown*: how much the process grew. *Error*:",
        "against central differences of the system's own forward pass; none where either is not finite; chaotic where",
        f"the norm is beyond {CHAOTIC:.0e}, since no difference can follow such a motion.",
        "",
        "| system | case | steps | forward, µs/step | gradient, µs/step | held, MB | grown, MB | norm | error |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [row.system, row.case, f"{row.steps:,}"]
        numbers = (
            (row.forward_us, ".0f", 1.0),
            (row.gradient_us, ".0f", 1.0),
            (row.memory, ".2f", 1e-6),
            (row.growth, ".1f", 1e-6),
            (row.norm, ".1e", 1.0),
            (row.error, ".0e", 1.0),
        )
        cells += ["–" if value is None else format(unit * value, text) for value, text, unit in numbers]
        if row.norm is not None and row.norm > CHAOTIC:
            cells[-1] = "chaotic"
        lines.append("| " + " | ".join(cells) + " |")
    notes = dict.fromkeys(f"{row.system}: {row.note}." for row in rows if row.note)
    return "\n".join([*lines, "", *notes]) + "\n"


def main() -> int:
    """Runs everything and writes the reports."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.horizons", description=__doc__)
    parser.add_argument("--steps", nargs="*", type=int, default=STEPS, help="of warpsim")
    parser.add_argument("--cases", nargs="*", default=["humanoid-ground", "ant-ground"], help="of warpsim")
    parser.add_argument("--budget", default="8MB")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--environments", type=Path, default=ENVIRONMENTS, help="where peers are installed")
    add_files(parser)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(asdict(Knots(options.one[0], options.budget).measure(int(options.one[1])))))
        return 0
    rows = []
    for case in options.cases:
        rows += [in_own_process(case, steps, options.budget) for steps in options.steps]
        print(to_markdown(rows, options.budget), file=sys.stderr)
    if not options.no_peers:
        folder = options.environments.resolve()
        rows += [of_peer(name, case, steps, folder) for name, case in PEERS_ON.items() for steps in PEER_STEPS]
    text = to_markdown(rows, options.budget)
    found = {
        "environment": environment("tools.bench.horizons"),
        "budget": options.budget,
        "rows": [asdict(row) for row in rows],
    }
    publish(options, text, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
