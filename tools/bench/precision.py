"""float32 against float64: error of final states and gradients over the benchmark's cases.

    python -m tools.bench.precision [CASE …] [--steps 200] [--json FILE] [--markdown FILE]

Each precision is a process of its own. The gradient is that of a random linear function of the final coordinates, by
the controls of all steps.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from tools.bench import mujoco_side
from tools.bench.cases import CASES
from tools.bench.report import add_files, environment, publish
from tools.bench.warpsim_side import Rollout


@dataclass(frozen=True)
class Error:
    """One case.

    Attributes:
        case: Its name.
        steps: Of the rollout.
        worlds: Stepped together.
        state: Largest deviation of the final q and qd over the largest of these.
        gradient: Norm of the gradient's deviation over its norm; NaN where there are no controls.
        problem: Why there are no figures; "": there are.
    """

    case: str
    steps: int
    worlds: int
    state: float = float("nan")
    gradient: float = float("nan")
    problem: str = ""


def side(name: str, steps: int, target: Path) -> None:
    """Final state and gradient of a case in the precision of this process."""
    case = CASES[name]
    case = replace(case, steps=min(case.steps, steps))
    rollout = Rollout(case, mujoco_side.make_inputs(case, mujoco_side.load(case)))
    rollout.differentiate()
    gradient = np.zeros(0) if rollout.gradient is None else rollout.gradient
    np.savez(target, state=rollout.final, gradient=gradient, steps=case.steps, worlds=case.worlds)


def compared(name: str, single: dict[str, np.ndarray], double: dict[str, np.ndarray]) -> Error:
    """Errors of a case's two results."""
    state = np.abs(single["state"] - double["state"]).max() / np.abs(double["state"]).max()
    gradient = float("nan")
    if double["gradient"].size:
        gradient = np.linalg.norm(single["gradient"] - double["gradient"]) / np.linalg.norm(double["gradient"])
    return Error(name, int(double["steps"]), int(double["worlds"]), float(state), float(gradient))


def measured(name: str, steps: int, folder: Path) -> Error:
    """A case in both precisions."""
    case = CASES[name]
    if not case.path.is_file():
        return Error(name, case.steps, case.worlds, problem=f"no {case.model} beside the project")
    found = []
    for precision in ("float32", "float64"):
        target = folder / f"{precision}.npz"
        command = [sys.executable, "-m", "tools.bench.precision", "--side", name, str(steps), str(target)]
        ran = subprocess.run(
            command, env={**os.environ, "WARPSIM_PRECISION": precision}, capture_output=True, text=True, check=False
        )
        if ran.returncode:
            return Error(name, case.steps, case.worlds, problem=f"{precision}: {ran.stderr.strip().splitlines()[-1]}")
        with np.load(target) as data:
            found.append(dict(data))
    return compared(name, *found)


def to_markdown(rows: Sequence[Error]) -> str:
    """The table."""
    here = environment("tools.bench.precision")
    lines = [
        "# float32 against float64",
        "",
        f"`{here['command']}`",
        "",
        "Error of float32, relative to float64: of the final state the largest, of the gradient by all controls the "
        "norm. With contact small differences grow, so that the error is the motion's as much as the number's.",
        "",
        "| case | worlds | steps | state | gradient |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        figures = f"{row.state:.1e} | " + ("–" if np.isnan(row.gradient) else f"{row.gradient:.1e}")
        lines.append(f"| {row.case} | {row.worlds} | {row.steps} | {row.problem + ' |' if row.problem else figures} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Measures and reports."""
    if sys.argv[1:2] == ["--side"]:
        side(sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
        return 0
    parser = argparse.ArgumentParser(prog="python -m tools.bench.precision", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)} (default: all)")
    parser.add_argument("--steps", type=int, default=200, help="at most")
    add_files(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [measured(name, options.steps, Path(folder)) for name in options.cases or CASES]
    found = {"environment": environment("tools.bench.precision"), "rows": [asdict(row) for row in rows]}
    publish(options, to_markdown(rows), json.loads(json.dumps(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
