"""A backward pass killed with SIGKILL goes on when the same calls are made again, and its result has the same bits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import warp as wp

from tape_toys import Chain
from warpsim.core.errors import InputError
from warpsim.tape import (
    AllStarts,
    CheckpointedTape,
    EveryStep,
    KnotInputs,
    Memory,
    Resumable,
    Revolve,
    Schedule,
    SegmentReport,
)

STEPS, WORLDS, LINKS = 60, 2, 3
SCHEDULES: dict[str, Schedule] = {"all": AllStarts(), "revolve": Revolve(3)}


def gradient(
    storage: str | Resumable, schedule: str, threads: int, kill_at: int | None = None, knots: bool = False
) -> tuple[list[np.ndarray], list[int]]:
    """All gradients of a fixed rollout, and the segments that were differentiated; kills this process on the way."""
    rng = np.random.default_rng(0)
    program = Chain(WORLDS, LINKS)
    full = (WORLDS, LINKS)
    state = {"x": rng.normal(size=full), "v": rng.normal(size=full), "guess": np.zeros(full), "turns": np.zeros(2)}
    inputs = {"u": rng.normal(size=(STEPS, *full))}
    spline = KnotInputs("u", wp.array(inputs["u"][:8], dtype=wp.float64), 10)
    seeds = {"x": rng.normal(size=(STEPS + 1, *full))}
    tape = CheckpointedTape(
        program, steps=STEPS, memory=Memory(segment=7, schedule=SCHEDULES[schedule], storage=storage), threads=threads
    )
    done: list[int] = []

    def on_segment(report: SegmentReport) -> None:
        done.append(report.segment)
        if report.segment == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    run = tape.forward(state, spline if knots else inputs, keep_states=["x"])
    energy = {"energy": EveryStep(np.ones(WORLDS))}
    back = tape.backward(run, state_seeds=seeds, output_seeds=energy, on_segment=on_segment)
    found = [run.states.x.numpy(), back.initial_state.x.numpy(), back.initial_state.v.numpy(), back.adjoint_norms]
    found.append(spline.gradient.numpy() if knots else back.inputs.u.numpy())
    return [*found, *(p.grad.numpy() for p in program.parameters.values())], done


def killed(directory: Path, schedule: str, threads: int, kill_at: int, knots: bool) -> None:
    """Runs `gradient` in a process that kills itself in segment `kill_at`."""
    call = f"gradient(Resumable({str(directory)!r}, seconds=0), {schedule!r}, {threads}, {kill_at}, {knots})"
    here = Path(__file__).parent
    paths = [str(here), str(here.parent / "support"), str(here.parents[1])]
    code = f"import sys; sys.path[:0] = {paths!r}; from test_tape_resume import *; {call}"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("schedule", "threads", "knots"), [("all", 1, False), ("revolve", 1, True), ("revolve", 2, False)]
)
def test_goes_on_after_being_killed(schedule: str, threads: int, knots: bool, tmp_path: Path) -> None:
    expected, everything = gradient("device", schedule, threads, knots=knots)
    assert len(everything) == 9 * threads
    killed(tmp_path, schedule, threads, 5, knots)
    assert any(tmp_path.rglob("journal.npz"))
    killed(tmp_path, schedule, threads, 2, knots)  # and once more on the way
    found, done = gradient(Resumable(tmp_path, seconds=0), schedule, threads, knots=knots)
    assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))
    assert len(done) < len(everything)
    if threads == 1:
        assert done == [2, 1, 0]
    assert not any(tmp_path.iterdir())


def test_another_run_is_refused_and_harms_nothing(tmp_path: Path) -> None:
    """Whatever differs, the files of the interrupted run stay as they are: the right call then goes on."""
    expected, _ = gradient("device", "all", 1)
    killed(tmp_path, "all", 1, 5, False)
    rng = np.random.default_rng(0)
    full = (WORLDS, LINKS)
    state = {"x": rng.normal(size=full), "v": rng.normal(size=full), "guess": np.zeros(full), "turns": np.zeros(2)}
    inputs = {"u": rng.normal(size=(STEPS, *full))}
    late = {"u": inputs["u"].copy()}
    late["u"][-1] += 1.0  # of a segment that is already differentiated
    other = {**state, "x": np.ones(full)}
    kept = dict(keep_states=["x"])
    for options, start, given, call, message in (
        (dict(steps=STEPS - 10), state, {"u": inputs["u"][:-10]}, kept, "belongs to another run"),
        (dict(slots=20), state, inputs, kept, "belongs to another run"),
        ({}, other, inputs, kept, "belongs to another run"),
        ({}, state, inputs, dict(keep_states=["x"], keep_every=2), "belongs to another run"),
        ({}, state, inputs, dict(keep_states=["x"], keep_outputs=["energy"]), "belongs to another run"),
        ({}, state, inputs, dict(keep_states=["x"], differentiate=False), "belongs to another run"),
        ({}, state, late, kept, "a run with other inputs was saved here .*steps 56 … 59.*delete it"),
    ):
        memory = Memory(segment=options.get("slots", 7), schedule=AllStarts(), storage=Resumable(tmp_path))
        tape = CheckpointedTape(Chain(WORLDS, LINKS), steps=options.get("steps", STEPS), memory=memory)
        with pytest.raises(InputError, match=message):
            tape.forward(start, given, **call)
    found, done = gradient(Resumable(tmp_path, seconds=0), "all", 1)
    assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))
    assert done == [5, 4, 3, 2, 1, 0]


def test_one_run_at_a_time_and_each_with_its_own_files(tmp_path: Path) -> None:
    tape = CheckpointedTape(Chain(WORLDS, LINKS), steps=STEPS, memory=Memory(segment=7, storage=Resumable(tmp_path)))
    full = (WORLDS, LINKS)
    state = {"x": np.ones(full), "v": np.ones(full), "guess": np.zeros(full), "turns": np.zeros(2)}
    run = tape.forward(state)
    with pytest.raises(InputError, match="one run at a time"):
        tape.forward(state)
    run.release()
    assert not any(tmp_path.iterdir())
    ahead = tape.forward(state, differentiate=False)
    assert not any(tmp_path.rglob("journal.npz"))
    ahead.release()
    run = tape.forward(state)
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"journal.npz", "states.bin"}
    with pytest.raises(InputError, match="own files"):
        tape.backward(run, input_gradients={"u": np.zeros((STEPS, *full))})
    tape.backward(run, state_seeds={"x": {-1: np.ones(full)}})
    with pytest.raises(InputError, match="own files"):
        tape.forward(state, keep_states={"x": np.zeros((STEPS + 1, *full))})
