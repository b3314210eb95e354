"""Runs one peer on one case, in an environment that is made when first needed."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tools.bench import mujoco_side
from tools.bench.cases import Case
from tools.bench.peers.peers import Peer

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "warpsim-bench"
"""Where peers are installed unless told otherwise."""
_INSTALL_SECONDS, _RUN_SECONDS = 1200, 1200


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


def run_peer(peer: Peer, case: Case, folder: Path, *, compiled: Path | None = None) -> Row:
    """One peer on one world of a case.

    Args:
        peer: Who.
        case: What.
        folder: Of environments.
        compiled: Where peers in JAX keep what they compile; without it each run compiles, as its first call shows.
    """
    inputs = mujoco_side.make_inputs(case, mujoco_side.load(case))
    variables = dict(os.environ) if compiled is None else {**os.environ, "PEER_COMPILED": str(compiled)}
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
    return read_row(peer, case, found.returncode, found.stdout, found.stderr)


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
