"""`SuccessWatch`: which iterate of a search comes nearest to success, which is not always the one of the least loss."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch

from warpsim.objective import Episode, Verdict
from warpsim.optimizers.result import Result
from warpsim.optimizers.search import Progress
from warpsim.task.problem import TaskProblem

_REMEMBERED = 64
"""Latest candidates whose verdicts are known, so that no iterate is simulated again to be judged."""


class SuccessWatch:
    """Judges the iterates of a search by the task's conditions, from the rollouts that the search makes anyway."""

    def __init__(self, problem: TaskProblem) -> None:
        self._problem = problem
        self._known: dict[bytes, float] = {}
        self._best: tuple[float, float, torch.Tensor] | None = None
        problem.watch = self._note

    def see(self, seen: Progress) -> Progress:
        """Takes note of an iterate; returns what was seen with the iterate nearest to success as its best."""
        self._consider(seen.x, seen.entry.loss)
        assert self._best is not None
        _, loss, x = self._best
        return dataclasses.replace(seen, best_x=x, best_loss=loss)

    @property
    def succeeded(self) -> bool:
        """Whether an iterate met all conditions."""
        return self._best is not None and self._best[0] == 0.0

    def result(self, found: Result) -> Result:
        """A search's result with the iterate that comes nearest to success."""
        self._consider(found.x, found.loss)
        assert self._best is not None
        _, loss, x = self._best
        if self.succeeded:
            found = dataclasses.replace(found, stopped="target", message="all conditions of success are met")
        return dataclasses.replace(found, x=x, loss=loss)

    def _consider(self, x: torch.Tensor, loss: float) -> None:
        key = _key(x)
        if key not in self._known:  # a resumed search, or one that has tried much else since
            with torch.no_grad():
                self._note(x[None], self._problem.episode(self._problem.choice(x[None])))
        candidate = (self._known[key], loss, x.detach().clone())
        if self._best is None or candidate[:2] < self._best[:2]:
            self._best = candidate

    def _note(self, x: torch.Tensor, episode: Episode) -> None:
        with torch.no_grad():
            for world, row in enumerate(x.detach()):
                self._known[_key(row)] = _shortfall(self._problem.judge(episode, world))
        for key in list(self._known)[:-_REMEMBERED]:
            del self._known[key]


def _key(x: torch.Tensor) -> bytes:
    return x.detach().cpu().numpy().tobytes()


def _shortfall(verdicts: Sequence[Verdict]) -> float:
    """0 where all conditions are met; else by how much they are not, each relative to its figure and bound."""
    missed = [v for v in verdicts if not v.met]
    return sum(abs(v.value - v.bound) / max(abs(v.value), abs(v.bound), 1e-300) for v in missed)
