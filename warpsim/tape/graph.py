"""Captured work: launches recorded once and replayed for ever, slot by slot or all at once.

On CUDA this is Warp's own graph. On the CPU Warp's replay looks every kernel up by name and patches every pointer of
every argument again, about 0.3 µs a launch, a quarter of a humanoid's whole step; and its recording walks all arrays of
all structs, a millisecond a launch. So on the CPU a capture of Warp is watched while it records, and what it was handed
is replayed by a loop of our own (`calls.py`), at the cost of the calls. If it holds an operation that the loop does not
know, the work is captured again and replayed by Warp alone; and so is everything under a version of Warp whose captures
nobody has tried to watch.

The slots of a segment launch the same kernels on arrays that lie at equal distances. So three of them are captured, the
first two and the last; if every word of the last is where the step from the first to the second leads, all others are
too, and one table serves any run of slots. Otherwise each run of slots is captured in full. Of a group of worlds that
launches what another one does, one slot is enough: its distances are those of the other.

The bits are the same in every case, since the same compiled kernels run on the same arguments in the same order.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Protocol

import numpy as np
import warp as wp

from warpsim.core.host_path import on_host
from warpsim.core.kernel_lock import KERNELS
from warpsim.core.warp_internals import is_tried
from warpsim.tape.calls import Call, CallTable, Recording
from warpsim.tape.crew import Crew
from warpsim.tape.self_check import check_warp

_LOG = logging.getLogger(__name__)
SAMPLES = 3
"""Slots that are captured where all are alike: the first two, and the last as a check."""

Replay = Callable[[], None]
SlotStep = Callable[[int], None]
"""Launches the work of one slot."""


class SlotGraph(Protocol):
    """The work of some slots, ready to be replayed."""

    def prepare(self, first: int, count: int) -> None:
        """Captures what a run of slots needs and is not there yet; from one thread only."""

    def run(self, first: int, count: int) -> None:
        """Replays slots `first` … `first` + `count` - 1, in this graph's order."""


@KERNELS.holding
def capture(device: wp.Device, work: Callable[[], None]) -> Replay:
    """Records what `work` launches, without running it, and returns the act of running it.

    Args:
        device: Where `work` launches.
        work: Launches kernels, copies and clears arrays; called once, or twice where our own replay does not suffice.
    """
    check_warp(device)
    table = _table(device, lambda _: work(), range(1)) if _has_tables(device) else None
    if table is not None:
        return partial(table.run, 0, 1)
    with wp.ScopedCapture(device=device) as captured:
        work()
    return partial(KERNELS.holding(wp.capture_launch), captured.graph)


@KERNELS.holding
def capture_slots(
    device: wp.Device,
    steps: Mapping[SlotStep, range],
    *,
    lengths: Iterable[int],
    like: Sequence[SlotGraph] = (),
    crew: Crew | None = None,
) -> tuple[SlotGraph, ...]:
    """One graph for each of the steps, over all slots of a segment.

    Args:
        device: Where the steps launch.
        steps: What to do in a slot, and all slots in the order to be kept; a step may need what those before it have
            left in its slot.
        lengths: Runs of slots, counted from slot 0, that get one graph each if they must be captured in full.
        like: Graphs of the same steps over as many worlds, whose arrays lie elsewhere, at the same distances.
        crew: Threads that share divided launches.
    """
    check_warp(device)
    tables = _tables(device, steps, like, crew) if like else None
    tables = tables or _tables(device, steps, (), crew)
    count = max((len(slots) for slots in steps.values()), default=0)
    if tables is not None:
        _LOG.info("captured %d graphs of %d slots, made from samples", len(steps), count)
        return tables
    known = frozenset(lengths)
    _LOG.info("slots differ or need Warp's own graphs: %d graphs of %d slots are captured in full", len(steps), count)
    return tuple(_Runs(device, step, slots.step, known) for step, slots in steps.items())


def eager_slots(steps: Mapping[SlotStep, range]) -> tuple[SlotGraph, ...]:
    """The same without capture: a replay launches everything again."""
    return tuple(_Eager(step, slots.step) for step, slots in steps.items())


class _Eager:
    """Steps that are launched each time."""

    def __init__(self, step: SlotStep, order: int) -> None:
        self._step = step
        self._order = order

    def prepare(self, first: int, count: int) -> None:
        """Nothing to prepare."""

    def run(self, first: int, count: int) -> None:
        for slot in range(first, first + count)[:: self._order]:
            self._step(slot)


class _Runs:
    """Runs of slots captured in full: those of known lengths from slot 0 on as one graph each, others slot by slot."""

    def __init__(self, device: wp.Device, step: SlotStep, order: int, lengths: frozenset[int]) -> None:
        self._device = device
        self._work = _Eager(step, order)
        self._order = order
        self._lengths = lengths
        self._graphs: dict[tuple[int, int], Replay] = {}

    def prepare(self, first: int, count: int) -> None:
        for run in self._runs(first, count):
            if run not in self._graphs:
                self._graphs[run] = capture(self._device, partial(self._work.run, *run))

    def run(self, first: int, count: int) -> None:
        for run in self._runs(first, count)[:: self._order]:
            self._graphs[run]()

    def _runs(self, first: int, count: int) -> list[tuple[int, int]]:
        if first == 0 and count in self._lengths:
            return [(0, count)]
        return [(slot, 1) for slot in range(first, first + count)]


def _tables(
    device: wp.Device, steps: Mapping[SlotStep, range], like: Sequence[SlotGraph], crew: Crew | None
) -> tuple[CallTable, ...] | None:
    """A table for each of the steps, or None if one of them cannot have one or is not like the one it should be."""
    found = []
    for i, (step, slots) in enumerate(steps.items()):
        known = like[i] if like else None
        if not _has_tables(device) or not (known is None or isinstance(known, CallTable)):
            return None
        table = _table(device, step, slots, known, crew)
        if table is None:
            return None
        found.append(table)
    return tuple(found)


def _has_tables(device: wp.Device) -> bool:
    """Whether captures can be replayed by our own loop."""
    return on_host(device) and is_tried()


def _table(
    device: wp.Device, step: SlotStep, slots: range, like: CallTable | None = None, crew: Crew | None = None
) -> CallTable | None:
    """A table of all slots, or None if they are not alike or do what only Warp can replay."""
    recording = Recording()
    samples = sorted({min(slots), min(min(slots) + 1, max(slots)), max(slots)}) if like is None else [min(slots)]
    ends = [0]

    def work() -> None:
        for slot in samples:
            step(slot)
            ends.append(len(recording.calls))

    if not recording.capture(device, work):
        return None
    sampled = [recording.calls[start:end] for start, end in pairwise(ends)]
    strides = _strides(samples, sampled) if like is None else like.strides_for(sampled[0], slots)
    return None if strides is None else CallTable(device, sampled[0], strides, slots, recording.alive, crew)


def _strides(samples: Sequence[int], sampled: Sequence[list[Call]]) -> list[np.ndarray] | None:
    """What each word of each call gains from slot to slot, or None if the slots are not alike."""
    forms = [[call.form for call in calls] for calls in sampled]
    if any(form != forms[0] for form in forms):
        return None
    first, second, last = sampled[0], sampled[min(1, len(sampled) - 1)], sampled[-1]
    strides = [b.words - a.words for a, b in zip(first, second, strict=True)]
    distance = samples[-1] - samples[0]
    alike = all(
        np.array_equal(a.words + distance * stride, b.words) for a, b, stride in zip(first, last, strides, strict=True)
    )
    return strides if alike else None
