"""Runs one peer on one case, in an environment that is made when first needed."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from tools.bench import mujoco_side
from tools.bench.cases import Case
from tools.bench.peers.peers import Peer

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "warpsim-bench"
"""Where peers are installed unless told otherwise."""
_INSTALL_SECONDS, _RUN_SECONDS = 1200, 3600


@dataclass(frozen=True)
class Row:
    """One system on one case."""

    case: str
    system: str
    forward: float | None = None
    """µs per step."""
    gradient: float | None = None
    """µs per step, forward pass included."""
    error: float | None = None
    """Of the gradient, relative."""
    memory: float | None = None
    """Bytes that a gradient holds per step of horizon."""
    first_call: float | None = None
    """Seconds until the first gradient is there."""
    timestep: float | None = None
    """Seconds."""
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
        print(f"installing {', '.join(peer.requirements)} in {home}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", *peer.requirements]
        found = subprocess.run(install, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False)
        if found.returncode:
            raise RuntimeError(f"not installed: {_last_line(found.stderr)}")
        done.touch()
    return python


def run_peer(peer: Peer, case: Case, folder: Path) -> Row:
    """One peer on one world of a case, with environments and compiled programs in a folder."""
    inputs = mujoco_side.make_inputs(case, mujoco_side.load(case))
    compiled = folder / "compiled"
    variables = {**os.environ, "PEER_COMPILED": str(compiled)}
    variables.pop("PYTHONPATH", None)
    with tempfile.TemporaryDirectory() as work:
        file = Path(work) / "case.npz"
        np.savez(file, model=str(case.path), q=inputs.q[0], qd=inputs.qd[0], controls=inputs.controls[0])
        try:
            command = [str(peer_python(peer, folder)), str(HERE / peer.script), str(file), *peer.options]
            found = subprocess.run(
                command, capture_output=True, text=True, timeout=_RUN_SECONDS, check=False, env=variables, cwd=work
            )
        except (RuntimeError, subprocess.SubprocessError) as error:
            return Row(case.name, peer.name, note=f"skipped: {error}")
    row = read_row(peer, case, found.returncode, found.stdout, found.stderr)
    return replace(row, first_call=longest_first_call(row, case.steps, compiled / "first_calls.json"))


def longest_first_call(row: Row, steps: int, file: Path) -> float | None:
    """Seconds of the run that compiled: the longest that was seen, since later ones find its programs on disk."""
    if row.first_call is None:
        return None
    seen = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    key = f"{row.system}; {row.case}; {steps} steps"
    seen[key] = max(row.first_call, seen.get(key, 0.0))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(seen, indent=2) + "\n", encoding="utf-8")
    return float(seen[key])


def read_row(peer: Peer, case: Case, code: int, output: str, errors: str) -> Row:
    """What a peer's script printed, as a row; a failure is one that says so."""
    lines = [line for line in output.splitlines() if line.startswith("PEER ")]
    if code or not lines:
        return Row(case.name, peer.name, note=f"failed: {_last_line(errors)}")
    report = json.loads(lines[-1].removeprefix("PEER "))
    return Row(
        case.name,
        peer.name,
        report["forward_us"],
        report["gradient_us"],
        report["gradient_error"],
        report["bytes_per_step"],
        report["first_call_seconds"],
        report["timestep"],
        report["note"],
        report["versions"],
    )


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if "Error" in line]
    return lines[-1][:200] if lines else "no message"
