"""Tasks from a stage: prims of our schemas → `Task`."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any

import numpy as np
from pxr import Usd

from warpsim.core.errors import InputError, TaskError, unknown_name
from warpsim.io.usd.reader import open_stage
from warpsim.scene import Scene
from warpsim.task.controls import Control, Feedback, Knots, Periodic, Steps
from warpsim.task.prims import TaskPrim, TaskStage
from warpsim.task.read_terms import CONDITIONS, TERMS, read_term
from warpsim.task.task import SearchSpec, Task, VariableSpec

TASK = "WarpsimTask"
_METHODS = {
    "auto": "auto",
    "lbfgs": "lbfgs",
    "adam": "adam",
    "polyak": "polyak",
    "levenbergMarquardt": "levenberg_marquardt",
    "ilqr": "ilqr",
}
_CHANNELS = {
    "auto": None,
    "actuator": "actuator",
    "driveTarget": "drive_target",
    "driveVelocity": "drive_velocity",
    "jointForce": "joint_force",
}


def task_paths(stage: Usd.Stage) -> list[str]:
    """Paths of all tasks on a stage, in order."""
    return [str(prim.GetPath()) for prim in stage.Traverse() if prim.GetTypeName() == TASK]


def read_task(source: str | PathLike[str] | Usd.Stage, scene: Scene, path: str | None = None) -> Task:
    """Reads a task.

    Args:
        source: The file or stage.
        scene: As read from it.
        path: Which task; None: the only one.

    Raises:
        TaskError: There is none, or not just one; or a prim of it is wrong: the message begins with its path.
    """
    stage = open_stage(source)
    known = task_paths(stage)
    place = stage.GetRootLayer().identifier
    if path is None:
        if not known:
            raise TaskError(f"{place}: no {TASK} prim, so nothing says what is wanted; docs/tasks.md shows one")
        if len(known) > 1:
            raise TaskError(f"{place}: several tasks, {', '.join(known)}; choose one with --task or task=")
        path = known[0]
    if path not in known:
        raise TaskError(f"{place}: {unknown_name('task', path, known)}")
    try:
        return _read(stage, scene, stage.GetPrimAtPath(path))
    except InputError as error:  # of a term's or control's own making: they know their prim by name
        raise TaskError(str(error) if str(error).startswith("/") else f"{path}: {error}") from error


def _read(stage: Usd.Stage, scene: Scene, prim: Usd.Prim) -> Task:
    own = TaskPrim(TaskStage(stage, scene), prim)
    context = TaskStage(stage, scene, own.number("startTime"))
    own = TaskPrim(context, prim)
    items = [TaskPrim(context, child) for child in prim.GetChildren()]
    for item in items:
        if item.kind not in _READ:
            raise item.fail(f"a {item.kind} cannot be part of a task; move it out of {own.path}")
    control_paths = tuple(item.path for item in items if item.kind in _CONTROLS)
    terms, conditions = [], []
    for item in items:
        if item.kind in TERMS:
            term, condition = _guarded(item, read_term, control_paths)
            terms.append(term)
            conditions += [] if condition is None else [condition]
        elif item.kind in CONDITIONS:
            conditions.append(CONDITIONS[item.kind](item))
    task = Task(
        duration=own.number("duration"),
        terms=tuple(terms),
        variables=tuple(_variable(item) for item in items if item.kind == "WarpsimVariable"),
        controls=tuple(_guarded(item, _CONTROLS[item.kind]) for item in items if item.kind in _CONTROLS),
        conditions=tuple(conditions),
        duration_range=_duration_range(own),
        steps=int(own.get("steps")) or None,
        search=_search(own),
        memory=str(own.get("memoryBudget")) or None,
        adjoint_bound=own.number("adjointBound"),
        start_code=context.start,
        name=own.path,
    )
    _check_whole(own, task)
    return task


def _guarded(item: TaskPrim, read: Callable[..., Any], *more: Any) -> Any:
    """Reads a prim; puts its path before errors that do not name it."""
    try:
        return read(item, *more)
    except InputError as error:
        raise error if str(error).startswith(item.path) else item.fail(str(error)) from error


def _check_whole(own: TaskPrim, task: Task) -> None:
    if not task.duration > 0:
        raise own.fail(f"duration is {task.duration:g} s; simulate for more than that")
    if task.steps is not None and (task.steps < 1 or task.duration_range is None):
        raise own.fail(f"steps is {task.steps}; it counts the steps of a task with a durationRange, else leave it out")
    if not (task.variables or task.controls or task.duration_range):
        raise own.fail("nothing may vary: add a WarpsimVariable, a control such as WarpsimKnots, or a durationRange")
    if not any(term.weight for term in task.terms):
        raise own.fail("nothing is wanted: add a term such as WarpsimReach, with a weight above 0")
    feedback = [control.name for control in task.controls if isinstance(control, Feedback)]
    if feedback and len(task.controls) > 1:
        raise TaskError(f"{feedback[0]}: a feedback must be the only control of its task")


def _duration_range(own: TaskPrim) -> tuple[float, float] | None:
    given = own.get("durationRange")
    if given is None:
        return None
    low, high = float(given[0]), float(given[1])
    duration = own.number("duration")
    if not 0 < low < high < np.inf or not low <= duration <= high:
        raise own.fail(f"durationRange ({low:g}, {high:g}) must hold the duration, {duration:g} s, and begin above 0")
    return low, high


def _search(own: TaskPrim) -> SearchSpec:
    iterations, starts = int(own.get("iterations")), int(own.get("starts"))
    if iterations < 1 or starts < 1:
        raise own.fail(f"iterations={iterations} and starts={starts}; give 1 or more")
    return SearchSpec(
        method=_METHODS[str(own.get("method"))],
        iterations=iterations,
        seconds=own.number("seconds") or None,
        rate=own.number("learningRate") or None,
        starts=starts,
        seed=int(own.get("seed")),
        stop_at_success=bool(own.get("stopAtSuccess")),
    )


def _variable(item: TaskPrim) -> VariableSpec:
    paths = item.targets("attributes")
    if not paths:
        raise item.fail("attributes targets nothing; name an attribute, e.g. </World/Ball.physics:velocity>")
    for path in paths:
        if not path.IsPropertyPath():
            raise item.fail(f"attributes targets the prim <{path}>; name one of its attributes, <{path}.…>")
    components = item.numbers("components")
    return VariableSpec(
        attributes=tuple(str(path) for path in paths),
        lower=_list(item.numbers("lower")),
        upper=_list(item.numbers("upper")),
        positive=bool(item.get("positive")),
        scale=item.number("scale") or None,
        components=None if components is None else tuple(int(c) for c in components),
        name=item.path,
    )


def _list(values: np.ndarray | None) -> list[float] | None:
    return None if values is None else values.tolist()


def _common(item: TaskPrim) -> dict[str, Any]:
    return {
        "name": item.path,
        "channel": _CHANNELS[str(item.get("channel"))],
        "targets": tuple(str(prim.GetPath()) for prim in item.prims("targets")),
        "values": _list(item.numbers("values")),
        "lower": _list(item.numbers("lower")),
        "upper": _list(item.numbers("upper")),
        "scale": item.number("scale") or None,
    }


def _knots(item: TaskPrim) -> Control:
    return Knots(
        count=int(item.get("count")),
        interpolation=str(item.get("interpolation")),
        metric=str(item.get("metric")),
        **_common(item),
    )


def _periodic(item: TaskPrim) -> Control:
    return Periodic(period=item.number("period"), harmonics=int(item.get("harmonics")), **_common(item))


def _feedback(item: TaskPrim) -> Control:
    joints = tuple(str(prim.GetPath()) for prim in item.prims("joints"))
    return Feedback(joints=joints, reference=_list(item.numbers("reference")), **_common(item))


_CONTROLS: dict[str, Callable[[TaskPrim], Control]] = {
    "WarpsimSteps": lambda item: Steps(**_common(item)),
    "WarpsimKnots": _knots,
    "WarpsimPeriodic": _periodic,
    "WarpsimFeedback": _feedback,
}
_READ = {*TERMS, *CONDITIONS, *_CONTROLS, "WarpsimVariable"}
