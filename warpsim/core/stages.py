"""Named stages: host functions that launch one part of a step, and a way to watch them as they are called.

`@stage` costs one check per call, and calls happen only while a step is captured or run eagerly; replays never see it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import ParamSpec

P = ParamSpec("P")

Observer = Callable[[str, Callable[[], None]], None]
"""Called with a stage's name and the act of running it; must run it exactly once."""

_observer: ContextVar[Observer | None] = ContextVar("observer", default=None)


def stage(function: Callable[P, None]) -> Callable[P, None]:
    """Marks a host function as a stage, named by where it stands, e.g. "dynamics.mass_matrix"."""
    name = _name(function.__module__, function.__name__)

    @wraps(function)
    def observed(*args: P.args, **kwargs: P.kwargs) -> None:
        if _observer.get() is None:
            function(*args, **kwargs)
        else:
            run_stage(name, lambda: function(*args, **kwargs))

    return observed


def run_stage(name: str, run: Callable[[], None]) -> None:
    """Runs a stage whose name is known only now, e.g. that of a matter: "net.forces"."""
    observer = _observer.get()
    if observer is None:
        run()
        return
    with observe(None):  # stages called by a stage are part of it
        observer(name, run)


@contextmanager
def observe(observer: Observer | None) -> Iterator[None]:
    """Has every outermost stage called within the block run by `observer`."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


@contextmanager
def after_stage(name: str, then: Callable[[], None]) -> Iterator[None]:
    """Has `then` called after every outermost stage of a name; whoever observes already goes on doing so."""
    watching = _observer.get()

    def run_both(called: str, run: Callable[[], None]) -> None:
        if watching is None:
            run()
        else:
            watching(called, run)
        if called == name:
            then()

    with observe(run_both):
        yield


def _name(module: str, function: str) -> str:
    """Innermost package and file, and the function where it is not the file's namesake."""
    parts = module.split(".")[1:][-2:]
    return ".".join(parts if parts[-1] == function else [*parts, function])
