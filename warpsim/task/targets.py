"""What a task wants, as marks on a page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from pxr import Usd

from warpsim.core.errors import WarpsimError
from warpsim.core.numpy_quaternions import quat_to_matrix
from warpsim.io.usd.motion import Motion
from warpsim.io.usd.reader import read_usd
from warpsim.objective import CenterOfMass, Pose, Reach, Term
from warpsim.objective.places import Fixed, Keyframes, OnBody, OnMatter
from warpsim.objective.success import Within
from warpsim.scene import Scene
from warpsim.task.read import read_task
from warpsim.task.task import Task
from warpsim.view.page.content import Page, Target


def with_targets(page: Page, stage: Usd.Stage) -> Page:
    """A page of a stage, with the targets of its task; a task that cannot be read is no matter for looking at it.

    Args:
        page: Of the stage, its scene's bodies first.
        stage: With one task.
    """
    try:
        scene = read_usd(stage)
        task = read_task(stage, scene)
    except WarpsimError:
        return page
    take, count = page.takes[0], len(scene.bodies)
    none = np.zeros((len(take.times), 0))
    motion = Motion(take.times, none, none, take.positions[:, :count], take.rotations[:, :count])
    return replace(page, targets=list(task_targets(task, scene, motion)))


def task_targets(task: Task, scene: Scene, motion: Motion) -> Iterator[Target]:
    """Places that terms want something to be at."""
    tolerances = {c.term.name: c.tolerance for c in task.conditions if isinstance(c, Within)}
    index = {body.name: place for place, body in enumerate(scene.bodies)}
    matters = {matter.name: matter.path for matter in scene.matters}
    for term in task.terms:
        if not isinstance(term, Reach | Pose | CenterOfMass):
            continue
        if isinstance(term.target, OnMatter) and not motion.matter_states:
            continue  # of a file that was not simulated here
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
