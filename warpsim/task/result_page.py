"""The page of a solved task: before, after, the way there, and what was wanted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from warpsim.core.driving import Steps
from warpsim.core.errors import SimulationError
from warpsim.io.usd.reader import open_stage
from warpsim.optimizers.result import HistoryEntry
from warpsim.scene.matters import matter_kind
from warpsim.task.course import Stop
from warpsim.task.outcome import Outcome, shown_motion
from warpsim.task.problem import TaskProblem
from warpsim.task.targets import task_targets
from warpsim.view.items.stage_items import StageReader
from warpsim.view.page.content import LossCurve, Page, RigidDrawable, Take
from warpsim.view.page.scene_content import motion_take, scene_bodies, scene_joints, stage_drawables


def result_page(
    problem: TaskProblem,
    before: Outcome,
    after: Outcome,
    stops: Sequence[Stop],
    history: Sequence[HistoryEntry],
    *,
    source: Path,
    result: Path,
    notes: Sequence[str],
) -> Steps[Page]:
    """What the page shows.

    Args:
        problem: The task on its source.
        before: The source as it stands.
        after: The result.
        stops: Iterates to show, which are simulated here.
        history: Of the search.
        source: The source's file.
        result: The result's file, which may draw things in other sizes and places.
        notes: Lines for the reader.
    """
    scene, model = problem.sim.scene, problem.sim.model
    takes = [
        motion_take(before.motion, "before", ghost=True, loss=before.loss),
        motion_take(after.motion, "after", loss=after.loss),
        *(yield from _learning(problem, stops)),
    ]
    place = {body.name: model.layout.body(body.name) for body in scene.bodies}
    soft = [drawable for matter in scene.matters for drawable in matter_kind(matter.kind).drawables(matter)]
    moved = {drawable.path for drawable in soft}
    rigid = [drawable for drawable in _both(source, result, set(place), takes) if drawable.item.name not in moved]
    masses, centers = model.body.mass.numpy()[0], model.body.com.numpy()[0]
    return Page(
        source.stem,
        scene_bodies(
            scene,
            {name: float(masses[index]) for name, index in place.items()},
            {name: np.array(centers[index]) for name, index in place.items()},
        ),
        [*rigid, *soft],
        takes,
        joints=scene_joints(scene),
        targets=list(task_targets(problem.task, scene, after.motion)),
        loss=LossCurve(np.array([row.iteration for row in history]), np.array([row.loss for row in history])),
        notes=notes,
    )


def _learning(problem: TaskProblem, stops: Sequence[Stop]) -> Steps[list[Take]]:
    """The motions of iterates; those that cannot be simulated are left out."""
    takes = []
    for stop in stops:
        try:
            with torch.no_grad():
                episode = yield from problem.simulating(problem.choice(stop.x[None]), shown=True)
        except SimulationError:
            continue
        name = f"iteration {stop.iteration}"
        takes.append(motion_take(shown_motion(episode), name, iteration=stop.iteration, loss=stop.loss))
    return takes


def _both(source: Path, result: Path, bodies: set[str], takes: Sequence[Take]) -> list[RigidDrawable]:
    """Things of both files; those that differ are drawn in their own takes."""
    stages = [open_stage(path) for path in (source, result)]
    old, new = ({d.item.name: d for d in stage_drawables(stage, StageReader(stage), bodies)} for stage in stages)
    first = tuple(k for k, take in enumerate(takes) if take.ghost or take.iteration == 0)
    rest = tuple(k for k in range(len(takes)) if k not in first)
    drawables = []
    for name in dict.fromkeys((*old, *new)):
        a, b = old.get(name), new.get(name)
        if a is not None and b is not None and _alike(a, b):
            drawables.append(a)
            continue
        for drawable, shown in ((a, first), (b, rest)):
            if drawable is not None:
                drawables.append(RigidDrawable(drawable.item, drawable.visual, drawable.collider, shown))
    return drawables


def _alike(a: RigidDrawable, b: RigidDrawable) -> bool:
    x, y = a.item, b.item
    meshes = (x.mesh is None) == (y.mesh is None) and (
        x.mesh is None or y.mesh is None or np.array_equal(x.mesh.corners, y.mesh.corners)
    )
    return (
        (x.kind, x.body, x.look) == (y.kind, y.body, y.look)
        and meshes
        and all(np.array_equal(getattr(x, name), getattr(y, name)) for name in ("size", "to_world", "color"))
    )
