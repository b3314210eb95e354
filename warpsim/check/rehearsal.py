"""A rehearsal for the GPU: scenes on the CPU by the path of a CUDA device, and who reads or allocates where none may.

On CUDA a host read within a capture freezes or ends it; one between replays makes the processor wait for the device.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
import warp as wp

from warpsim.core.driving import Steps
from warpsim.core.host_path import rehearsing
from warpsim.tape.segment import Segment
from warpsim.tape.sweep import Sweep

CAPTURE, HOT = "a capture", "the hot path"
REPORTS = (
    "checksum",
    "norm",
    "finite",
    "clip",
    "_over_slots",
    "raise_for_state",
    "raise_for_adjoint",
    "first_bad_state",
)
"""Functions of the tape that read what they report, once a segment, between replays; never within a capture."""
_OWN = __file__


@dataclass(frozen=True)
class HostAccess:
    """A read, an allocation or a wait of the host where a device should not be waited for.

    Attributes:
        place: `CAPTURE` or `HOT`.
        what: The call.
        where: File, line and function that made it.
    """

    place: str
    what: str
    where: str

    def __str__(self) -> str:
        return f"{self.what} in {self.place}: {self.where}"


class _Places(threading.local):
    """Where each thread is: the innermost place last; "" for work that may do anything."""

    def __init__(self) -> None:
        self.stack: list[str] = []


@contextmanager
def rehearsal() -> Iterator[list[HostAccess]]:
    """While open, simulators take the path of a CUDA device; the list receives what the host does where it should not.

    `array.numpy()` is a copy, as on CUDA: who writes to it as if it were the array gets other results than without.
    """
    found: list[HostAccess] = []
    places = _Places()

    def noted(what: str, call: Callable[..., Any], made: Callable[[Any], Any] = lambda x: x) -> Callable[..., Any]:
        def watched(*arguments: Any, **options: Any) -> Any:
            place = places.stack[-1] if places.stack else ""
            if place:
                frames = [frame for frame in traceback.extract_stack() if "warp/_src" not in frame.filename]
                frames = [frame for frame in frames if frame.filename != _OWN]
                if place == CAPTURE or not any(frame.name in REPORTS for frame in frames):
                    last = frames[-1]
                    found.append(HostAccess(place, what, f"{last.filename}:{last.lineno} ({last.name})"))
            places.stack.append("")  # what it calls in turn is the same access
            try:
                return made(call(*arguments, **options))
            finally:
                places.stack.pop()

        return watched

    def within(place: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def placed(*arguments: Any, **options: Any) -> Any:
            places.stack.append(place)
            try:
                return call(*arguments, **options)
            finally:
                places.stack.pop()

        return placed

    def throughout(place: str, steps: Callable[..., Steps[Any]]) -> Callable[..., Steps[Any]]:
        def placed(*arguments: Any, **options: Any) -> Steps[Any]:
            places.stack.append(place)
            try:
                return (yield from steps(*arguments, **options))
            finally:
                places.stack.pop()

        return placed

    def enter(capture: Any) -> Any:
        places.stack.append("")
        entered = opened(capture)
        places.stack[-1] = CAPTURE
        return entered

    def leave(capture: Any, *error: Any) -> Any:
        places.stack[-1] = ""
        try:
            return closed(capture, *error)
        finally:
            places.stack.pop()

    opened, closed = wp.ScopedCapture.__enter__, wp.ScopedCapture.__exit__
    allocator = type(wp.get_device("cpu").get_allocator())
    patches: list[tuple[Any, str, Any]] = [
        (wp.array, "numpy", noted("array.numpy()", wp.array.numpy, np.array)),
        (wp.array, "list", noted("array.list()", wp.array.list)),
        (wp.array, "assign", noted("array.assign()", wp.array.assign)),
        (allocator, "allocate", noted("an allocation", allocator.allocate)),
        (wp, "synchronize", noted("wp.synchronize()", wp.synchronize)),
        (wp, "synchronize_device", noted("wp.synchronize_device()", wp.synchronize_device)),
        (wp.ScopedCapture, "__enter__", enter),
        (wp.ScopedCapture, "__exit__", leave),
        (Sweep, "forward", throughout(HOT, Sweep.forward)),
        (Sweep, "backward", throughout(HOT, Sweep.backward)),
        (Segment, "prepare", within("", Segment.prepare)),
    ]
    with rehearsing(), ExitStack() as stack:
        for owner, name, patched in patches:
            stack.enter_context(mock.patch.object(owner, name, patched))
        yield found
