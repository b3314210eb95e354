"""A standing team of threads that make the calls of one replay together."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import cache

from warpsim.core.errors import InputError


class Crew:
    """As many threads as members, the caller's own among them, for work that releases the interpreter lock.

    Attributes:
        size: Members.
    """

    def __init__(self, size: int) -> None:
        """Starts the threads; they end with the process."""
        self.size = size
        self._one_at_a_time = threading.Lock()
        self._begin = [threading.Semaphore(0) for _ in range(size - 1)]
        self._done = threading.Semaphore(0)
        self._task: Callable[[int], None] = lambda member: None
        for member in range(1, size):
            threading.Thread(target=self._serve, args=(member,), daemon=True, name=f"warpsim-crew-{member}").start()

    def run(self, task: Callable[[int], None]) -> None:
        """Calls `task` with 0 … size - 1 at the same time, and waits for all of them."""
        with self._one_at_a_time:
            self._task = task
            for begin in self._begin:
                begin.release()
            try:
                task(0)
            finally:
                for _ in self._begin:
                    self._done.acquire()

    def _serve(self, member: int) -> None:
        while True:
            self._begin[member - 1].acquire()
            try:
                self._task(member)
            finally:
                self._done.release()


@cache
def crew_of(size: int) -> Crew:
    """The process's crew of a size.

    Raises:
        InputError: For more members than cores: they wait for one another by spinning.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not 1 <= size <= cores:
        raise InputError(f"threads={size} for one world; this process has {cores} cores, give at most as many")
    return Crew(size)
