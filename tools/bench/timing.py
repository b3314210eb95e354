"""Times several workloads in turn, so that noise of the machine hits all of them alike.

Work on one thread is timed by the processor's clock of this process: other processes that share the cores cost waiting,
which that clock leaves out. Work on several threads is timed by the wall clock, since what it gains is waiting. A short
workload runs several times in its turn: what the one before it left in the cache, and its own first touch of memory,
would otherwise be most of what is measured.
"""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

TURN_SECONDS = 0.05
"""Least time of a workload's turn."""
_MOST_RUNS = 100


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
    threads: int = 1
    """How many threads it works on; decides which clock counts, and with which reference it is compared."""


@dataclass(frozen=True)
class Timing:
    """Seconds of one run in each repeat, in order."""

    samples: tuple[float, ...]
    """On the clock that counts."""
    wall: tuple[float, ...] = ()
    """On the wall clock."""
    threads: int = 1

    @property
    def best(self) -> float:
        """Least perturbed repeat, s."""
        return min(self.samples)

    @property
    def median(self) -> float:
        """Typical repeat, s."""
        return statistics.median(self.samples)

    def ratios(self, reference: Timing) -> list[float]:
        """Time over that of a reference, round by round: what slows a whole round down cancels."""
        return [a / b for a, b in zip(self.samples, reference.samples, strict=True)]


def measure(workloads: Sequence[Workload], *, warmups: int = 1, repeats: int = 7) -> dict[str, Timing]:
    """Runs every workload `repeats` times, one after another in each round.

    Args:
        workloads: Timed in this order in each round; labels must differ.
        warmups: Untimed rounds first (compilation, caches, clock speed); one more tells how long a run takes.
        repeats: Timed rounds.

    Returns:
        Timing by label.
    """
    samples: dict[str, list[tuple[float, float]]] = {w.label: [] for w in workloads}
    if len(samples) != len(workloads):
        raise ValueError(f"labels must differ: {[w.label for w in workloads]}")
    if repeats < 1:
        raise ValueError("repeats must be at least 1")
    for _ in range(warmups):
        for workload in workloads:
            workload.run()
    runs = {w.label: _runs_in_a_turn(w) for w in workloads}
    collecting = gc.isenabled()
    gc.disable()  # a collection would land in one workload's time
    try:
        for _ in range(repeats):
            for workload in workloads:
                count = runs[workload.label]
                wall, cpu = time.perf_counter(), time.process_time()
                for _ in range(count):
                    workload.run()
                spent = (time.perf_counter() - wall, time.process_time() - cpu)
                samples[workload.label].append((spent[0] / count, spent[1] / count))
    finally:
        if collecting:
            gc.enable()
    found = {}
    for workload in workloads:
        wall_times, cpu_times = zip(*samples[workload.label], strict=True)
        found[workload.label] = Timing(cpu_times if workload.threads == 1 else wall_times, wall_times, workload.threads)
    return found


def _runs_in_a_turn(workload: Workload) -> int:
    """How often a workload runs in its turn."""
    start = time.process_time()
    workload.run()
    spent = max(time.process_time() - start, TURN_SECONDS / _MOST_RUNS)
    return math.ceil(TURN_SECONDS / spent)
