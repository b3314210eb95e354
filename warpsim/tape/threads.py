"""Worlds in parallel on the CPU: groups of worlds, each swept by its own graphs, on a few threads.

Replaying a graph happens outside the interpreter lock. Everything else a sweep does is short; what launches kernels
eagerly (input providers) or belongs to the caller (hooks) is called under `KERNELS`. Since worlds do not depend on one
another and parameter gradients are kept per world, the result is the same, bit for bit, whatever the number of threads.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, TypeVar

from warpsim.core.errors import InputError
from warpsim.core.host_path import on_host
from warpsim.core.kernel_lock import KERNELS
from warpsim.tape import arena as arenas
from warpsim.tape.program import Program, SplittableProgram

T = TypeVar("T")

GROUP_BYTES = 750_000
"""Intermediates of one step that a group of worlds should have: 256 humanoids on the ground in one group, ten times
what the second-level cache holds, took 2.5 times as long as in groups of 16."""


def split(program: Program, groups: int | None, threads: int) -> list[tuple[Program, range]]:
    """Divides the worlds of a program, in order; one group is the program itself.

    Args:
        program: What is to be divided.
        groups: How many groups; None for as many as keep each group's intermediates within the cache.
        threads: Least number of groups by default.

    Raises:
        InputError: If the program cannot be split, or does not run on the CPU.
    """
    whole = [(program, range(program.worlds))]
    wanted = groups
    if groups is None:
        groups = max(threads, _groups_that_fit(program, threads))
    if groups == 1:
        return whole
    if not program.device.is_cpu:
        raise InputError(f"threads and groups are for the CPU; on {program.device} worlds already run in parallel")
    if not 1 <= groups <= program.worlds:
        asked = f"threads={threads}" if wanted is None else f"groups={wanted}"
        raise InputError(f"{asked} for {program.worlds} worlds; each needs at least one world of its own")
    if not isinstance(program, SplittableProgram):
        raise InputError(f"{type(program).__name__} has no `split`, so its worlds cannot be divided among threads")
    try:
        parts = program.split(groups)
    except InputError:  # e.g. a cost around a program that cannot be divided
        if wanted is None and threads == 1:
            return whole
        raise
    ends = list(accumulate(part.worlds for part in parts))
    if ends[-1] != program.worlds:
        raise InputError(f"{type(program).__name__}.split covers {ends[-1]} of {program.worlds} worlds")
    return [(part, range(end - part.worlds, end)) for part, end in zip(parts, ends, strict=True)]


def _groups_that_fit(program: Program, threads: int) -> int:
    """Fewest groups whose intermediates fit the cache, as many for each thread; 1 where worlds cannot be divided."""
    if program.worlds == 1 or not on_host(program.device) or not isinstance(program, SplittableProgram):
        return 1
    groups = arenas.measure(program).values // GROUP_BYTES
    return min(-(-groups // threads) * threads, program.worlds)


class Team:
    """Runs one task per group, on as many threads as asked for."""

    def __init__(self, threads: int) -> None:
        """Starts no thread yet."""
        if threads < 1:
            raise InputError(f"threads={threads}; at least one is needed")
        self.threads = threads

    def run(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        """Results in the order of the tasks; raises the error of the first one that failed, in that order."""
        return KERNELS.without(self._share, tasks)

    def _share(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        waiting = deque(enumerate(tasks))
        results: dict[int, T] = {}
        errors: dict[int, Exception] = {}

        def work() -> None:
            while waiting:
                try:
                    place, task = waiting.popleft()
                except IndexError:  # another thread was quicker
                    return
                try:
                    results[place] = task()
                except Exception as error:
                    errors[place] = error

        helpers = [threading.Thread(target=work) for _ in range(min(self.threads, len(tasks)) - 1)]
        for helper in helpers:
            helper.start()
        try:
            work()
        finally:  # also when interrupted
            waiting.clear()
            for helper in helpers:
                helper.join()
        if errors:
            raise errors[min(errors)]
        return [results[place] for place in range(len(tasks))]

    def guarded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, called by one thread at a time."""
        return function if self.threads == 1 else KERNELS.holding(function)
