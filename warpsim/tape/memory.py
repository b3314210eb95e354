"""`Memory`: how much memory a differentiated rollout may take, and where its checkpoints live."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from warpsim.core.errors import InputError, whole_number
from warpsim.tape import storage as stores
from warpsim.tape.budget import check_type
from warpsim.tape.journal import Resumable
from warpsim.tape.schedule import Schedule


@dataclass(frozen=True)
class Memory:
    """What the checkpoints and intermediates of a rollout may take; gradients have the same bits whatever is chosen.

    Wherever one is asked for, a budget alone will do: `memory="64MB"` means `memory=Memory("64MB")`.

    Attributes:
        budget: Maximum for one open rollout, beyond the program's own memory and the caller's arrays (kept
            trajectories, inputs, gradients): bytes, a size such as "512MB", or a share such as "50%" of what is free.
            None: 128 MB where that stores the rollout in full, else what fits the cache.
        segment: K, steps per segment; None: all, if they fit the budget, else what suits the budget and the cache.
        schedule: `FullTape()`, `AllStarts()`, `Revolve(count)` or `Windows(length)`; the last one truncates the
            gradient. None: the cheapest that fits.
        storage: Where checkpoints live: "device", "host", "disk" (temporary files), or `Resumable(directory)` for files
            from which a killed backward pass goes on when the same calls are made again.
    """

    budget: int | float | str | None = None
    segment: int | None = None
    schedule: Schedule | None = None
    storage: str | Resumable = "device"

    def __post_init__(self) -> None:
        if self.budget is not None:
            check_type(self.budget)
        if self.segment is not None:
            whole_number("segment", self.segment)
        if self.schedule is not None and not isinstance(self.schedule, Schedule):
            raise InputError(
                f"schedule={self.schedule!r}; give FullTape(), AllStarts(), Revolve(count) or Windows(length), from "
                "warpsim.tape"
            )
        if not isinstance(self.storage, Resumable) and self.storage not in stores.KINDS:
            raise InputError(f"storage={self.storage!r}; use one of {', '.join(stores.KINDS)}, or Resumable(directory)")


_ANY = Memory()

MemoryLike = Memory | int | float | str | None
"""A `Memory`, or its budget alone; None: what suits the machine."""


def memory_of(given: MemoryLike) -> Memory:
    """What a caller gave as `memory=`."""
    if given is None:
        return _ANY
    if isinstance(given, Memory):
        return given
    wrong: Any = given
    if not isinstance(wrong, (int, float, str)) or isinstance(wrong, bool):
        raise InputError(
            f"memory={wrong!r}; write a budget such as '512MB', '50%' or a number of bytes, or a Memory(…), from "
            "warpsim.tape"
        )
    return Memory(given)
