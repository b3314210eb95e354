"""`optimize`: from a file with a task to the file solved."""

from __future__ import annotations

import dataclasses
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import torch

from warpsim.core.driving import Steps, drive
from warpsim.core.errors import InputError, TaskError, whole_number
from warpsim.io.load import ledger_told, load_scene
from warpsim.io.reading_limits import trusting
from warpsim.io.scene_files import is_usd
from warpsim.objective import Condition, Term
from warpsim.optimizers.minimize import minimizing
from warpsim.optimizers.multi_start import Exploring, multi_starting
from warpsim.optimizers.result import Result
from warpsim.optimizers.search import Progress, Stopping
from warpsim.parallel.ranks import Ranks, current
from warpsim.sim.simulator import Simulator
from warpsim.tape.memory import MemoryLike
from warpsim.task.course import Course
from warpsim.task.folder import ResultFolder
from warpsim.task.live_search import LiveSearch, SearchViewer
from warpsim.task.optimized import DEFAULT_METHOD, OptimizedTask, search_key
from warpsim.task.outcome import Outcome, attribute_gradients, outcome
from warpsim.task.problem import TaskProblem
from warpsim.task.read import read_task
from warpsim.task.success_watch import SuccessWatch
from warpsim.task.task import SearchSpec, Task
from warpsim.task.trajectory import TrajectoryTask
from warpsim.task.unreached import unreached
from warpsim.task.values import chosen_values, is_prim

DIVIDED_METHODS = ("levenberg_marquardt",)
"""Methods that roll out several worlds at once from a single start, which ranks share."""


def optimize(
    source: str | PathLike[str] | Simulator,
    task: str | Task | None = None,
    *,
    method: str | None = None,
    iterations: int | None = None,
    seconds: float | None = None,
    seed: int | None = None,
    starts: int | None = None,
    memory: MemoryLike = None,
    terms: Sequence[Term] = (),
    conditions: Sequence[Condition] = (),
    folder: str | PathLike[str] | None = None,
    resume: bool = False,
    progress: bool = False,
    viewer: SearchViewer | None = None,
) -> OptimizedTask:
    """Optimizes what a task says may vary.

    Ctrl-C ends the search and returns the best so far. Inside `warpsim.parallel.join` ranks share the worlds, all
    return the same, and rank 0 keeps the search in its folder.

    Args:
        source: A USD file, or a simulator of one.
        task: Path of the task's prim, or a task made in Python; None: the file's only one.
        method: Instead of the task's: "lbfgs", "adam", "polyak", "levenberg_marquardt" or "ilqr".
        iterations: Most iterations, instead of the task's.
        seconds: Most wall time, likewise.
        seed: Likewise.
        starts: Number of starting points, likewise.
        memory: Of differentiated rollouts, likewise.
        terms: More terms, e.g. functions of your own.
        conditions: More conditions of success.
        folder: Where the best so far is kept while the search runs; None: nowhere.
        resume: Go on with the search that was kept in `folder`.
        progress: Show a bar with loss and gradient norm.
        viewer: Of the scene, as `sim.viewer()` opens it: plays the motion of the iterate beside the losses so far, and
            holds the search while whoever looks wants a pause. It is left open.

    Raises:
        TaskError: The task is wrong; the message begins with the prim that is.
    """
    overrides = {"method": method, "iterations": iterations, "seconds": seconds, "seed": seed, "starts": starts}
    wanted = Wanted(task, overrides, memory, terms, conditions)
    return drive(optimizing(source, wanted, folder=folder, resume=resume, progress=progress, viewer=viewer))


@dataclasses.dataclass(frozen=True)
class Wanted:
    """Which task, and what of it is replaced or added to; see `optimize`.

    Attributes:
        task: Path of its prim, or a task.
        overrides: Of its search, by name; None: as the task says.
        memory: Of differentiated rollouts.
        terms: More terms.
        conditions: More conditions of success.
    """

    task: str | Task | None = None
    overrides: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    memory: MemoryLike = None
    terms: Sequence[Term] = ()
    conditions: Sequence[Condition] = ()


