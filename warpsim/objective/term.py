"""`Term`: what every part of an objective offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch

from warpsim.core.errors import InputError
from warpsim.objective.episode import END, Episode, When
from warpsim.sim.simulator import Simulator


@dataclass(frozen=True, kw_only=True)
class Term(ABC):
    """weight/2 · Σ error², at one frame or as the mean over frames; errors are SI.

    Attributes:
        weight: Factor; 0 for a term of which only the success is wanted.
        when: At which frames.
        name: Used in messages; a USD task's is the prim's path.
    """

    unit: ClassVar[str] = ""
    """Of `measure`."""
    quantity: ClassVar[str] = "error"
    """What `measure` is, in words."""

    weight: float = 1.0
    when: When = END
    name: str = ""

    def __post_init__(self) -> None:
        if not 0.0 <= self.weight < float("inf"):
            raise InputError(f"{self.title}: weight {self.weight} must be a finite number, 0 or more")

    @property
    def title(self) -> str:
        """Its name, or its kind."""
        return self.name or type(self).__name__

    @property
    def label(self) -> str:
        """The last part of its title, for reports."""
        return self.title.rpartition("/")[2]

    @property
    def outputs(self) -> tuple[str, ...]:
        """Outputs of the rollout that it reads."""
        return ()

    def check(self, sim: Simulator) -> None:  # noqa: B027  most terms name nothing
        """Raises if the simulator lacks something the term names."""

    @abstractmethod
    def errors(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W, m) in SI, in torch's graph; zero where all is as wanted."""

    def residuals(self, episode: Episode) -> torch.Tensor:
        """(W, M): the loss is half their sum of squares."""
        errors = self.errors(episode, self.when.frames(episode.times))
        scale = (self.weight / len(errors)) ** 0.5
        return scale * errors.transpose(0, 1).reshape(errors.shape[1], -1)

    def loss(self, episode: Episode) -> torch.Tensor:
        """(W,)."""
        return 0.5 * self.residuals(episode).square().sum(-1)

    def measure(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W) the physical size of the error, in `unit`, without gradient: what a tolerance is about."""
        with torch.no_grad():
            return torch.linalg.vector_norm(self.errors(episode, frames), dim=-1)


def along(axes: str) -> list[int]:
    """World axes "x", "y", "z" as places in a vector."""
    if not axes or len(set(axes)) != len(axes) or not set(axes) <= set("xyz"):
        raise InputError(f"axes={axes!r}; use some of 'x', 'y' and 'z', each once")
    return ["xyz".index(axis) for axis in axes]
