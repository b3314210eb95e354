"""Where things are: a place on a body, its pose, the center of mass, against a target that stands or moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from warpsim.core.torch_quaternions import turn_between
from warpsim.objective.episode import Episode
from warpsim.objective.places import as_place
from warpsim.objective.term import Term, along
from warpsim.sim.simulator import Simulator


@dataclass(frozen=True, kw_only=True)
class _ToTarget(Term):
    """A distance from a target."""

    unit: ClassVar[str] = "m"
    quantity: ClassVar[str] = "distance"

    target: Any
    axes: str = "xyz"

    def __post_init__(self) -> None:
        super().__post_init__()
        along(self.axes)
        object.__setattr__(self, "target", as_place(self.target))

    def check(self, sim: Simulator) -> None:
        """The target must exist."""
        self.target.check(sim)

    def _apart(self, position: torch.Tensor, episode: Episode, frames: slice) -> torch.Tensor:
        return (position - self.target.position(episode, frames))[..., along(self.axes)]


@dataclass(frozen=True, kw_only=True)
class Reach(_ToTarget):
    """Position of a place on a body less that of a target, m.

    Attributes:
        subject: A `Place`, or a body's name.
        target: A `Place`, a body's name, or three coordinates; `Keyframes` make it a reference to track.
        axes: World axes that count.
    """

    subject: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "subject", as_place(self.subject))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Those of both places."""
        return (*self.subject.outputs, *self.target.outputs)

    def check(self, sim: Simulator) -> None:
        """Both places must exist."""
        self.subject.check(sim)
        self.target.check(sim)

    def errors(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W, number of axes) m."""
        return self._apart(self.subject.position(episode, frames), episode, frames)


@dataclass(frozen=True, kw_only=True)
class Pose(Term):
    """Position and rotation of a place on a body less those of a target.

    Errors are the distance, m, and the rotation vector between the two, rad, times the lever arm.

    Attributes:
        subject: A `Place`, or a body's name.
        target: A `Place` or a body's name.
        lever_arm: m: a turn by 1 rad counts as much as a move by this.
    """

    unit: ClassVar[str] = "m"
    quantity: ClassVar[str] = "distance"

    subject: Any
    target: Any
    lever_arm: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "subject", as_place(self.subject))
        object.__setattr__(self, "target", as_place(self.target))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Those of both places."""
        return (*self.subject.outputs, *self.target.outputs)

    def check(self, sim: Simulator) -> None:
        """Both places must exist."""
        self.subject.check(sim)
        self.target.check(sim)

    def errors(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W, 6) m."""
        apart, turn = self._apart(episode, frames)
        return torch.cat([apart, self.lever_arm * turn], -1)

    def measure(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W) m: the distance alone."""
        with torch.no_grad():
            return torch.linalg.vector_norm(self._apart(episode, frames)[0], dim=-1)

    def angle(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W) rad: the turn alone."""
        with torch.no_grad():
            return torch.linalg.vector_norm(self._apart(episode, frames)[1], dim=-1)

    def _apart(self, episode: Episode, frames: slice) -> tuple[torch.Tensor, torch.Tensor]:
        turn, wanted = torch.broadcast_tensors(
            self.subject.rotation(episode, frames), self.target.rotation(episode, frames)
        )
        return self.subject.position(episode, frames) - self.target.position(episode, frames), turn_between(
            wanted, turn
        )


@dataclass(frozen=True, kw_only=True)
class CenterOfMass(_ToTarget):
    """Center of all mass less a target, m.

    Attributes:
        target: A `Place`, a body's name, or three coordinates.
        axes: World axes that count.
    """

    @property
    def outputs(self) -> tuple[str, ...]:
        """The center and the target's."""
        return ("com", *self.target.outputs)

    def errors(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W, number of axes) m."""
        return self._apart(episode.trajectory["com"][frames], episode, frames)