def optimizing(
    source: str | PathLike[str] | Simulator,
    asked: Wanted,
    *,
    folder: str | PathLike[str] | None = None,
    resume: bool = False,
    progress: bool = False,
    viewer: SearchViewer | None = None,
) -> Steps[OptimizedTask]:
    """`optimize` as steps, for whoever drives them; arguments as there."""
    sim, path = _open(source)
    task = asked.task
    wanted = task if isinstance(task, Task) else read_task(path, sim.scene, task)
    terms, conditions = (*wanted.terms, *asked.terms), (*wanted.conditions, *asked.conditions)
    wanted = dataclasses.replace(wanted, terms=terms, conditions=conditions)
    sim = with_channels(sim, wanted)
    search = _overridden(wanted.search, **asked.overrides)
    problem = TaskProblem(sim, wanted, memory=asked.memory)
    before = yield from outcome(problem)
    ranks = current()
    writes = folder is not None and (ranks is None or ranks.first)
    kept = ResultFolder(Path(fspath(folder)), problem, path) if folder is not None and writes else None
    key = search_key(path, wanted, search)
    if resume and folder is None:
        raise InputError("resume=True needs folder=, where the search was kept")
    state = _kept_state(kept, key, ranks) if resume else None

    course = Course()
    live = LiveSearch(viewer, problem, before) if viewer is not None else None
    watchers = (course.see, *((live.see,) if live is not None else ()))
    result = yield from _search(problem, search, kept, key, state, progress, watchers)
    if live is not None:
        yield partial(
            live.show, result.x, f"{result.stopped} after {result.iterations} iterations · loss {result.loss:.4g}"
        )
    before = dataclasses.replace(before, gradients=(yield from attribute_gradients(problem, problem.start)))
    diagnosis: tuple[str, ...] = ()
    if result.stopped == "no slope" and search.method != "ilqr":
        diagnosis = yield partial(unreached, problem, result.x)
    after, loaded = yield from _reloaded(problem, path, result.x)
    return OptimizedTask(problem, path, search, result, before, after, loaded, diagnosis, course.stops())


def chosen_search(
    source: str | PathLike[str], task: str | None = None, *, method: str | None, starts: int | None, seed: int | None
) -> SearchSpec:
    """How a file's task is searched; arguments as of `optimize`."""
    path = Path(fspath(source))
    with ledger_told():
        read = read_task(path, load_scene(path), task)
    return _overridden(read.search, method=method, starts=starts, seed=seed)


def _kept_state(kept: ResultFolder | None, key: Mapping[str, Any], ranks: Ranks | None) -> dict[str, Any]:
    """The state of an interrupted search: rank 0 reads it, for the folder need not be there on other machines."""

    def read() -> dict[str, Any]:
        assert kept is not None
        return kept.load_state(key)

    return read() if ranks is None else ranks.from_first(read, "reading the checkpoint")


def _search(
    problem: TaskProblem,
    search: SearchSpec,
    kept: ResultFolder | None,
    key: Mapping[str, Any],
    state: Mapping[str, Any] | None,
    progress: bool,
    watchers: Sequence[Callable[[Progress], None]],
) -> Steps[Result]:
    """Runs the optimizer, from one start or several, keeping the best so far; watchers see every iteration."""
    stopping = Stopping(iterations=search.iterations, seconds=search.seconds or math.inf)
    rated = search.method in ("adam", "polyak") and search.rate is not None
    options: dict[str, Any] = {"rate": search.rate} if rated else {}

    watch = _watch(problem, search) if search.stop_at_success else None

    def keep(seen: Progress) -> bool:
        for see in watchers:
            see(seen)
        seen = seen if watch is None else watch.see(seen)
        if kept is not None:
            kept.keep(key, seen)
        return watch is not None and watch.succeeded

    if search.method == "ilqr":
        return (yield from _search_by_ilqr(problem, search, stopping, keep, state, progress))
    common: dict[str, Any] = {"stopping": stopping, "callback": keep, "progress": progress, "resume": state}
    if search.starts > 1:
        exploring = Exploring(search.starts)
        return (
            yield from multi_starting(
                problem, search.method, seed=search.seed, exploring=exploring, **common, **options
            )
        )
    found = yield from minimizing(problem, search.method, **common, **options)
    return found if watch is None else watch.result(found)


def _watch(problem: TaskProblem, search: SearchSpec) -> SuccessWatch:
    name = problem.task.name
    if not problem.task.conditions:
        raise TaskError(f"{name}: stopAtSuccess needs a condition of success; give a term a tolerance")
    if search.starts > 1 or search.method == "ilqr":
        raise TaskError(f"{name}: stopAtSuccess goes with one start of lbfgs, adam, polyak or levenbergMarquardt")
    return SuccessWatch(problem)


