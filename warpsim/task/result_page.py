"""The page of a solved task: before, after, the way there, and what was wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

from warpsim.core.errors import SimulationError
from warpsim.core.numpy_quaternions import quat_to_matrix
from warpsim.io.usd.motion import Motion
from warpsim.io.usd.reader import open_stage
from warpsim.objective import CenterOfMass, Pose, Reach, Term
from warpsim.objective.places import Fixed, Keyframes, OnBody, OnMatter
from warpsim.objective.success import Within
from warpsim.optimizers.result import HistoryEntry
from warpsim.task.course import Stop
from warpsim.task.outcome import Outcome, shown_motion
from warpsim.task.problem import TaskProblem
from warpsim.view.items.stage_items import StageReader
from warpsim.view.page.content import LossCurve, Page, RigidDrawable, Take, Target
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
) -> Page:
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
        *_learning(problem, stops),
    ]
    place = {body.name: model.layout.body(body.name) for body in scene.bodies}
    masses, centers = model.body.mass.numpy()[0], model.body.com.numpy()[0]
    return Page(
        source.stem,
        scene_bodies(
            scene,
            {name: float(masses[index]) for name, index in place.items()},
            {name: np.array(centers[index]) for name, index in place.items()},
        ),
        _both(source, result, set(place), takes),
        takes,
        joints=scene_joints(scene),
        targets=list(_targets(problem, after.motion)),
        loss=LossCurve(np.array([row.iteration for row in history]), np.array([row.loss for row in history])),
        notes=notes,
    )


def _learning(problem: TaskProblem, stops: Sequence[Stop]) -> Iterator[Take]:
    """The motions of iterates; those that cannot be simulated are left out."""
    for stop in stops:
        try:
            with torch.no_grad():
                episode = problem.episode(problem.choice(stop.x[None]), shown=True)
        except SimulationError:
            continue
        name = f"iteration {stop.iteration}"
        yield motion_take(shown_motion(episode), name, iteration=stop.iteration, loss=stop.loss)


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


def _targets(problem: TaskProblem, motion: Motion) -> Iterator[Target]:
    """Places that terms want something to be at."""
    tolerances = {c.term.name: c.tolerance for c in problem.task.conditions if isinstance(c, Within)}
    index = {body.name: place for place, body in enumerate(problem.sim.scene.bodies)}
    matters = {matter.name: matter.path for matter in problem.sim.scene.matters}
    for term in problem.task.terms:
        if not isinstance(term, Reach | Pose | CenterOfMass):
            continue
        times, positions = _path(term.target, index, motion, matters)
        subject = None if isinstance(term, CenterOfMass) else term.subject
        on_body = subject if isinstance(subject, OnBody) and subject.body in index else None
        yield Target(
            term.title,
            times,
            positions,
            None if on_body is None else on_body.body,
            None if on_body is None else np.array(on_body.offset),
            _tolerance(term, tolerances),
        )


def _tolerance(term: Term, tolerances: dict[str, float | None]) -> float | None:
    return tolerances.get(term.name)


def _path(
    place: object, index: dict[str, int], motion: Motion, matters: dict[str, str]
) -> tuple[np.ndarray, np.ndarray]:
    """(n,) s and (n, 3) m: where a place is over time."""
    if isinstance(place, Keyframes):
        return np.asarray(place.times, dtype=float), np.asarray(place.positions, dtype=float)
    if isinstance(place, OnBody) and place.body in index:
        at, turns = motion.positions[:, index[place.body]], motion.rotations[:, index[place.body]]
        return motion.times, at + quat_to_matrix(turns) @ np.array(place.offset)
    if isinstance(place, OnMatter):
        states = motion.matter_states[matters[place.matter]]
        return motion.times, states[place.field.partition(".")[2]][:, place.index]
    assert isinstance(place, Fixed), place
    return np.zeros(1), np.array([place.at], dtype=float)
