"""Plans: optimal counts against brute force, bytes against what is allocated, budgets against what they must hold."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import warp as wp

from tape_toys import Chain
from warpsim.core.errors import InputError
from warpsim.tape import AllStarts, CheckpointedTape, FullTape, Memory, Revolve, Windows, budget, footprint, revolve
from warpsim.tape.footprint import Footprint
from warpsim.tape.frames import Packed
from warpsim.tape.free_memory import free_bytes
from warpsim.tape.program import Field
from warpsim.tape.schedule import KEPT_BYTES, LARGEST_BLOCK, make_plan
from warpsim.tape.storage import RESIDENT_BYTES

COST = Footprint(
    state=1_000, state_adjoint=900, exchange=300, exchange_adjoint=200, work=20_000, work_adjoint=18_000, launches=0
)


@lru_cache(None)
def fewest_advances(segments: int, snapshots: int) -> int:
    """Dynamic programming over all places of the next snapshot."""
    if segments == 1:
        return 0
    if snapshots == 1:
        return segments * (segments - 1) // 2
    return min(
        m + fewest_advances(segments - m, snapshots - 1) + fewest_advances(m, snapshots) for m in range(1, segments)
    )


def count_by_playing(segments: int, snapshots: int) -> int:
    """Advances of the reversal as the sweep does it, checking that it never holds more snapshots than allowed."""
    stack, total = [0], 0

    for target in reversed(range(segments)):
        for start, stop, store in revolve.approach(stack[-1], target, snapshots - len(stack) + 1):
            total += stop - start
            if store:
                stack.append(stop)
        assert len(stack) <= snapshots
        if stack[-1] == target:
            stack.pop()
    return total


def test_revolve_is_optimal() -> None:
    for segments in range(1, 50):
        for snapshots in range(1, 12):
            best = fewest_advances(segments, snapshots)
            assert revolve.advances(segments, snapshots) == best
            assert count_by_playing(segments, snapshots) == best


def test_known_counts() -> None:
    plan = make_plan(COST, 100_000, segment=1, schedule=Revolve(100))
    assert plan.segment_advances == 294_747
    assert plan.forward_evaluations == pytest.approx(3.947, abs=5e-4)
    plan = make_plan(COST, 100_000, segment=100, schedule=Revolve(100))
    assert plan.segment_advances == 1_898
    assert plan.forward_evaluations == pytest.approx(2.898, abs=5e-4)
    assert make_plan(COST, 100_000, segment=100).segment_advances == 999
    assert make_plan(COST, 100_000, schedule=FullTape()).forward_evaluations == 1.0


def test_the_sweep_takes_as_many_steps_as_planned() -> None:
    cuts = ((40, 1, 3), (40, 4, 2), (41, 4, 3), (41, 50, 1), (12, 4, 3))
    options = [dict(steps=n, memory=Memory(segment=slots, schedule=Revolve(count))) for n, slots, count in cuts]
    base = make_plan(footprint.measure([Chain(1, 2)]), 7001, segment=30, schedule=Revolve(1)).bytes
    options += [dict(steps=7001, memory=base + more) for more in (8_000, 60_000, 800_000)]
    tapes = [CheckpointedTape(Chain(1, 2), check=False, **given) for given in options]
    chosen = [tape.plan for tape in tapes[len(cuts) :]]
    assert all(1 < plan.first < plan.slots for plan in chosen)
    assert chosen[0].snapshots < chosen[0].segments and chosen[-1].snapshots == chosen[-1].segments
    for tape in tapes:
        counts = steps_taken(tape)
        assert counts[True] == tape.plan.steps
        assert sum(counts.values()) / tape.plan.steps == pytest.approx(tape.plan.forward_evaluations, rel=1e-12)


def steps_taken(tape: CheckpointedTape) -> dict[bool, int]:
    """Steps of one gradient, recorded or not."""
    counts = {True: 0, False: 0}
    segment = tape._sweeps[0].segment
    original = segment.steps

    def counted(first: int, count: int, *, recorded: bool) -> Any:
        counts[recorded] += count
        return original(first, count, recorded=recorded)

    segment.steps = counted
    state = {"x": [[0.1, 0.2]], "v": [[0.0, 0.0]], "guess": [[0.0, 0.0]], "turns": [0]}
    tape.backward(tape.forward(state), state_seeds={"x": {-1: [[1.0, 1.0]]}})
    return counts


@pytest.mark.parametrize("steps", [1, 7, 100, 12_345, 1_000_000])
def test_spans_cover_every_step_once(steps: int) -> None:
    for schedule in (AllStarts(), Windows(7), Windows(250), Revolve(3)):
        plan = make_plan(COST, steps, segment=40, schedule=schedule)
        spans = [plan.span(i) for i in range(plan.segments)]
        assert spans[0].start == 0
        assert all(a.start + a.count == b.start for a, b in zip(spans, spans[1:], strict=False))
        assert spans[-1].start + spans[-1].count == steps
        assert {span.count for span in spans} <= plan.lengths
        for span in (spans[0], spans[len(spans) // 2], spans[-1]):
            assert plan.segment_of(span.start) == plan.segment_of(span.start + span.count - 1) == span.segment
        if schedule.window:
            ends = {span.start + span.count for span in spans}
            assert ends >= set(range(schedule.window, steps, schedule.window))


def test_budgets_are_kept_and_used_well() -> None:
    roomy = make_plan(COST, 100_000)
    assert roomy.forward_evaluations < 2.0
    last = roomy.forward_evaluations
    for limit in (12_000_000, 3_000_000, 2_000_000, 1_500_000, 1_200_000):
        plan = make_plan(COST, 100_000, budget=limit)
        assert plan.bytes <= limit
        assert plan.forward_evaluations >= last - 1e-12
        last = plan.forward_evaluations
    assert make_plan(COST, 100_000, budget=roomy.bytes) == roomy


@lru_cache(None)
def longest_kept() -> int:
    """Steps of the longest rollout that is kept whole by default, of almost all that it may take."""
    fits = max(n for n in range(1, 10_000) if make_plan(COST, n).segments == 1)
    assert 0.97 * KEPT_BYTES < make_plan(COST, fits, schedule=FullTape()).bytes <= KEPT_BYTES
    return fits


def test_what_fits_is_kept_whole() -> None:
    """Nothing is computed twice unless memory, or the caller, asks for it."""
    fits = longest_kept()
    whole, cut = make_plan(COST, fits), make_plan(COST, fits + 1)
    assert (whole.segments, whole.forward_evaluations) == (1, 1.0)
    assert whole == make_plan(COST, fits, schedule=FullTape())
    assert cut.segments == 2 and cut.bytes <= KEPT_BYTES
    assert cut.forward_evaluations == 1.0 + cut.first / cut.steps < 1.01  # only what does not fit is computed twice
    assert cut.first + cut.slots == cut.steps
    assert make_plan(COST, fits + 1, budget=2 * KEPT_BYTES).segments == 1
    spared = whole.bytes * 64 // 63 + 64  # long segments leave a part of the budget to the process
    assert make_plan(COST, fits, budget=spared) == whole
    assert make_plan(COST, fits, budget=whole.bytes - 1).bytes < whole.bytes
    assert make_plan(COST, fits, segment=100).slots == 100
    assert make_plan(COST, fits, schedule=AllStarts()).segments > 1
    for storage in ("host", "disk"):  # whoever says where checkpoints live wants some
        assert make_plan(COST, fits, storage=storage).segments > 1


def test_as_much_is_kept_as_is_worth_it() -> None:
    """Up to four times what fits, all of the budget is used; beyond, what fits the cache."""
    fits = longest_kept()
    last = 1.0
    for steps in (fits + 1, 2 * fits, 3 * fits, 39 * fits // 10):
        plan = make_plan(COST, steps)
        assert last < plan.forward_evaluations == pytest.approx(2.0 - plan.slots / steps, rel=1e-12)
        assert 0.97 * KEPT_BYTES < plan.bytes <= KEPT_BYTES
        last = plan.forward_evaluations
    long = make_plan(COST, 5 * fits)
    assert long.bytes < 0.2 * KEPT_BYTES
    assert last < long.forward_evaluations < 2.0


@pytest.mark.parametrize("snapshots", [1, 2, 3, 5, 40])
def test_the_first_segment_is_advanced_as_often_as_counted(snapshots: int) -> None:
    for segments in (1, 2, 3, 7, 20, 33):
        visited, stack = [], [0]
        for target in reversed(range(segments)):
            for first, stop, store in revolve.approach(stack[-1], target, snapshots - len(stack) + 1):
                visited.append(first)
                if store:
                    stack.append(stop)
            if stack[-1] == target and target:
                stack.pop()
        assert revolve.first_advances(segments, snapshots) == visited.count(0)


def test_long_segments_leave_a_part_of_the_budget_to_the_process() -> None:
    fits = longest_kept()
    for steps in (fits, 2 * fits, 3 * fits):
        for limit in (KEPT_BYTES, KEPT_BYTES + 12_345, 7 * KEPT_BYTES // 8):
            plan, left = make_plan(COST, steps, budget=limit), limit - limit // 64
            assert 0.999 * left < plan.bytes <= left
    whole = make_plan(COST, fits)
    assert make_plan(COST, fits, budget=whole.bytes).segments > 1


@pytest.mark.parametrize("storage", ["device", "disk"])
def test_what_a_budget_leaves_over_holds_snapshots(storage: str) -> None:
    """As many segment starts are kept as fit, beside what checkpoints on disk hold in memory."""
    least = make_plan(COST, 30_000, segment=30, schedule=Revolve(1), storage=storage).bytes
    spare = RESIDENT_BYTES if storage == "disk" else 0
    per_snapshot = 32 if storage == "disk" else 32 + COST.state
    for more in (0, 1, 7, 50, 400):
        limit = least + spare + more * per_snapshot
        plan = make_plan(COST, 30_000, segment=30, budget=limit, storage=storage)
        assert plan.snapshots == 1 + more
        assert plan.bytes <= limit
        if more:
            assert make_plan(COST, 30_000, segment=30, budget=limit - 1, storage=storage).snapshots == more


def test_a_budget_too_small_names_the_least() -> None:
    for options in ({}, {"segment": 30}, {"schedule": Revolve(5), "segment": 3}, {"schedule": FullTape()}):
        with pytest.raises(InputError, match=r"the least that would do is (\d+) bytes") as caught:
            make_plan(COST, 500, budget=1_000, **options)
        least = int(str(caught.value).split("would do is ")[1].split(" bytes")[0])
        assert make_plan(COST, 500, budget=least, **options).bytes == least
        with pytest.raises(InputError):
            make_plan(COST, 500, budget=least - 1, **options)


def test_disk_checkpoints_do_not_count() -> None:
    plan = make_plan(COST, 10_000, segment=10, storage="disk")
    assert plan.memory["checkpoints"] == RESIDENT_BYTES
    assert plan.disk_bytes == 1_001 * COST.state
    assert "on disk" in str(plan)


def test_reading_budgets() -> None:
    cpu = wp.get_device("cpu")
    assert budget.parse(1234, cpu) == 1234
    assert budget.parse("512MB", cpu) == 512_000_000
    assert budget.parse("1.5 GiB", cpu) == 3 * 2**29
    assert budget.parse("100 kB", cpu) == 100_000
    free = free_bytes(cpu)
    assert 0.4 * free < budget.parse("50%", cpu) < 0.6 * free
    for wrong in ("much", "5 parsecs", "1.2.3MB", "0", 0, -5, "0%", ".", "150%", float("nan"), float("inf"), [1], True):
        with pytest.raises(InputError):
            budget.parse(wrong, cpu)


@pytest.mark.parametrize("groups", [1, 3])
def test_accounting_equals_what_is_allocated(groups: int) -> None:
    program = Chain(3, 4)
    tape = CheckpointedTape(program, steps=50, memory=Memory(segment=7), groups=groups)
    state = {"x": [[0.1] * 4] * 3, "v": [[0.0] * 4] * 3, "guess": [[0.0] * 4] * 3, "turns": [0] * 3}
    run = tape.forward(state)
    segments, memory = [sweep.segment for sweep in tape._sweeps], tape.plan.memory
    pairs = [(segment, segment.adjoints) for segment in segments]
    states = [packed for segment, adjoints in pairs for packed in (segment.states, adjoints.states)]
    assert memory["slot states"] == sum(packed.data.nbytes for packed in states)
    exchanged = [packed for pair in pairs for part in pair for packed in (part.inputs, part.outputs)]
    assert memory["slot inputs and outputs"] == sum(packed.data.nbytes for packed in exchanged)
    assert memory["checkpoints"] == sum(store.nbytes for store in run.checkpoints)
    blocks = {}
    for segment in segments:
        segment.prepare(0, 7, recorded=False)
        segment.prepare(0, 7, recorded=True)
        arenas = [*(work.arena for work in segment._plain_work), *segment._recorded_arenas]
        for block in (*(arena._values for arena in arenas), segment._recorded_arenas[0]._adjoints):
            blocks[id(block)] = block
    assert memory["intermediates"] == sum(block.size for block in blocks.values())


def test_the_plan_prints() -> None:
    text = str(make_plan(COST, 100_000, segment=100, schedule=Revolve(100)))
    assert "100000 steps in 1000 segments of 100" in text
    assert "2.898" in text
    assert "checkpoints" in text


def test_footprint_counts_groups() -> None:
    program = Chain(4, 3)
    whole, halves = footprint.measure([program]), footprint.measure(program.split(2))
    assert halves.groups == 2
    assert halves.launches == 2 * whole.launches
    assert halves.state >= whole.state


def test_wrong_arguments() -> None:
    for arguments in ({"steps": 0}, {"steps": 5, "segment": 0}, {"steps": 5, "schedule": Windows(0)}):
        with pytest.raises(InputError):
            make_plan(COST, **arguments)
    with pytest.raises(InputError):
        make_plan(COST, 5, schedule=Revolve(0))
    with pytest.raises(InputError):
        revolve.advances(0, 1)
    with pytest.raises(InputError):
        revolve.split(1, 1)


def test_no_segment_is_longer_than_a_block_of_memory_holds() -> None:
    """Warp counts the bytes of an array in 32 bits; what is chosen stays below, what is asked for is refused."""
    most = LARGEST_BLOCK // COST.work
    with pytest.raises(InputError, match=rf"recording {2 * most} steps.*segment={most} or less"):
        make_plan(COST, 2 * most, schedule=FullTape())
    with pytest.raises(InputError, match="segment= out of memory="):
        make_plan(COST, 2 * most, segment=most + 1)
    assert make_plan(COST, 2 * most, segment=most).slots == most
    for limit in (3 * LARGEST_BLOCK, 30 * LARGEST_BLOCK):
        assert make_plan(COST, 2 * most, budget=limit).slots <= most


@pytest.mark.long
def test_checkpoints_may_be_larger_than_what_is_counted_in_32_bits() -> None:
    field = Field("x", (1, 2**20), wp.float64)
    rows = Packed.allocate((field,), 300, wp.get_device("cpu"))  # 2.5 GB
    rows.fields["x"].write(299, np.ones((1, 2**20)))
    assert rows.data.nbytes > 2**31
    assert rows.fields["x"].read(299).min() == 1.0 and rows.fields["x"].read(298).max() == 0.0