def _search_by_ilqr(
    problem: TaskProblem,
    search: SearchSpec,
    stopping: Stopping,
    keep: Callable[[Progress], bool],
    state: Mapping[str, Any] | None,
    progress: bool,
) -> Steps[Result]:
    """Runs iLQR, which has a form of the problem of its own."""
    if search.starts > 1:
        raise TaskError(f"{problem.task.name}: ilqr goes from one start; use lbfgs, or starts = 1")
    made = yield partial(TrajectoryTask, problem)

    def tell(seen: Progress) -> None:
        keep(dataclasses.replace(seen, x=made.task_x(seen.x), best_x=made.task_x(seen.best_x)))

    common: dict[str, Any] = {"stopping": stopping, "callback": tell, "progress": progress, "resume": state}
    found = yield from minimizing(made.problem, "ilqr", **common)
    return dataclasses.replace(found, x=made.task_x(found.x))


def _open(source: str | PathLike[str] | Simulator) -> tuple[Simulator, Path]:
    if isinstance(source, Simulator):
        if source.path is None or not is_usd(source.path):
            raise InputError("the simulator's scene did not come from a USD file, so no result can be written over it")
        return source, source.path
    path = Path(fspath(source))
    if not is_usd(path):
        raise InputError(f"{path}: tasks live in USD files; convert it with `warpsim convert` and add one")
    return Simulator(path), path


def with_channels(sim: Simulator, task: Task) -> Simulator:
    """A simulator whose controls are those the task drives."""
    channels = tuple(dict.fromkeys(c.channel or sim.control_names[0] for c in task.controls))
    if set(channels) <= set(sim.control_names) and sim.worlds == 1:
        return sim
    return sim.with_worlds(1, controls=channels or None)


def _overridden(search: SearchSpec, **given: Any) -> SearchSpec:
    if given.get("starts") is not None:
        whole_number("starts", given["starts"])
    made = dataclasses.replace(search, **{name: value for name, value in given.items() if value is not None})
    return dataclasses.replace(made, method=DEFAULT_METHOD) if made.method == "auto" else made


def _reloaded(problem: TaskProblem, source: Path, x: torch.Tensor) -> Steps[tuple[Outcome, TaskProblem]]:
    """The outcome of x as a whole result holds it, motion included: written, loaded, simulated; and the task loaded."""
    gradients = yield from attribute_gradients(problem, x)
    with tempfile.TemporaryDirectory() as name, trusting(source):
        folder = ResultFolder(Path(name), problem, source)
        folder.write_values(x, {})
        bare = yield from outcome(load_problem(folder.result, problem, x))
        folder.write_result(bare, chosen_values(problem, x), {})
        loaded = load_problem(folder.result, problem, x)
        after = yield from outcome(loaded, recorded=True)
        return dataclasses.replace(after, gradients=gradients), loaded


def load_problem(path: Path, problem: TaskProblem, x: torch.Tensor) -> TaskProblem:
    """The task on a result file.

    Args:
        path: The result.
        problem: The problem it came from. A task that is in the file is read from it; terms and conditions that were
            added in Python are kept.
        x: (n,): gives the controls of a task that is not in the file.
    """
    with ledger_told():
        sim = Simulator(
            path,
            controls=problem.sim.control_names,
            device=str(problem.sim.model.device),
            max_contacts=problem.sim.scene.options.max_contacts,
        )
    task = problem.task
    if is_prim(task.name):
        read = read_task(path, sim.scene, task.name)
        own = {part.name for part in read.terms}
        task = dataclasses.replace(
            read,
            terms=(*read.terms, *(term for term in task.terms if term.name not in own)),
            conditions=(*read.conditions, *task.conditions[len(read.conditions) :]),
        )
    else:
        choice = problem.choice(x[None].detach())
        chosen = (values[0].cpu().numpy().ravel().tolist() for values in choice.controls)
        controls = (dataclasses.replace(c, values=v) for c, v in zip(task.controls, chosen, strict=True))
        duration = float(choice.duration[0]) if task.duration_range else task.duration
        task = dataclasses.replace(task, controls=tuple(controls), duration=duration, steps=problem.steps)
    return TaskProblem(sim, task)
