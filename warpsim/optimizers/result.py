"""What an optimizer returns: the best it saw, how it got there, why it stopped, and how to go on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import torch

Stopped = Literal["converged", "target", "iterations", "time", "stalled", "interrupted", "non-finite", "no slope"]
"""Why an optimizer stopped: the gradient vanished or the loss no longer changes; the loss wanted was reached; a budget
ran out; no step makes progress; Ctrl-C or a callback said so; the loss or its gradient is not finite at the start; the
gradient is exactly zero at the start, where the loss is not."""


@dataclass(frozen=True)
class HistoryEntry:
    """One iteration.

    Attributes:
        iteration: From 0, the start.
        loss: At this iterate.
        gradient_norm: Largest component of the gradient, without those that push against a bound; 0 at an optimum.
        seconds: Since the start, of all runs that were resumed into one.
        evaluations: Losses computed so far, candidates counted one by one.
        dropped: How many of them could not be simulated, of methods that try several at once.
    """

    iteration: int
    loss: float
    gradient_norm: float
    seconds: float
    evaluations: int
    dropped: int = 0


@dataclass
class Result:
    """The end of a search.

    Attributes:
        x: (n,): the best x seen.
        loss: Its loss.
        stopped: Why it stopped.
        message: The same as a sentence.
        history: One entry per iteration.
        state: Plain data (JSON can hold it) from which the same method goes on as if it had never stopped.
        report: What a method knows besides, e.g. the covariance of `levenberg_marquardt`.
    """

    x: torch.Tensor
    loss: float
    stopped: Stopped
    message: str
    history: list[HistoryEntry]
    state: dict[str, Any]
    report: Any = field(default=None)

    @property
    def converged(self) -> bool:
        """Whether it ended at an optimum or at the loss that was wanted."""
        return self.stopped in ("converged", "target")

    @property
    def iterations(self) -> int:
        """Iterations made."""
        return self.history[-1].iteration

    @property
    def evaluations(self) -> int:
        """Losses computed."""
        return self.history[-1].evaluations

    @property
    def dropped(self) -> int:
        """Candidates that could not be simulated, of methods that try several at once."""
        return self.history[-1].dropped

    @property
    def seconds(self) -> float:
        """Wall time."""
        return self.history[-1].seconds

    def entries(self) -> list[dict[str, Any]]:
        """The history as plain data."""
        return [asdict(entry) for entry in self.history]
