"""One thread at a time in Warp, and one at a time in an engine.

Warp has one active capture, one recording tape and one table of loaded modules in the whole process, and a capture of
ours replaces its fills and copies for as long as it lasts. A launch, a copy or an allocation of another thread at that
moment would be recorded instead of made. So whatever uses Warp holds `KERNELS`; only the replay of captured calls,
which is where the time goes and which touches nothing that is shared, runs without it. Simulators of their own in
threads of their own therefore step in parallel.

The buffers of an engine belong to whoever holds its `Turn`. Whoever waits for a turn, or replays, holds no `KERNELS`;
so no two threads can wait for each other. Policies are called without a turn.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from threading import get_ident
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class KernelLock:
    """A lock that its holder may take again, and may put down for a while whatever the depth."""

    def __init__(self) -> None:
        """Free."""
        self._lock = threading.RLock()
        self._holder: int | None = None  # these two are written by the holder alone
        self._depth = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._holder = get_ident()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._holder = None
        self._lock.release()

    def without(self, function: Callable[..., T], *arguments: Any) -> T:
        """Calls a function while this thread does not hold the lock."""
        if self._holder != get_ident():
            return function(*arguments)
        depth, self._depth, self._holder = self._depth, 0, None
        for _ in range(depth):
            self._lock.release()
        try:
            return function(*arguments)
        finally:
            for _ in range(depth):
                self._lock.acquire()
            self._depth, self._holder = depth, get_ident()

    def holding(self, function: Callable[P, T]) -> Callable[P, T]:
        """The same function, called with the lock held."""

        @wraps(function)
        def held(*arguments: P.args, **named: P.kwargs) -> T:
            with self:
                return function(*arguments, **named)

        return held


KERNELS = KernelLock()
"""Held by whatever uses Warp, all over the process."""


class Turn:
    """Exclusive use of an engine, and of Warp; whoever has it may take it again."""

    def __init__(self) -> None:
        """Free."""
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            KERNELS.without(self._lock.acquire)
        KERNELS.__enter__()

    def __exit__(self, *_: object) -> None:
        KERNELS.__exit__()
        self._lock.release()
