"""`LiveSearch`: a search in the browser while it runs: the motion of its iterate, and its losses so far."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

import torch

from warpsim.core.errors import SimulationError
from warpsim.optimizers.search import Progress
from warpsim.sim.trajectory import Trajectory
from warpsim.task.course import iterate
from warpsim.task.outcome import Outcome
from warpsim.task.problem import TaskProblem
from warpsim.task.targets import task_targets
from warpsim.view.page.content import Target

_EVERY = 0.5
"""s between motions that are shown, at least: each is simulated for it."""


class SearchViewer(Protocol):
    """What a search asks of a viewer, e.g. of `sim.viewer()`."""

    def mark(self, targets: Sequence[Target]) -> None:
        """Draws targets."""

    def play(
        self, trajectory: Trajectory, *, label: str = "", losses: Sequence[tuple[int, float]] | None = None
    ) -> None:
        """Plays a motion, beside the losses so far."""

    def hold(self) -> None:
        """Waits while whoever looks wants a pause."""

    @property
    def watchers(self) -> int:
        """How many look."""


class LiveSearch:
    """Shows a search to a viewer."""

    def __init__(self, viewer: SearchViewer, problem: TaskProblem, before: Outcome) -> None:
        """Marks the task's targets.

        Args:
            viewer: Of the same scene.
            problem: What is searched.
            before: Where it starts.
        """
        self._viewer, self._problem = viewer, problem
        self._losses: list[tuple[int, float]] = []
        self._shown = -_EVERY
        viewer.mark(list(task_targets(problem.task, problem.sim.scene, before.motion)))

    def see(self, seen: Progress) -> None:
        """Takes an iteration: shows it, if somebody looks, and waits while they want a pause."""
        stop = iterate(seen)
        self._losses.append((stop.iteration, stop.loss))
        if self._viewer.watchers and time.perf_counter() - self._shown >= _EVERY:
            self.show(stop.x, f"iteration {stop.iteration} · loss {stop.loss:.4g}")
            self._shown = time.perf_counter()
        self._viewer.hold()

    def show(self, x: torch.Tensor, label: str) -> None:
        """Plays the motion of an iterate; one that cannot be simulated leaves the one before.

        Args:
            x: (n,).
            label: A line to show with it.
        """
        try:
            with torch.no_grad():
                episode = self._problem.episode(self._problem.choice(x[None].detach()), shown=True)
        except SimulationError:
            return
        assert isinstance(episode.trajectory, Trajectory)
        self._viewer.play(episode.trajectory, label=label, losses=self._losses)
