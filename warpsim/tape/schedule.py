"""How a rollout is cut into segments and which of their starts are kept: decided, and printable, before anything runs.

All schedules are one rule with different numbers. N steps are cut into segments of K, one of what is left over; up to S
segment starts are kept as checkpoints, placed by `revolve`. Keeping everything is K = N. Keeping all starts is S =
number of segments: each step but those of the last segment, which the forward pass records at once, is computed twice.
Fewer checkpoints cost more recomputation, at the optimal rate.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property

from warpsim.core.errors import InputError
from warpsim.tape import revolve
from warpsim.tape.budget import readable
from warpsim.tape.footprint import SNAPSHOT_BYTES, Footprint
from warpsim.tape.storage import RESIDENT_BYTES

LARGEST_BLOCK = 2**31 - 1
"""Bytes of one block of memory: Warp counts in 32 bits."""
KEPT_BYTES = 128_000_000
"""What a rollout may take by default. One that fits is kept whole: its slots come out of memory instead of the cache
then, which costs less than another forward pass."""

WORTH_KEEPING = 4
"""A rollout at most this many times as long as what the budget can hold is cut into segments as long as that, and its
last one computed once; of a longer rollout that would save little for much memory."""

_SPARE = 64
"""The share of a budget that long segments leave to what a process takes beside them: pages in part used, lists."""

CACHE_BYTES = 8_000_000
"""What the slots of a segment fit into, in each group of worlds, where they save nothing by being more."""

MAXIMUM_CAPTURED_SLOTS = 128
"""The most slots of a segment where each must be captured, which takes a millisecond a launch: on CUDA, and of programs
that do more than launch, copy and clear."""

MAXIMUM_SLOTS = 2048
"""Slots of a segment where the rollout is cut: what surrounds a segment costs about a tenth of a millisecond whatever
its length, a hundred steps of a small robot; beyond this it is no longer felt, and the cache is."""


class Schedule(ABC):
    """How much is kept; see `FullTape`, `AllStarts`, `Revolve` and `Windows`."""

    @property
    def window(self) -> int | None:
        """Steps between cuts of the adjoint, or None for none."""
        return None

    def slots(self, steps: int, preferred: int) -> int:
        """K for a rollout of `steps`, given the K that the caller or the cache prefers."""
        return min(preferred, steps)

    @abstractmethod
    def snapshots(self, segments: int) -> int:
        """How many segment starts are kept at most, the initial state included."""


@dataclass(frozen=True)
class FullTape(Schedule):
    """Keep everything: one slot per step, nothing is computed twice."""

    def slots(self, steps: int, preferred: int) -> int:
        """As many as there are steps."""
        return steps

    def snapshots(self, segments: int) -> int:
        """Only the initial state."""
        return 1


@dataclass(frozen=True)
class AllStarts(Schedule):
    """Keep the start of every segment: each step but those of the last segment is computed twice."""

    def snapshots(self, segments: int) -> int:
        """All of them."""
        return segments


@dataclass(frozen=True)
class Revolve(Schedule):
    """Keep at most `count` segment starts, the initial one included, placed so that least is recomputed."""

    count: int

    def snapshots(self, segments: int) -> int:
        """At most `count`."""
        return min(self.count, segments)


@dataclass(frozen=True)
class Windows(Schedule):
    """Truncated gradients: adjoints do not cross the boundaries of windows of `length` steps.

    The seed of a boundary state still flows into the window that ends there. For short-horizon learning, where adjoints
    through many contacts would explode. The gradient is then deliberately not that of the whole rollout.
    """

    length: int

    @property
    def window(self) -> int | None:
        """`length`."""
        return self.length

    def slots(self, steps: int, preferred: int) -> int:
        """At most one window."""
        return min(preferred, steps, self.length)

    def snapshots(self, segments: int) -> int:
        """All segment starts."""
        return segments


@dataclass(frozen=True, slots=True)
class Span:
    """The steps `start` … `start` + `count` - 1 of segment `segment`."""

    segment: int
    start: int
    count: int


@dataclass(frozen=True)
class Plan:
    """A schedule with its numbers, ready to be printed or asserted.

    Attributes:
        steps: N.
        slots: K, the most steps in a segment.
        first: Steps of the first segment. Where K was chosen for speed what is left over comes first, so that the last
            segment is long; where the caller chose it, and within windows, cuts are at its multiples.
        snapshots: S, the most segment starts kept at a time.
        window: Steps between cuts of the adjoint, or None.
        storage: Where checkpoints live: "device", "host" or "disk".
        memory: Bytes by kind; of checkpoints on disk, what stays in memory.
        disk_bytes: Bytes of checkpoints on disk.
    """

    steps: int
    slots: int
    first: int
    snapshots: int
    window: int | None
    storage: str
    memory: dict[str, int]
    disk_bytes: int

    @cached_property
    def segments(self) -> int:
        """Number of segments."""
        return _segments(self.steps, self.slots, self.window)

    @cached_property
    def lengths(self) -> set[int]:
        """All lengths, in steps, that segments have."""
        window = self.window
        if window is None:
            return {self.first, self.slots, self.span(self.segments - 1).count}
        found = {min(self.slots, window), (window % self.slots) or self.slots}
        rest = self.steps % window
        if rest:
            found |= {min(self.slots, rest), (rest % self.slots) or self.slots}
        return {length for length in found if length <= self.steps}

    @property
    def cuts(self) -> tuple[int | None, ...]:
        """Where segments begin and how many starts are kept: what two plans of the same run must share."""
        return self.steps, self.slots, self.first, self.snapshots, self.window

    @property
    def bytes(self) -> int:
        """Memory needed in all, beyond the program's own."""
        return sum(self.memory.values())

    @property
    def segment_advances(self) -> int:
        """Segments stepped forward without recording, the forward pass included."""
        return revolve.advances(self.segments, self.snapshots)

    @property
    def forward_evaluations(self) -> float:
        """Forward evaluations per step for one gradient, recorded ones included; with windows an upper bound."""
        shorter = (self.slots - self.first) * revolve.first_advances(self.segments, self.snapshots)
        return 1.0 + (self.segment_advances * self.slots - shorter) / self.steps

    def span(self, segment: int) -> Span:
        """Which steps a segment covers."""
        window = self.window
        if window is None:
            end = min(self.first + segment * self.slots, self.steps)
            start = self.first + (segment - 1) * self.slots if segment else 0
            return Span(segment, start, end - start)
        per_window = -(-window // self.slots)
        turn, part = divmod(segment, per_window)
        start = turn * window + part * self.slots
        return Span(segment, start, min(self.slots, (turn + 1) * window - start, self.steps - start))

    def segment_of(self, step: int) -> int:
        """The segment that takes step `step`."""
        window = self.window
        if window is None:
            return (step + self.slots - self.first) // self.slots
        turn, rest = divmod(step, window)
        return turn * -(-window // self.slots) + rest // self.slots

    def cut_at(self, step: int) -> bool:
        """Whether the adjoint of the state at this step stops there, between two windows."""
        return self.window is not None and step % self.window == 0 and 0 < step < self.steps

    def __str__(self) -> str:
        kept = "all" if self.snapshots == self.segments else f"{self.snapshots} at a time"
        cuts = f"{self.segments} segments of {self.slots}"
        cuts += f", the first of {self.first}" if self.first < self.slots else ""
        cut = f", adjoint cut every {self.window} steps" if self.window else ""
        lines = [
            f"{self.steps} steps in {cuts}; segment starts kept: {kept}{cut}",
            f"forward evaluations per step: {self.forward_evaluations:.3f} (1 recorded, the others plain)",
        ]
        lines += [f"  {kind:<24}{readable(nbytes):>12}" for kind, nbytes in self.memory.items()]
        lines.append(f"  {'in all':<24}{readable(self.bytes):>12}")
        if self.disk_bytes:
            lines.append(f"  {'checkpoints on disk':<24}{readable(self.disk_bytes):>12}")
        return "\n".join(lines)


def make_plan(
    footprint: Footprint,
    steps: int,
    *,
    schedule: Schedule | None = None,
    segment: int | None = None,
    budget: int | None = None,
    storage: str = "device",
) -> Plan:
    """Chooses K and the number of checkpoints.

    Args:
        footprint: What one step costs.
        steps: N.
        schedule: What to keep; by default everything if it fits, else all segment starts, else as many as fit. Without
            a budget, what fits `KEPT_BYTES`.
        segment: K; by default as many steps as fit the budget, where that saves much, or else the cache. A rollout is
            then cut, even if all of it would fit.
        budget: Maximum bytes to use, beyond the program's own.
        storage: Where checkpoints live; those on disk do not count. Anywhere but on the device means that there are to
            be checkpoints, so the rollout is cut.

    Raises:
        InputError: If the budget is below the least that would do, which the message names.
    """
    if steps < 1:
        raise InputError(f"steps={steps}; a rollout has at least one step")
    if segment is not None and segment < 1:
        raise InputError(f"segment={segment}; a segment has at least one step")
    if schedule is not None and schedule.window is not None and schedule.window < 1:
        raise InputError(f"window={schedule.window}; a window has at least one step")
    if schedule is None and segment is None and storage == "device" and _alike(footprint):
        longest = _longest_segments(footprint, steps, KEPT_BYTES if budget is None else budget)
        if longest is not None:
            return longest
    chosen = schedule or AllStarts()
    preferred = segment or _preferred_slots(footprint)
    plan = _plan(footprint, steps, chosen.slots(steps, preferred), chosen, storage, segment)
    if plan.slots > _maximum_slots(footprint):
        raise _too_long(footprint, plan)
    if budget is None or plan.bytes <= budget:
        return plan
    fitting = _fit(footprint, steps, schedule, segment, budget, storage)
    if fitting is None:
        raise _too_small(footprint, steps, schedule, segment, budget, storage)
    return fitting


def _maximum_slots(footprint: Footprint) -> int:
    """The longest segment whose intermediates fit one block of memory, of which each group of worlds has its own."""
    return max(1, LARGEST_BLOCK * footprint.groups // max(footprint.work, 1))


def _too_long(footprint: Footprint, plan: Plan) -> InputError:
    """A segment that no block of memory holds."""
    whole, most = plan.slots * footprint.work, LARGEST_BLOCK * footprint.groups
    return InputError(
        f"recording {plan.slots} steps at once takes {readable(footprint.work)} each, {readable(whole)} in all, and a "
        f"block of memory holds at most {readable(most)}; leave schedule= and segment= out of memory=, and the "
        f"{plan.steps} steps are cut into segments; or give segment={_maximum_slots(footprint)} or less"
    )


def _preferred_slots(footprint: Footprint) -> int:
    """K that keeps the slots of a group of worlds within the cache."""
    slot = max(footprint.slot, 1)
    most = MAXIMUM_SLOTS if _alike(footprint) else MAXIMUM_CAPTURED_SLOTS
    return max(1, min(most, CACHE_BYTES * footprint.groups // slot, KEPT_BYTES // slot))


def _alike(footprint: Footprint) -> bool:
    """Whether slots are made from a few captured ones, in all groups of worlds."""
    return footprint.tables == footprint.groups


def _longest_segments(footprint: Footprint, steps: int, limit: int) -> Plan | None:
    """The plan with all starts and the longest segments within a limit, if they are a fair share of the rollout."""
    limit -= limit // _SPARE
    fits, too_long = 0, min(steps, _maximum_slots(footprint)) + 1
    while too_long - fits > 1:
        slots = (fits + too_long) // 2
        if _plan(footprint, steps, slots, AllStarts(), "device").bytes <= limit:
            fits = slots
        else:
            too_long = slots
    return _plan(footprint, steps, fits, AllStarts(), "device") if fits * WORTH_KEEPING >= steps else None


def cut(steps: int, slots: int, schedule: Schedule, *, rest_first: bool = False) -> Plan:
    """Segments of `slots` steps and the starts that a schedule stores; what they take is left open.

    Args:
        steps: N.
        slots: K.
        schedule: What to store.
        rest_first: Whether the first segment is the one that may be shorter, if there are no windows.
    """
    segments = _segments(steps, slots, schedule.window)
    snapshots = schedule.snapshots(segments)
    if snapshots < 1:
        raise InputError(f"{snapshots} snapshots; at least the initial state must be kept")
    first = steps - (segments - 1) * slots if rest_first and not schedule.window else slots
    return Plan(steps, slots, first, snapshots, schedule.window, "device", {}, 0)


def _plan(
    footprint: Footprint, steps: int, slots: int, schedule: Schedule, storage: str, given: int | None = None
) -> Plan:
    """The plan with these numbers; `given` is the K that the caller asked for, if he did."""
    plan = cut(steps, slots, schedule, rest_first=given is None)
    kept = plan.snapshots + 1  # and the state reached so far
    on_disk = storage == "disk"
    plan = replace(plan, storage=storage, memory={}, disk_bytes=kept * footprint.state if on_disk else 0)
    shorter = sum(plan.lengths - {slots})
    plan.memory.update(footprint.memory(slots, shorter, plan.segments, plan.snapshots, 0 if on_disk else kept))
    if on_disk:
        plan.memory["checkpoints"] = min(plan.disk_bytes, RESIDENT_BYTES)
    return plan


def _fit(
    footprint: Footprint, steps: int, schedule: Schedule | None, segment: int | None, budget: int, storage: str
) -> Plan | None:
    """The plan with the fewest evaluations that fits; among equals the one with the shortest segments."""
    fitting = []
    per_snapshot = footprint.groups * SNAPSHOT_BYTES + (0 if storage == "disk" else footprint.state)
    for slots in (size for size in _sizes(steps, segment) if size <= _maximum_slots(footprint)):
        if schedule is not None:
            plan = _plan(footprint, steps, schedule.slots(steps, slots), schedule, storage, segment)
        else:
            spare = budget - _plan(footprint, steps, slots, Revolve(1), storage, segment).bytes
            spare -= RESIDENT_BYTES if storage == "disk" else 0
            plan = _plan(footprint, steps, slots, Revolve(max(1, 1 + spare // per_snapshot)), storage, segment)
        if plan.bytes <= budget:
            fitting.append(plan)
    return min(fitting, key=lambda plan: plan.forward_evaluations, default=None)


def _sizes(steps: int, segment: int | None) -> list[int]:
    """Segment lengths to be tried, ascending."""
    return [min(segment, steps)] if segment else sorted({min(steps, round(1.25**i)) for i in range(38)})


def _too_small(
    footprint: Footprint,
    steps: int,
    schedule: Schedule | None,
    segment: int | None,
    budget: int,
    storage: str,
) -> InputError:
    sizes = _sizes(steps, segment)
    if schedule is None:
        plans = [_plan(footprint, steps, slots, Revolve(1), storage, segment) for slots in sizes]
    else:
        plans = [_plan(footprint, steps, schedule.slots(steps, slots), schedule, storage, segment) for slots in sizes]
    least = min(plans, key=lambda plan: plan.bytes)
    return InputError(
        f"memory={readable(budget)} is too small for {steps} steps; the least that would do is "
        f"{least.bytes} bytes ({readable(least.bytes)}):\n{least}"
    )


def _segments(steps: int, slots: int, window: int | None) -> int:
    window = window or steps
    whole, rest = divmod(steps, window)
    return whole * -(-window // slots) + -(-rest // slots)
