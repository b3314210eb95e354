"""What the controls cost: effort, roughness, time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from warpsim.core.errors import unknown_name
from warpsim.objective.episode import Episode
from warpsim.objective.term import Term


@dataclass(frozen=True, kw_only=True)
class _OfControls(Term):
    """Attributes.

    controls: Names of an episode's controls; empty: all of its inputs.
    """

    controls: Sequence[str] = ()

    def _chosen(self, episode: Episode) -> torch.Tensor:
        """(N, W, n)."""
        for name in self.controls:
            if name not in episode.controls:
                raise unknown_name("control of this task", name, episode.controls)
        chosen = [episode.controls[name] for name in self.controls] or list(episode.inputs.values())
        return torch.cat(chosen, -1) if chosen else torch.zeros(len(episode.times) - 1, episode.sim.worlds, 0)

    @staticmethod
    def _steps(frames: slice, count: int) -> slice:
        """Frames as steps: the last frame has no step of its own and stands for the last one."""
        return slice(min(frames.start, count - 1), min(frames.stop, count))


@dataclass(frozen=True, kw_only=True)
class Effort(_OfControls):
    """The controls themselves, in SI."""

    unit: ClassVar[str] = "SI"
    quantity: ClassVar[str] = "control"

    def errors(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(steps, W, controls)."""
        used = self._chosen(episode)
        return used[self._steps(frames, len(used))]


@dataclass(frozen=True, kw_only=True)
class Smoothness(_OfControls):
    """The rate of change of the controls from step to step, SI per second."""

    unit: ClassVar[str] = "SI/s"
    quantity: ClassVar[str] = "rate of control"

    def errors(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(steps, W, controls)."""
        used = self._chosen(episode)
        step = (episode.duration / len(used))[None, :, None]
        if len(used) < 2:
            return torch.zeros_like(used)
        rate = (used[1:] - used[:-1]) / step
        return rate[self._steps(frames, len(rate))]


@dataclass(frozen=True, kw_only=True)
class Duration(Term):
    """How long the episode lasts, s."""

    unit: ClassVar[str] = "s"
    quantity: ClassVar[str] = "duration"

    def errors(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(1, W, 1)."""
        return episode.duration[None, :, None]

    def measure(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W)."""
        count = len(np.arange(len(episode.times))[frames])
        return episode.duration.detach().expand(count, -1)
