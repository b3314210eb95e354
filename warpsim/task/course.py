"""`Course`: iterates of a search that are worth looking at, kept while it runs."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from warpsim.optimizers.search import Progress


@dataclass(frozen=True)
class Stop:
    """One iterate.

    Attributes:
        iteration: From 0, the start.
        loss: As the search saw it.
        x: (n,).
    """

    iteration: int
    loss: float
    x: torch.Tensor


class Course:
    """Keeps iterations 0, 1, 2, 5, 10, 20, 50 … and the last one."""

    def __init__(self) -> None:
        self._kept: list[Stop] = []
        self._last: Stop | None = None

    def see(self, seen: Progress) -> None:
        """Takes note of an iteration."""
        self._last = iterate(seen)
        if is_shown(seen.entry.iteration):
            self._kept.append(self._last)

    def stops(self) -> tuple[Stop, ...]:
        """What was kept, in order."""
        if self._last is None or (self._kept and self._kept[-1] is self._last):
            return tuple(self._kept)
        return (*self._kept, self._last)


def iterate(seen: Progress) -> Stop:
    """Where a search stands; of several starts side by side, the best so far."""
    several = seen.x.shape != seen.best_x.shape
    loss, x = (seen.best_loss, seen.best_x) if several else (seen.entry.loss, seen.x)
    return Stop(seen.entry.iteration, loss, x.detach().clone())


def is_shown(iteration: int) -> bool:
    """Whether a number is 0, or 1, 2 or 5 times a power of ten."""
    digits = str(iteration)
    return digits[0] in "0125" and set(digits[1:]) <= {"0"}
