"""`warpsim optimize`: a USD file with a task → a folder with the file solved, its record and pictures."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from warpsim.cli.arguments.common import result_folder
from warpsim.cli.commands.outputs import check_outputs
from warpsim.cli.commands.ranks import joined, writes
from warpsim.core.driving import Steps
from warpsim.core.errors import InputError
from warpsim.io.scene_files import is_usd, scene_files
from warpsim.parallel.ranks import Ranks, alone
from warpsim.sim.simulator import Simulator
from warpsim.task.folder import folder_files
from warpsim.task.live_search import SearchViewer
from warpsim.task.optimized import OptimizedTask
from warpsim.task.solve import DIVIDED_METHODS, Wanted, chosen_search, optimizing
from warpsim.view.page.content import Target

SOLVED, NOT_SOLVED, INTERRUPTED = 0, 3, 130
"""Exit codes; a task without conditions of success exits as solved."""
_MOST_NUMBERS = 6


def run(arguments: argparse.Namespace) -> Steps[int]:
    """Optimizes, writes, and says how it went."""
    output = result_folder(arguments)
    if is_usd(output):
        raise InputError(f"{output}: a result is a folder of files; give e.g. -o {output.with_suffix('')}")
    if not is_usd(arguments.scene):
        raise InputError(f"{arguments.scene}: tasks live in USD files; convert it with `warpsim convert` and add one")
    if not Path(arguments.scene).is_file():
        raise InputError(f"no file {arguments.scene!r}")
    if writes() and (not output.exists() or output.is_dir()):
        check_outputs(folder_files(output), [arguments.scene], force=arguments.force, make_folder=True)
    with joined(scene_files(arguments.scene)) as ranks:
        if ranks is None:
            return (yield from (_solve_live if arguments.live else _solve)(arguments, output))
        if arguments.live:
            raise InputError("--live shows the search of one process; run it without torchrun, or leave --live out")
        search = chosen_search(
            arguments.scene, arguments.task, method=arguments.method, starts=arguments.starts, seed=arguments.seed
        )
        if search.starts > 1 or search.method in DIVIDED_METHODS:
            return (yield from _solve_over_ranks(arguments, output, ranks, search.starts))
        print(ranks.shares(1), flush=True)
    ended = (yield from _solve(arguments, output)) if ranks.first else SOLVED
    return SOLVED if ended == NOT_SOLVED else ended  # torchrun takes every other code for a failure


def _solve_over_ranks(arguments: argparse.Namespace, output: Path, ranks: Ranks, starts: int) -> Steps[int]:
    """Every rank searches, each steps its worlds, and rank 0 writes; torchrun takes any code but 0 for a failure."""
    if starts > 1:
        print(ranks.shares(starts), flush=True)
    else:
        print(f"derivatives by differences, two worlds for each number, over {ranks.size} ranks", flush=True)
    if ranks.restarts and ranks.from_first(lambda: (output / "search.json").is_file(), "looking for a checkpoint"):
        arguments.resume = True
    done = yield from _optimized(arguments, output)
    lines = ranks.summary()
    if ranks.first:
        with alone():
            yield from _written(arguments, output, done)
        print("\n".join(lines))
    return SOLVED


class _PageViewer(SearchViewer, Protocol):
    """A viewer with a page, as `sim.viewer()` opens it; it is loaded with `--live` alone."""

    @property
    def url(self) -> str:
        """Of the page."""

    def wait(self, *, for_viewer: bool = False) -> None:
        """Until whoever looks leaves, or until somebody looks."""


class _Awaited:
    """A viewer whose search begins when somebody looks: its page is complete then."""

    def __init__(self, viewer: _PageViewer) -> None:
        self._viewer = viewer
        self.play, self.hold = viewer.play, viewer.hold

    @property
    def watchers(self) -> int:
        return self._viewer.watchers

    def mark(self, targets: Sequence[Target]) -> None:
        self._viewer.mark(targets)
        print(f"open in a browser on this machine, and the search begins: {self._viewer.url}", flush=True)
        self._viewer.wait(for_viewer=True)


def _solve_live(arguments: argparse.Namespace, output: Path) -> Steps[int]:
    """Shows the search, and its result until whoever looks leaves."""
    sim = Simulator(arguments.scene, max_contacts=arguments.max_contacts)
    with sim.viewer(browser=arguments.open) as viewer:
        ended = yield from _solve(arguments, output, _Awaited(viewer))
        if ended != INTERRUPTED and viewer.watchers:
            print("the page shows the result until it is closed (Ctrl-C ends it)", flush=True)
            with suppress(KeyboardInterrupt):
                viewer.wait()
    return ended


def _solve(arguments: argparse.Namespace, output: Path, viewer: SearchViewer | None = None) -> Steps[int]:
    with _terminated_as_interrupted():
        done = yield from _optimized(arguments, output, viewer)
    yield from _written(arguments, output, done)
    if done.result.stopped == "interrupted":
        return INTERRUPTED
    return NOT_SOLVED if done.solved is False else SOLVED


def _optimized(arguments: argparse.Namespace, output: Path, viewer: SearchViewer | None = None) -> Steps[OptimizedTask]:
    overrides = {name: getattr(arguments, name) for name in ("method", "iterations", "seconds", "seed", "starts")}
    return optimizing(
        Simulator(arguments.scene, max_contacts=arguments.max_contacts),
        Wanted(arguments.task, overrides, arguments.budget),
        folder=output,
        resume=arguments.resume,
        progress=not arguments.quiet,
        viewer=viewer,
    )


def _written(arguments: argparse.Namespace, output: Path, done: OptimizedTask) -> Steps[None]:
    """Writes and says how it went."""
    written = done.save_result(output)
    print("\n".join(summary(done)), flush=True)  # pictures take longer than many a search
    written += yield from done.saving_record(output, film=not arguments.no_gif, progress=not arguments.quiet)
    print("wrote " + ", ".join(str(path) for path in written))
    if done.result.stopped == "interrupted":
        print("interrupted: this is the best so far; the same command with --resume goes on")
    print(f"look at it in a browser: {written[-1]}")


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """While open, SIGTERM does what Ctrl-C does."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def summary(done: OptimizedTask) -> Iterator[str]:
    """Lines for a person."""
    problem, result = done.problem, done.result
    yield (
        f"{done.source}, task {problem.task.name}: {len(problem.start)} numbers to choose, {problem.steps} steps of "
        f"{done.after.duration / problem.steps:.4g} s"
    )
    yield (
        f"{done.search.method}: {result.iterations} iterations, {result.evaluations} evaluations, "
        f"{result.seconds:.3g} s; {result.stopped}: {result.message}"
    )
    if problem.bias is not None:
        yield problem.bias
    yield f"loss {done.before.loss:.6g} → {done.after.loss:.6g}"
    if len(done.after.terms) > 1:
        for name, loss in done.after.terms.items():
            yield f"  {name}: {done.before.terms[name]:.4g} → {loss:.4g}"
    for path, change in done.changes.items():
        yield f"  {path}: {_shown(change['before'])} → {_shown(change['after'])} {change['unit']}"
    for bound in problem.controls:
        yield f"  {bound.control.name}: {bound.size} numbers of {bound.channel}"
    if problem.task.duration_range is not None:
        yield f"  {problem.task.name}.duration: {done.before.duration:.4g} → {done.after.duration:.4g} s"
    if done.starts is not None:
        yield from (f"  {line}" for line in done.starts.lines())
    for sentence in (*(done.identification.sentences if done.identification else ()), *done.diagnosis):
        yield f"  {sentence}"
    for verdict in done.after.verdicts:
        yield f"  {verdict.text}"
    yield {True: "SOLVED", False: "NOT SOLVED", None: "no condition of success: give a term a tolerance"}[done.solved]


def _shown(value: Any) -> str:
    """A value that fits a line."""
    if isinstance(value, list):
        parts = [_shown(item) for item in value[:_MOST_NUMBERS]]
        return f"({', '.join(parts)}{', …' if len(value) > _MOST_NUMBERS else ''})"
    return f"{value:.6g}"
