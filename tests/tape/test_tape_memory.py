"""Memory stays within the budget at any horizon, and flat over many iterations; measured on the process itself."""

from __future__ import annotations

import mmap
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp

from tape_toys import Chain
from warpsim.tape import CheckpointedTape, EveryStep, KnotInputs, Memory, SegmentReport, storage
from warpsim.tape.frames import Packed, packed_bytes

WORLDS, LINKS = 4, 8


def resident_bytes() -> int:
    """Memory of this process that is in RAM."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def initial_state() -> dict[str, np.ndarray]:
    full = (WORLDS, LINKS)
    return {
        "x": np.full(full, 0.1),
        "v": np.zeros(full),
        "guess": np.zeros(full),
        "turns": np.zeros(WORLDS, dtype=np.int32),
    }


def growth(steps: int, budget: int, storage: str) -> tuple[int, int]:
    """Largest growth of the process during one gradient, and what the plan says; the kernels are loaded before."""
    program = Chain(WORLDS, LINKS)
    every = max(1, steps // 50)
    values = np.random.default_rng(0).normal(size=(KnotInputs.count(steps, every), WORLDS, LINKS))
    knots = KnotInputs("u", wp.array(values, dtype=wp.float64), every)
    warm = CheckpointedTape(program, steps=2, memory=Memory(segment=1))
    few = KnotInputs("u", wp.array(values[:3], dtype=wp.float64), 1)
    warm.backward(warm.forward(initial_state(), few), output_seeds={"energy": EveryStep(np.ones(WORLDS))})
    before = largest = resident_bytes()

    def look(report: SegmentReport) -> None:
        nonlocal largest
        largest = max(largest, resident_bytes())

    tape = CheckpointedTape(program, steps=steps, memory=Memory(budget=budget, storage=storage))
    run = tape.forward(initial_state(), knots)
    tape.backward(run, output_seeds={"energy": EveryStep(np.ones(WORLDS))}, on_segment=look)
    assert np.isfinite(knots.gradient.numpy()).all()
    assert (knots.gradient.numpy() != 0.0).any()
    return max(largest, resident_bytes()) - before, tape.plan.bytes


def check_growth(steps: int, budget: int, storage: str = "device") -> None:
    """Measures in a fresh process, so that memory freed by other tests does not hide what is used."""
    here = Path(__file__).parent
    paths = [str(here), str(here.parent / "support"), str(here.parents[1])]
    code = (
        f"import sys; sys.path[:0] = {paths!r}; from test_tape_memory import growth; "
        f"print(*growth({steps}, {budget}, {storage!r}))"
    )
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    grown, planned = (int(word) for word in result.stdout.split()[-2:])
    assert planned <= budget
    assert grown <= budget, f"{steps} steps: grew by {grown}, planned {planned}, budget {budget}"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
@pytest.mark.parametrize(("steps", "budget"), [(100, 4_000_000), (10_000, 4_000_000), (10_000, 10_000_000)])
def test_growth_stays_within_the_budget(steps: int, budget: int) -> None:
    check_growth(steps, budget)


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    ("steps", "budget", "storage"),
    [(1_000_000, 8_000_000, "device"), (1_000_000, 32_000_000, "device"), (1_000_000, 8_000_000, "disk")],
)
def test_growth_stays_within_the_budget_for_a_million_steps(steps: int, budget: int, storage: str) -> None:
    check_growth(steps, budget, storage)


def iterate(count: int) -> list[int]:
    """Memory after each tenth of `count` gradients."""
    program = Chain(WORLDS, LINKS)
    tape = CheckpointedTape(program, steps=60, memory=Memory(segment=8))
    sizes = []
    for i in range(count):
        u = np.full((60, WORLDS, LINKS), 1e-3 * i)
        run = tape.forward(initial_state(), {"u": u}, keep_states=["x"])
        tape.backward(run, output_seeds={"energy": EveryStep(np.ones(WORLDS))})
        if (i + 1) % (count // 10) == 0:
            sizes.append(resident_bytes())
    return sizes


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_a_thousand_iterations_do_not_leak() -> None:
    sizes = iterate(1_000)
    assert sizes[-1] - sizes[1] < 400_000, sizes


def test_temporary_files_are_removed() -> None:
    found = set(Path(tempfile.gettempdir()).glob("warpsim_checkpoints_*"))
    tape = CheckpointedTape(Chain(WORLDS, LINKS), steps=50, memory=Memory(segment=5, storage="disk"))
    run = tape.forward(initial_state())
    assert set(Path(tempfile.gettempdir()).glob("warpsim_checkpoints_*")) > found
    del run, tape
    assert set(Path(tempfile.gettempdir()).glob("warpsim_checkpoints_*")) == found


@pytest.mark.skipif(not hasattr(mmap, "MADV_DONTNEED"), reason="pages cannot be given back here")
def test_pages_of_a_file_are_given_back_now_and_then_and_keep_their_bytes(monkeypatch) -> None:
    """Each time that half of the room is touched, and not before."""
    program = Chain(WORLDS, LINKS)
    size = packed_bytes(program.state)
    monkeypatch.setattr(storage, "RESIDENT_BYTES", 2 * 3 * size)
    states = Packed.allocate(program.state, 1, wp.get_device("cpu"))
    kept = storage.make("disk", program.state, 12, wp.get_device("cpu"))
    advised = []
    mapped = kept._mapped
    kept._mapped = SimpleNamespace(madvise=lambda advice: (advised.append(kept._touched), mapped.madvise(advice)))
    given = []
    for frame in range(12):
        given.append(np.random.default_rng(frame).integers(0, 256, (1, size), dtype=np.uint8))
        states.data.array.assign(given[-1])
        kept.save(frame, states, 0)
        assert len(advised) == (frame + 1) // 4
    for frame in range(12):
        kept.load(frame, states, 0)
        assert np.array_equal(states.data.array.numpy(), given[frame])
    assert len(advised) == 6


def test_dropped_runs_give_their_memory_back() -> None:
    tape = CheckpointedTape(Chain(WORLDS, LINKS), steps=50, memory=Memory(segment=5))
    rooms = set()
    for _ in range(5):
        run = tape.forward(initial_state())
        rooms.add(id(run.checkpoints[0]))
        del run
    assert len(rooms) == 1
    u = wp.zeros((50, WORLDS, LINKS), dtype=wp.float64)
    alive = weakref.ref(u)
    run = tape.forward(initial_state(), {"u": u})
    del run, u
    assert alive() is None  # the tape keeps no array of a run that is gone
    held = [tape.forward(initial_state()) for _ in range(3)]
    assert len({id(run.checkpoints[0]) for run in held}) == 3
