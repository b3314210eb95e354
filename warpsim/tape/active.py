"""The tape that launches are recorded on at this moment, for what is not handed one."""

from __future__ import annotations

import warp as wp
from warp._src import context as _warp


def active_tape() -> wp.Tape | None:
    """The tape of the innermost `with tape:`; None: nothing is recorded."""
    return _warp.runtime.tape
