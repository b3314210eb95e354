"""The tape that launches are recorded on at this moment, for what is not handed one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import warp as wp

_active: ContextVar[wp.Tape | None] = ContextVar("active_tape", default=None)


@contextmanager
def recording(tape: wp.Tape | None) -> Iterator[None]:
    """`with tape:`, of which `active_tape` knows; None: nothing is recorded within the block."""
    token = _active.set(tape)
    try:
        if tape is None:
            yield
        else:
            with tape:
                yield
    finally:
        _active.reset(token)


def active_tape() -> wp.Tape | None:
    """The tape of the innermost `with recording(tape):`; None: nothing is recorded."""
    return _active.get()
