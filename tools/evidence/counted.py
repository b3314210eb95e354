"""A problem that counts what is simulated for it."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from warpsim.task.problem import TaskProblem


class CountedProblem:
    """A task as a `Problem`, with a count of simulator steps over all worlds.

    Attributes:
        forward: Steps simulated.
        adjoint: Steps differentiated; each costs about two more: it is run again for the tape, and pulled back.
    """

    def __init__(self, task: TaskProblem) -> None:
        self._task = task
        self.start, self.lower, self.upper = task.start, task.lower, task.upper
        self.names: Sequence[str] = task.names
        self.forward = self.adjoint = 0

    def loss(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`."""
        self.forward += self._task.steps
        return self._watched(self._task.loss(x), self._task.steps)

    def losses(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`."""
        steps = len(x) * self._task.steps
        self.forward += steps
        return self._watched(self._task.losses(x), steps)

    def _watched(self, found: torch.Tensor, steps: int) -> torch.Tensor:
        if found.requires_grad:
            found.register_hook(lambda _: self._differentiated(steps))
        return found

    def residuals(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`."""
        return self.batched_residuals(x[None])[0]

    def batched_residuals(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`."""
        self.forward += len(x) * self._task.steps
        return self._task.batched_residuals(x)

    def _differentiated(self, steps: int) -> None:
        self.adjoint += steps
