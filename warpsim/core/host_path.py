"""Whether NumPy reaches arrays and our own loop replays captures, as on the CPU, or Warp does both, as on CUDA.

Where no GPU is at hand, `rehearsing` makes the CPU take the path of a CUDA device, to the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import warp as wp

_rehearsals = 0


@contextmanager
def rehearsing() -> Iterator[None]:
    """While open, what is made on the CPU takes the path of a CUDA device; simulators made before keep theirs."""
    global _rehearsals
    _rehearsals += 1
    try:
        yield
    finally:
        _rehearsals -= 1


def on_host(device: wp.Device) -> bool:
    """Whether a device's memory may be reached by NumPy, and its captures replayed by a loop of our own."""
    return bool(device.is_cpu) and not _rehearsals
