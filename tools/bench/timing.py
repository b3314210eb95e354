"""Times several workloads in turn, so that noise of the machine hits all of them alike."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Workload:
    """Something to time."""

    label: str
    """Who and what, e.g. "mujoco forward"."""
    run: Callable[[], None]
    """Does the whole work once, from the same start each time, and returns when it is finished."""
    final_state: Callable[[], np.ndarray]
    """(worlds, nq + nv): q and qd at the end of the last run."""
    gradient_error: Callable[[], float] | None = None
    """Relative error of the gradient it computed against central differences of its own forward pass."""


@dataclass(frozen=True)
class Timing:
    """Wall-clock seconds of each repeat, in order."""

    samples: tuple[float, ...]

    @property
    def best(self) -> float:
        """Least disturbed repeat, s."""
        return min(self.samples)

    @property
    def median(self) -> float:
        """Typical repeat, s."""
        return statistics.median(self.samples)


def measure(workloads: Sequence[Workload], *, warmups: int = 1, repeats: int = 7) -> dict[str, Timing]:
    """Runs every workload `repeats` times, one after another in each round.

    Args:
        workloads: Timed in this order in each round; labels must differ.
        warmups: Untimed rounds first (compilation, caches, clock speed).
        repeats: Timed rounds.

    Returns:
        Timing by label.
    """
    samples: dict[str, list[float]] = {w.label: [] for w in workloads}
    if len(samples) != len(workloads):
        raise ValueError(f"labels must differ: {[w.label for w in workloads]}")
    if repeats < 1:
        raise ValueError("repeats must be at least 1")
    for _ in range(warmups):
        for workload in workloads:
            workload.run()
    collecting = gc.isenabled()
    gc.disable()  # a collection would land in one workload's time
    try:
        for _ in range(repeats):
            for workload in workloads:
                start = time.perf_counter()
                workload.run()
                samples[workload.label].append(time.perf_counter() - start)
    finally:
        if collecting:
            gc.enable()
    return {label: Timing(tuple(values)) for label, values in samples.items()}
