"""`sweep`: what comes of a scene at every point of a grid of attributes' values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path

import numpy as np
import torch
from tqdm.auto import tqdm

from warpsim.core.driving import drive
from warpsim.core.errors import InputError, WarpsimError, whole_number
from warpsim.io.scene_files import is_usd
from warpsim.io.usd.reader import open_stage
from warpsim.objective import Condition, Term, succeeded
from warpsim.parallel.blocks import Blocks, blocks_of
from warpsim.parallel.ranks import alone, current
from warpsim.parallel.workers import Parcel, run_all
from warpsim.sim.simulator import Simulator
from warpsim.task.problem import Choice, TaskProblem
from warpsim.task.read import read_task, task_paths
from warpsim.task.solve import with_channels
from warpsim.task.sweep_table import Sweep, SweepPoint
from warpsim.task.task import Task
from warpsim.task.varied import Grid, Varied

SECONDS = 5.0
"""Simulated where there is no task and nobody says how long."""
_LEAST_BLOCKS, _MOST_WORLDS = 16, 64
"""A block is simulated at once, by one rank or worker: at least so many blocks, of at most so many worlds."""


def sweep(
    source: str | PathLike[str],
    vary: Sequence[Varied] | Mapping[str, Sequence[float]],
    task: str | Task | None = None,
    *,
    steps: int | None = None,
    terms: Sequence[Term] = (),
    conditions: Sequence[Condition] = (),
    max_contacts: int | None = None,
    executor: Executor | None = None,
    progress: bool = False,
) -> Sweep:
    """Simulates a scene at every point of a grid; print what comes of it, or save it as a table and a picture.

    With a task each point has its loss, the terms' shares and whether the conditions hold; without, energies and
    coordinates at the end. A point that cannot be simulated stays in the table with the reason. Points are simulated in
    fixed blocks, a world each: results have the same bits in one process, over ranks (inside `join`), and on executors.

    Args:
        source: A USD file.
        vary: Attributes, "/World/Leg.physics:mass", or their components, and values in the attributes' units.
        task: Path of the task's prim, or a task made in Python; None: the file's, if there is one.
        steps: Length where there is no task; None: 5 s.
        terms: More terms of the task.
        conditions: More conditions of its success.
        max_contacts: As in `Simulator`.
        executor: Whose workers simulate, any of `concurrent.futures`, see docs/parallel.md.
        progress: Show a bar.

    Raises:
        InputError: What is to be varied does not exist, or cannot matter.
    """
    path = Path(fspath(source))
    if not is_usd(path):
        raise InputError(f"{path}: a sweep varies USD attributes; write the robot as USD with `warpsim convert` first")
    sim = Simulator(path, max_contacts=max_contacts)
    listed = [Varied(name, tuple(values)) for name, values in vary.items()] if isinstance(vary, Mapping) else vary
    grid = Grid(sim, listed)
    if task is None and not task_paths(open_stage(path)):
        if terms or conditions:
            raise InputError(f"{path} has no task that terms and conditions could be added to; give task= as well")
        work = _Motion(
            sim, grid, whole_number("steps", max(1, round(SECONDS / sim.timestep)) if steps is None else steps)
        )
        return Sweep(path.stem, grid.varied, grid.unit, _swept(work, executor, progress))
    if steps is not None:
        raise InputError(f"{path}: the task says how long to simulate; leave out the number of steps")
    wanted = task if isinstance(task, Task) else read_task(path, sim.scene, task)
    wanted = replace(wanted, terms=(*wanted.terms, *terms), conditions=(*wanted.conditions, *conditions))
    problem = TaskProblem(with_channels(sim, wanted), wanted)
    return Sweep(wanted.name, grid.varied, grid.unit, _swept(_Judged(problem, grid), executor, progress))


class _Motion:
    """Points of a scene without a task: the end of a rollout."""

    def __init__(self, sim: Simulator, grid: Grid, steps: int) -> None:
        self.grid, self._sim, self._steps = grid, sim, steps
        self._simulators = {1: sim}

    def __reduce__(self) -> tuple[Callable[..., _Motion], tuple[object, ...]]:
        return _motion, (self._sim, self.grid.varied, self._steps)

    def results(self, points: Sequence[Sequence[float]]) -> list[tuple[dict[str, float], bool | None]]:
        """What comes of each point, and no verdict."""
        worlds = len(points)
        if worlds not in self._simulators:
            self._simulators[worlds] = self._sim.with_worlds(worlds)
        sim = self._simulators[worlds]
        energies = ("kinetic_energy", "potential_energy")
        with torch.no_grad():
            end = sim.rollout(
                self._steps, parameters=self.grid.attributes(points), outputs=energies, keep_every=self._steps
            )
        columns = {f"{name} (J)": end.numpy(name)[-1] for name in energies}
        for name in sim.joint_names:
            for kind, values in (("q", end.joint_position(name)), ("qd", end.joint_velocity(name))):
                numbers = np.asarray(values[-1].cpu()).reshape(worlds, -1)
                for k, column in enumerate(numbers.T):
                    columns[f"{kind} {name}" + (f"[{k}]" if numbers.shape[1] > 1 else "")] = column
        return [({name: float(column[k]) for name, column in columns.items()}, None) for k in range(worlds)]


class _Judged:
    """Points of a scene with a task: loss, terms, success."""

    def __init__(self, problem: TaskProblem, grid: Grid) -> None:
        self.grid, self._problem = grid, problem

    def __reduce__(self) -> tuple[Callable[..., _Judged], tuple[object, ...]]:
        return _judged, (self._problem, self.grid.varied)

    def results(self, points: Sequence[Sequence[float]]) -> list[tuple[dict[str, float], bool | None]]:
        """Loss and terms of each point, and whether all conditions hold."""
        problem, authored = self._problem, self._problem.authored()
        controls = tuple(values.expand(len(points), *values.shape[1:]) for values in authored.controls)
        choice = Choice(self.grid.attributes(points), controls, authored.duration.expand(len(points)))
        with torch.no_grad():
            episode = drive(problem.simulating(choice))
            losses = problem.total(episode)
            found: list[tuple[dict[str, float], bool | None]] = []
            for world in range(len(points)):
                terms = problem.term_losses(episode, world)
                verdicts = problem.judge(episode, world)
                shares = terms if len(terms) > 1 else {}
                found.append(({"loss": float(losses[world]), **shares}, succeeded(verdicts) if verdicts else None))
        return found


def _motion(sim: Simulator, varied: Sequence[Varied], steps: int) -> _Motion:
    return _Motion(sim, Grid(sim, varied), steps)


def _judged(problem: TaskProblem, varied: Sequence[Varied]) -> _Judged:
    return _Judged(problem, Grid(problem.sim, varied))


_Work = _Motion | _Judged


def _swept(work: _Work, executor: Executor | None, progress: bool) -> tuple[SweepPoint, ...]:
    """All points, block by block."""
    points = work.grid.points
    blocks = blocks_of(len(points), max(_LEAST_BLOCKS, -(-len(points) // _MOST_WORLDS)))
    spans = [blocks.worlds(block) for block in range(blocks.number)]
    with _bar(len(points), progress) as seen:
        if executor is not None:
            names = [f"points {span.start} to {span.stop - 1} of the sweep" for span in spans]
            made = run_all(executor, _block, Parcel(work), spans, names, done=lambda job: seen(job.stop - job.start))
        elif current() is not None:
            made = _over_ranks(work, blocks, seen)
        else:
            made = []
            for span in spans:
                made.append(_block(work, span))
                seen(span.stop - span.start)
    return tuple(point for part in made for point in part)


def _over_ranks(work: _Work, blocks: Blocks, seen: Callable[[int], object]) -> list[list[SweepPoint]]:
    """Each rank simulates its blocks; after each the ranks exchange what they have, so that all see how far all are."""
    ranks = current()
    assert ranks is not None
    mine = blocks.of_rank(ranks.rank, ranks.size)
    found: dict[int, list[SweepPoint]] = {}
    for turn in range(max(len(blocks.of_rank(rank, ranks.size)) for rank in range(ranks.size))):
        made: tuple[int, list[SweepPoint]] | None = None
        if turn < len(mine):
            with alone():
                made = mine[turn], _block(work, blocks.worlds(mine[turn]))
            ranks.worlds += len(made[1])
        for other in ranks.gather(made, f"points of a sweep, block {turn + 1} of each rank"):
            if other is not None:
                found[other[0]] = other[1]
                seen(len(other[1]))
    return [found[block] for block in range(blocks.number)]


def _block(work: _Work, span: slice) -> list[SweepPoint]:
    """The points of a block: at once, or one by one where one of them cannot be simulated."""
    points = work.grid.points[span]
    try:
        made = work.results(points)
    except WarpsimError:
        return [_one(work, number, point) for number, point in enumerate(points, span.start)]
    return [
        SweepPoint(number, tuple(point), results, success)
        for number, point, (results, success) in zip(range(span.start, span.stop), points, made, strict=True)
    ]


def _one(work: _Work, number: int, point: Sequence[float]) -> SweepPoint:
    try:
        ((results, success),) = work.results([point])
    except WarpsimError as error:
        return SweepPoint(number, tuple(point), {}, None, str(error))
    return SweepPoint(number, tuple(point), results, success)


@contextmanager
def _bar(points: int, shown: bool) -> Iterator[Callable[[int], object]]:
    if not shown:
        yield lambda count: None
        return
    with tqdm(total=points, desc="sweep", unit="point") as bar:
        yield bar.update
