"""What it costs to cut a rollout: the gradient over eight default segments, in terms of its own captured segment.

    python -m tools.bench.checkpoints [case …] [--repeats 9]

Every case of one world runs over a horizon that is cut into eight segments of the length that horizons too long to be
kept get by default, so that seven of eight steps are computed twice. Beside the gradient and the plain rollout, what
their replays alone take is measured on the same states: a plain step, a recorded step, an adjoint step. Times are
processor times, alternating; ratios are medians over the rounds. A gradient counts only if it has the same bits as that
of the rollout kept whole.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import numpy as np

from tools.bench import mujoco_side
from tools.bench.cases import CASES, Case
from tools.bench.report import add_files, environment, machine_lines, publish, rollout_bar
from tools.bench.warpsim_side import Rollout
from warpsim.tape import CheckpointedTape, FullTape, Memory
from warpsim.tape.segment import Segment

_SEGMENTS = 8
_LONG = 10_000_000
"""Steps that nobody keeps whole."""

SEGMENT_BAR = 1.15
"""What a gradient may take of two plain steps and an adjoint; what only recorded steps do is left to the margin."""


@dataclass(frozen=True)
class Cost:
    """Times of one case, µs per step, medians, and what they are in terms of each other."""

    case: str
    steps: int
    slots: int
    plain: float
    recorded: float
    adjoint: float
    forward: float
    gradient: float
    parts_share: float
    """Gradient over a plain step, a recorded step and an adjoint, all replays alone."""
    segment_share: float
    """Gradient over two plain steps and an adjoint."""
    rollout_share: float
    """Gradient over the plain rollout."""
    rollout_bar: float
    """What that may be."""


class Replays:
    """The captured segment of a rollout, replayed over all of its steps without the tape around it."""

    def __init__(self, rollout: Rollout, slots: int) -> None:
        self._rollout, self._slots = rollout, slots
        self._segment = Segment(rollout.program, slots)
        for name, value in rollout.state.items():
            self._segment.states.fields[name].host[0] = value
        self._start = self._segment.states.data.host[0].copy()

    def seconds(self) -> tuple[float, float, float]:
        """Of all plain steps, all recorded ones, and the adjoints of all."""
        segment, slots = self._segment, self._slots
        states = segment.states.data.host
        states[0] = self._start
        spent = [0.0, 0.0, 0.0]
        for first in range(0, self._rollout.case.steps, slots):
            for name, value in self._rollout.inputs_by_name().items():
                segment.inputs.fields[name].host[:] = value[first : first + slots]
            segment.adjoints.zero()
            segment.adjoints.states.fields["q"].host[slots] = 1.0
            for i, replay in enumerate(
                (
                    segment.steps(0, slots, recorded=False),
                    segment.steps(0, slots, recorded=True),
                    segment.adjoint_steps(0, slots),
                )
            ):
                spent[i] += _timed(replay)
            states[0] = states[slots]
        return spent[0], spent[1], spent[2]


def measure(case: Case, repeats: int) -> Cost:
    """Times one case over eight segments."""
    slots = CheckpointedTape(_rollout(case).program, steps=_LONG).plan.slots
    long = replace(case, steps=_SEGMENTS * slots)
    cut = _rollout(long, segment=slots)
    whole = _rollout(long)
    whole.tape = CheckpointedTape(whole.program, steps=long.steps, memory=Memory(schedule=FullTape()))
    replays = Replays(cut, slots)
    for run in (whole.differentiate, cut.differentiate, cut.forward, replays.seconds):
        run()
    if not np.array_equal(cut.gradient, whole.gradient):
        raise SystemExit(f"{case.name}: the gradient of the cut rollout differs from that of the whole one")
    del whole
    rounds = []
    gc.collect()
    gc.disable()  # a collection would land in one part's time
    try:
        for _ in range(repeats):
            rounds.append((*replays.seconds(), _timed(cut.forward), _timed(cut.differentiate)))
    finally:
        gc.enable()
    plain, recorded, adjoint, forward, gradient = (
        1e6 * statistics.median(times) / long.steps for times in zip(*rounds, strict=True)
    )
    return Cost(
        case.name,
        long.steps,
        slots,
        plain,
        recorded,
        adjoint,
        forward,
        gradient,
        statistics.median(g / (f + r + b) for f, r, b, _, g in rounds),
        statistics.median(g / (2 * f + b) for f, _, b, _, g in rounds),
        statistics.median(g / f for _, _, _, f, g in rounds),
        rollout_bar(case),
    )


def _rollout(case: Case, segment: int | None = None) -> Rollout:
    return Rollout(case, mujoco_side.make_inputs(case, mujoco_side.load(case)), segment=segment)


def _timed(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def to_markdown(costs: list[Cost]) -> str:
    """A table, with what the ratios may be in brackets."""
    lines = [
        *machine_lines(environment("tools.bench.checkpoints")),
        "",
        f"µs per step, processor time, one world, {_SEGMENTS} segments of the length that horizons too long to be kept",
        "get by default: all but the last are computed twice. Step, recorded step and adjoint: replays alone, on the",
        "same states. Medians over the rounds, and in brackets what they may be.",
        "",
        "| case | steps | segment | step | recorded step | adjoint | forward rollout | gradient "
        "| gradient / (step + recorded step + adjoint) | gradient / (2 steps + adjoint) | gradient / forward rollout |",
        "|---" * 11 + "|",
    ]
    for c in costs:
        times = " | ".join(f"{t:.2f}" for t in (c.plain, c.recorded, c.adjoint, c.forward, c.gradient))
        lines.append(
            f"| {c.case} | {c.steps} | {c.slots} | {times} | {c.parts_share:.2f} "
            f"| {c.segment_share:.2f} ({SEGMENT_BAR}) | {c.rollout_share:.2f} ({c.rollout_bar}) |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Parses the command line, measures and writes the report."""
    known = [name for name, case in CASES.items() if case.worlds == 1]
    parser = argparse.ArgumentParser(prog="python -m tools.bench.checkpoints", description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="case", help=f"default: all of {', '.join(known)}")
    parser.add_argument("--repeats", type=int, default=9)
    add_files(parser)
    options = parser.parse_args()
    if unknown := [name for name in options.cases if name not in known]:
        parser.error(f"no case {', '.join(unknown)} of one world; cases: {', '.join(known)}")
    chosen = [CASES[name] for name in options.cases or known]
    absent = [case.name for case in chosen if not case.path.is_file()]
    if absent:
        print(f"skipped, their models are not beside the project: {', '.join(absent)}", file=sys.stderr)
    costs = [measure(case, options.repeats) for case in chosen if case.name not in absent]
    found = {"environment": environment("tools.bench.checkpoints"), "costs": [asdict(cost) for cost in costs]}
    publish(options, to_markdown(costs), found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
