"""Work that says what it wants called, and one loop that calls it.

A search, a rollout or a sweep over segments is written as a generator: it yields calls without arguments, is sent what
they return, and returns its result. While a call runs, the generator that asked for it is not on the stack; so a search
within a task within a command is no deeper than the one call it waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")

Steps = Generator[Callable[[], Any], Any, T]
"""Yields calls, receives what they return, or what they raise where it asked for them, and ends with a T."""


def ask(function: Callable[..., T], *arguments: Any) -> Steps[T]:
    """A single call as steps."""
    return (yield partial(function, *arguments))


def drive(steps: Steps[T]) -> T:
    """Makes the calls that `steps` asks for, one after the other; what it returns.

    What a call raises, Ctrl-C included, is raised where it was asked for.
    """
    answer: Any = None
    failure: BaseException | None = None
    try:
        while True:
            call = steps.send(answer) if failure is None else steps.throw(failure)
            answer = failure = None
            try:
                answer = call()
            except BaseException as error:
                failure = error
    except StopIteration as end:
        return end.value
    finally:
        del failure, answer  # an error's traceback holds this frame
