"""What every peer's script does alike: read the case, time forward passes and gradients, check the gradient, say so.

Runs inside the peer's environment, which has NumPy and the peer but not this project; `python adapter_x.py case.npz`
prints one line of JSON. A script defines a `Simulation` and calls `main`.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any, Protocol

import numpy as np

STEPS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
"""Lengths of central differences; the best counts, as for every system in the table."""


class Simulation(Protocol):
    """A case compiled by a peer. The loss is a fixed linear function of the final state, chosen by the peer's script.

    Attributes:
        note: What had to be changed for the peer to run the case.
        timestep: Seconds per step.
        memory: Bytes per step that a gradient holds, if the peer can tell; else None.
    """

    note: str
    timestep: float
    memory: float | None

    def loss(self, controls: np.ndarray) -> float:
        """Forward pass under controls (steps, nu)."""

    def gradient(self, controls: np.ndarray) -> np.ndarray:
        """dloss/dcontrols, (steps, nu)."""


def main(make: Callable[[Mapping[str, Any]], Simulation], packages: tuple[str, ...]) -> None:
    """Runs one case.

    Args:
        make: Compiles the case, given what the file holds: `model` (path), `q`, `qd`, `controls` (steps, nu).
        packages: Whose versions are reported.
    """
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[0]})  # one core, so that processor time is comparable
    with np.load(sys.argv[1]) as file:
        case = {name: file[name] for name in file.files}
    case["model"] = str(case["model"])
    controls = np.asarray(case["controls"], float)
    begin = time.process_time()
    simulation = make(case)
    simulation.loss(controls)
    simulation.gradient(controls)
    first_call = time.process_time() - begin
    forward = _best(lambda: simulation.loss(controls))
    gradient = _best(lambda: simulation.gradient(controls))
    report = {
        "forward_us": 1e6 * forward / len(controls),
        "gradient_us": 1e6 * gradient / len(controls),
        "gradient_error": _gradient_error(simulation, controls),
        "first_call_seconds": first_call,
        "bytes_per_step": simulation.memory,
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "timestep": simulation.timestep,
        "note": simulation.note,
        "versions": {name: metadata.version(name) for name in packages},
    }
    print("PEER " + json.dumps(report))


def _seconds(act: Callable[[], Any]) -> float:
    start = time.process_time()
    act()
    return time.process_time() - start


def _best(act: Callable[[], Any], repeats: int = 5) -> float:
    return min(_seconds(act) for _ in range(repeats))


def resident() -> float:
    """Bytes that this process has in memory now."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return float(int(file.read().split()[1]) * resource.getpagesize())


def _gradient_error(simulation: Simulation, controls: np.ndarray) -> float | None:
    """Relative error along one random direction against central differences of the peer's own forward pass."""
    direction = np.random.default_rng(12).normal(size=controls.shape)
    value = float((np.asarray(simulation.gradient(controls)) * direction).sum())
    errors = []
    for step in STEPS:
        ahead, behind = (simulation.loss(controls + sign * step * direction) for sign in (1.0, -1.0))
        estimate = (ahead - behind) / (2 * step)
        errors.append(abs(value - estimate) / max(abs(value), abs(estimate), 1e-300))
    found = float(np.nanmin(errors)) if np.isfinite(errors).any() else float("nan")
    return found if np.isfinite(found) else None
