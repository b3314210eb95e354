"""`stress`: whether a result holds when the simulator is changed a little, or only as it was optimized."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, replace
from os import PathLike, fspath
from pathlib import Path

import torch

from warpsim.check.records import RunRecord
from warpsim.check.records.labels import simulator_exploit
from warpsim.core.driving import drive
from warpsim.core.errors import TaskError
from warpsim.objective import Condition, Term
from warpsim.parallel.workers import Parcel, run_all
from warpsim.sim.simulator import Simulator
from warpsim.task.controls import Control, Feedback, Steps
from warpsim.task.outcome import Outcome, outcome
from warpsim.task.problem import TaskProblem
from warpsim.task.read import read_task
from warpsim.task.record import rollout_record
from warpsim.task.solve import with_channels
from warpsim.task.task import Task
from warpsim.task.variations import Variation, variations

AS_OPTIMIZED = "as optimized"


@dataclass(frozen=True)
class StressOutcome:
    """One replay.

    Attributes:
        name: What was changed.
        loss: The task's objective; infinite where it could not be simulated.
        success: Whether all conditions hold; None: the task has none.
        text: The conditions that do not hold, with their figures, or why it could not be simulated.
    """

    name: str
    loss: float
    success: bool | None
    text: str = ""


@dataclass(frozen=True)
class Stress:
    """A result under stress; print it.

    Attributes:
        outcomes: As optimized, then one for each variation.
        record: The run record of the result as it stands, with them as `more["stress"]`, and labels.
    """

    outcomes: tuple[StressOutcome, ...]
    record: RunRecord

    @property
    def exploit(self) -> str | None:
        """Why the result is called a simulator exploit; None: it is not."""
        return simulator_exploit(self.record)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        width = max(len(outcome.name) for outcome in self.outcomes)
        words = {True: "yes", False: "NO", None: "–"}
        yield f"{'variation':<{width}}  {'loss':>10}  success"
        for o in self.outcomes:
            yield f"{o.name:<{width}}  {o.loss:>10.4g}  {words[o.success]:<7}  {o.text}".rstrip()
        yield self._verdict()

    def _verdict(self) -> str:
        if self.outcomes[0].success is None:
            return "the task has no condition of success, so only losses can be compared: give a term a tolerance"
        if not self.outcomes[0].success:
            return "NOT SOLVED as it stands"
        if self.exploit is not None:
            return f"SIMULATOR EXPLOIT: {self.exploit}"
        lost = [outcome.name for outcome in self.outcomes if not outcome.success]
        return f"HOLDS at {len(self.outcomes) - 1 - len(lost)} of {len(self.outcomes) - 1} variations" + (
            f"; lost at {', '.join(lost)}" if lost else ""
        )


def stress(
    source: str | PathLike[str],
    task: str | Task | None = None,
    *,
    terms: Sequence[Term] = (),
    conditions: Sequence[Condition] = (),
    seed: int = 0,
    max_contacts: int | None = None,
    executor: Executor | None = None,
) -> Stress:
    """Replays a result with one thing changed at a time; docs/evidence.md lists them.

    Args:
        source: A result of `warpsim optimize`, or any USD file with a task.
        task: Path of the task's prim, or a task made in Python; None: the file's only one.
        terms: More terms, those that were added in Python to optimize it.
        conditions: More conditions of success, likewise.
        seed: Of control noise.
        max_contacts: As in `Simulator`.
        executor: Whose workers replay it; any of `concurrent.futures`, see docs/parallel.md.
    """
    path = Path(fspath(source))
    sim = Simulator(path, max_contacts=max_contacts)
    wanted = task if isinstance(task, Task) else read_task(path, sim.scene, task)
    wanted = replace(wanted, terms=(*wanted.terms, *terms), conditions=(*wanted.conditions, *conditions))
    problem = TaskProblem(with_channels(sim, wanted), wanted)
    found = drive(outcome(problem))
    changed = list(variations(sim.scene, contacts=sim.model.npair > 0, controls=bool(problem.controls), seed=seed))
    if executor is None:
        made = [_replayed(problem, variation) for variation in changed]
    else:
        made = run_all(executor, _replayed, Parcel(problem), changed, [variation.name for variation in changed])
    lines = [_judged(AS_OPTIMIZED, found), *made]
    return Stress(tuple(lines), rollout_record(problem, found, seed=seed, more={"stress": [asdict(r) for r in lines]}))


def _replayed(problem: TaskProblem, variation: Variation) -> StressOutcome:
    return _outcome(variation.name, varied(problem, variation))


def varied(problem: TaskProblem, variation: Variation) -> TaskProblem:
    """The same values in a changed simulator."""
    scene, task = variation.scene(problem.sim.scene), replace(problem.task, variables=())
    if variation.step != 1.0:
        # whole steps of the same duration: an odd number of steps has no exact half
        steps = max(1, round(problem.steps / variation.step))
        timestep = problem.sim.timestep * problem.steps / steps
        scene = replace(scene, options=replace(scene.options, timestep=timestep))
        task = replace(task, steps=steps, controls=tuple(_held(problem, place, steps) for place in _places(problem)))
    sim = Simulator(scene, controls=problem.sim.control_names, device=str(problem.sim.model.device))
    return TaskProblem(sim, task, transmission=variation.transmission)


def _places(problem: TaskProblem) -> range:
    return range(len(problem.controls))


def _held(problem: TaskProblem, place: int, steps: int) -> Control:
    """A control for another number of steps: each value is held for as long as it was; a feedback stays."""
    bound = problem.controls[place]
    if isinstance(bound.control, Feedback):
        return bound.control
    signal = bound.signal(problem.authored().controls[place])[:, 0]
    steps_read = [min(k * problem.steps // steps, problem.steps - 1) for k in range(steps)]
    return Steps(
        name=bound.control.name,
        channel=bound.channel,
        targets=bound.targets,
        values=signal[torch.tensor(steps_read)].ravel().tolist(),
        lower=[-math.inf],
        upper=[math.inf],
    )


def _outcome(name: str, problem: TaskProblem) -> StressOutcome:
    try:
        found = drive(outcome(problem))
    except TaskError as error:  # the changed simulator blows up: no fault of the task's
        return StressOutcome(name, math.inf, False if problem.task.conditions else None, str(error))
    return _judged(name, found)


def _judged(name: str, found: Outcome) -> StressOutcome:
    missed = [verdict.text for verdict in found.verdicts if not verdict.met]
    return StressOutcome(name, found.loss, found.solved, "; ".join(missed))
