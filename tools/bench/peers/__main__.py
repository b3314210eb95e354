"""Command line: `python -m tools.bench.peers [--markdown FILE] [--json FILE]`.

Makes one environment per set of packages under `--environments` when first needed, runs every peer on its cases, and
warpsim and MuJoCo on the same ones in the same run. A peer that cannot be installed or run is in the table with the
reason.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tools.bench import mujoco_side
from tools.bench.__main__ import run_case
from tools.bench.cases import CASES, Case
from tools.bench.peers.peers import PEERS, Peer
from tools.bench.report import Result, environment

HERE = Path(__file__).resolve().parent
_STEPS = 60
_INSTALL_SECONDS, _RUN_SECONDS = 1200, 1200


@dataclass(frozen=True)
class Row:
    """One system on one case; times in µs per step, bytes per step of horizon."""

    case: str
    system: str
    forward: float | None = None
    gradient: float | None = None
    error: float | None = None
    memory: float | None = None
    compile_seconds: float | None = None
    timestep: float | None = None
    note: str = ""
    versions: dict[str, str] = field(default_factory=dict)


def peer_python(peer: Peer, folder: Path) -> Path:
    """The interpreter of a peer's environment, made if it is not there.

    Raises:
        RuntimeError: It cannot be installed; says why.
    """
    name = hashlib.sha256("\n".join(peer.requirements).encode()).hexdigest()[:12]
    home = folder / name
    done, python = home / "installed", home / "bin" / "python"
    if not done.exists():
        print(f"installing {', '.join(peer.requirements)}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", *peer.requirements]
        found = subprocess.run(install, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False)
        if found.returncode:
            raise RuntimeError(f"not installed: {_last_line(found.stderr)}")
        done.touch()
    return python


def run_peer(peer: Peer, case: Case, folder: Path) -> Row:
    """One peer on one case."""
    inputs = mujoco_side.make_inputs(case, mujoco_side.load(case))
    with tempfile.TemporaryDirectory() as work:
        file = Path(work) / "case.npz"
        np.savez(file, model=str(case.path), q=inputs.q[0], qd=inputs.qd[0], controls=inputs.controls[0])
        try:
            command = [str(peer_python(peer, folder)), str(HERE / peer.script), str(file)]
            found = subprocess.run(command, capture_output=True, text=True, timeout=_RUN_SECONDS, check=False)
        except (RuntimeError, subprocess.SubprocessError) as error:
            return Row(case.name, peer.name, note=f"skipped: {error}")
    lines = [line for line in found.stdout.splitlines() if line.startswith("PEER ")]
    if found.returncode or not lines:
        return Row(case.name, peer.name, note=f"failed: {_last_line(found.stderr)}")
    return _row(case, peer.name, json.loads(lines[-1].removeprefix("PEER ")))


def own_rows(case: Case, result: Result) -> Iterator[Row]:
    """MuJoCo and warpsim on a case."""
    times = {m.label: m.microseconds(m.timing.best, case) for m in result.measurements}
    errors = {m.label: m.gradient_error for m in result.measurements}
    step = float(mujoco_side.load(case).opt.timestep)
    versions = environment()["versions"]
    yield Row(
        case.name,
        "warpsim",
        times["warpsim forward"],
        times["warpsim gradient"],
        errors["warpsim gradient"],
        None,
        None,
        step,
        "converged solver; memory bounded by a budget",
        {"warp-lang": versions["warp-lang"]},
    )
    yield Row(
        case.name,
        "MuJoCo",
        times["mujoco forward"],
        times["mujoco finite differences"],
        None,
        None,
        0.0,
        step,
        "one-sided finite differences of each step",
        {"mujoco": versions["mujoco"]},
    )


def to_markdown(rows: list[Row]) -> str:
    """The table."""
    here = environment()
    lines = [
        f"`{here['command'].replace('tools.bench', 'tools.bench.peers')}`",
        "",
        f"{here['processor']}, one core of {here['cores']}; {_STEPS} steps, one world, float64 where a system has it.",
        "Processor time, the best of several. *Gradient*: forward and backward of a linear function of the final",
        "coordinates, by all controls.",
        "*Error*: against central differences of the system's own forward pass, the best of five step lengths; none",
        "where gradient or differences are not finite. *First call*: of the forward pass and of the gradient,",
        "compilation included where a system keeps no compiled kernels on disk (Newton does).",
        "",
        "| case | system | step, ms | forward, µs | gradient, µs | per simulated second, ms | × warpsim | error "
        "| memory per step, kB | first call, s | note |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        own = next(r for r in rows if r.case == row.case and r.system == "warpsim")
        lines.append("| " + " | ".join(_cells(row, own)) + " |")
    return "\n".join(lines) + "\n"


def _cells(row: Row, own: Row) -> list[str]:
    def number(value: float | None, text: str) -> str:
        return "–" if value is None else format(value, text)

    second = None if row.gradient is None or not row.timestep else 1e-3 * row.gradient / row.timestep
    reference = None if own.gradient is None or not own.timestep else 1e-3 * own.gradient / own.timestep
    times = None if second is None or reference is None else second / reference
    named = ", ".join(f"{name} {version}" for name, version in row.versions.items())
    return [
        row.case,
        f"{row.system} ({named})" if named else row.system,
        number(None if row.timestep is None else 1e3 * row.timestep, ".3g"),
        number(row.forward, ".0f"),
        number(row.gradient, ".0f"),
        number(second, ".1f"),
        number(times, ".1f"),
        number(row.error, ".0e"),
        number(None if row.memory is None else row.memory / 1e3, ".1f"),
        number(row.compile_seconds, ".0f"),
        row.note,
    ]


def _row(case: Case, system: str, report: dict[str, Any]) -> Row:
    return Row(
        case.name,
        system,
        report["forward_us"],
        report["gradient_us"],
        report["gradient_error"],
        report["bytes_per_step"],
        report["compile_seconds"],
        report["timestep"],
        report["note"],
        report["versions"],
    )


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if "Error" in line]
    return lines[-1][:200] if lines else "no message"


def main() -> int:
    """Parses the command line, runs everybody and writes the reports."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.peers", description=__doc__)
    parser.add_argument("--environments", type=Path, default=Path("out/peers"), help="where peers are installed")
    parser.add_argument("--only", nargs="*", help="names of peers")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    options = parser.parse_args()
    chosen = [p for p in PEERS if options.only is None or p.name in options.only]
    rows: list[Row] = []
    for name in dict.fromkeys(name for peer in chosen for name in peer.cases):
        case = replace(CASES[name], steps=_STEPS)
        if not case.path.is_file():
            print(f"{name}: no {case.model} beside the project; skipped", file=sys.stderr)
            continue
        result = run_case(case, warmups=1, repeats=options.repeats)
        rows += own_rows(case, result)
        rows += [run_peer(peer, case, options.environments.resolve()) for peer in chosen if name in peer.cases]
    text = to_markdown(rows)
    print(text)
    content = json.dumps({"environment": environment(), "rows": [row.__dict__ for row in rows]}, indent=2) + "\n"
    for path, written in ((options.markdown, text), (options.json, content)):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(written, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
