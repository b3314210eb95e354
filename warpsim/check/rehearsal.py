"""A rehearsal for the GPU: scenes on the CPU by the path of a CUDA device, and who reads or allocates where none may.

On CUDA a host read within a capture freezes or ends it; one between replays makes the processor wait for the device.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any
from unittest import mock

import numpy as np
import torch
import warp as wp

from warpsim.core.driving import Steps
from warpsim.core.host_path import rehearsing
from warpsim.tape import diagnostics, frames
from warpsim.tape.segment import Segment
from warpsim.tape.sweep import Sweep

CAPTURE, HOT = "a capture", "the hot path"
REPORTS = (
    frames.Packed.checksum,
    diagnostics.norm,
    diagnostics.clip,
    diagnostics.finite,
    diagnostics.first_bad_state,
    diagnostics.raise_for_state,
    diagnostics.raise_for_adjoint,
    Segment.unsolved,
)
"""The tape's reports, which read on CUDA as well: checksums of inputs, the adjoint's norm, its clipping, whether states
are finite, where they are not, and which solvers did not converge. Once a segment, between replays, not in captures."""
_REPORT_CODES = frozenset(report.__code__ for report in REPORTS)
_TENSOR_READS = ("item", "tolist", "numpy", "cpu", "__float__", "__int__", "__bool__", "__index__")
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


def _in_report() -> bool:
    """Whether one of the tape's reports is on the stack: that very function, not one of its name."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code in _REPORT_CODES:
            return True
        frame = frame.f_back
    return False


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
                if place == CAPTURE or not _in_report():
                    stack = [frame for frame in traceback.extract_stack() if "warp/_src" not in frame.filename]
                    last = [frame for frame in stack if frame.filename != _OWN][-1]
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
        (wp.array, "__array_interface__", property(noted("np.asarray(array)", wp.array.__array_interface__.fget))),
        (wp, "to_torch", within("", wp.to_torch)),  # a view, which takes that interface on the CPU
        (wp.array, "assign", noted("array.assign()", wp.array.assign)),
        (allocator, "allocate", noted("an allocation", allocator.allocate)),
        (wp, "synchronize", noted("wp.synchronize()", wp.synchronize)),
        (wp, "synchronize_device", noted("wp.synchronize_device()", wp.synchronize_device)),
        (wp.ScopedCapture, "__enter__", enter),
        (wp.ScopedCapture, "__exit__", leave),
        (Sweep, "forward", throughout(HOT, Sweep.forward)),
        (Sweep, "backward", throughout(HOT, Sweep.backward)),
        (Segment, "prepare", within("", Segment.prepare)),
        *((torch.Tensor, name, noted(f"tensor.{name}()", getattr(torch.Tensor, name))) for name in _TENSOR_READS),
    ]
    with rehearsing(), ExitStack() as stack:
        for owner, name, patched in patches:
            stack.enter_context(mock.patch.object(owner, name, patched))
        yield found
