"""How things move: velocities, joint coordinates, energy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from warpsim.core.errors import InputError
from warpsim.objective.episode import Episode
from warpsim.objective.places import OnBody, as_place
from warpsim.objective.term import Term, along
from warpsim.sim.simulator import Simulator


@dataclass(frozen=True, kw_only=True)
class Velocity(Term):
    """Velocity of a place on a body, or the body's angular velocity, less a wanted one; world axes.

    Attributes:
        subject: A body's name, or a place on one.
        velocity: m/s, or rad/s.
        angular: Which of the two.
        axes: World axes that count.
    """

    subject: Any
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    angular: bool = False
    axes: str = "xyz"

    def __post_init__(self) -> None:
        super().__post_init__()
        along(self.axes)
        place = as_place(self.subject)
        if not isinstance(place, OnBody):
            raise InputError(f"{self.title}: {self.subject!r} does not move; name a body")
        object.__setattr__(self, "subject", place)

    @property
    def unit(self) -> str:  # type: ignore[override]
        """m/s or rad/s."""
        return "rad/s" if self.angular else "m/s"

    quantity: ClassVar[str] = "velocity error"

    @property
    def outputs(self) -> tuple[str, ...]:
        """Velocities, and rotations for places off the body's origin."""
        return ("body_velocity", *self.subject.outputs)

    def check(self, sim: Simulator) -> None:
        """The body must exist."""
        self.subject.check(sim)

    def errors(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W, number of axes)."""
        moving = episode.trajectory.body_velocity(self.subject.body)[frames]
        spin, velocity = moving[..., :3], moving[..., 3:]
        if not self.angular and any(self.subject.offset):
            velocity = velocity + torch.linalg.cross(spin, self.subject.arm(episode, frames))
        return ((spin if self.angular else velocity) - episode.tensor(self.velocity))[..., along(self.axes)]


@dataclass(frozen=True, kw_only=True)
class Posture(Term):
    """Coordinates of hinges and slides less wanted ones, rad or m.

    Attributes:
        joints: Names; empty: all hinges and slides.
        position: Wanted, one number for each joint; with `times`, (n, joints): a reference that is interpolated
            linearly; None: where the rollout starts.
        times: (n,) s.
    """

    unit: ClassVar[str] = "rad or m"
    quantity: ClassVar[str] = "largest joint error"

    joints: Sequence[str] = ()
    position: Any = None
    times: Any = None

    def check(self, sim: Simulator) -> None:
        """The joints must exist, be hinges or slides, and be as many as the numbers."""
        names = self._names(sim)
        for name in names:
            if sim.joint(name).kind not in ("hinge", "slide"):
                raise InputError(f"{self.title}: {name} is a {sim.joint(name).kind} joint; use a WarpsimPose term")
        if not names:
            raise InputError(f"{self.title}: the scene has no hinge or slide")
        if self.position is not None:
            lead = () if self.times is None else (len(self.times),)
            if np.shape(self.position) != (*lead, len(names)):
                raise InputError(
                    f"{self.title}: position has shape {np.shape(self.position)}; needed: {(*lead, len(names))}, one "
                    f"number for each of {', '.join(names)}"
                )

    def errors(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W, joints)."""
        places = [episode.sim.joint(name).q.start for name in self._names(episode.sim)]
        q = episode.trajectory["q"][..., places]
        if self.position is None:
            return q[frames] - q[:1]
        if self.times is None:
            return q[frames] - episode.tensor(self.position)
        at = episode.times[frames]
        columns = np.asarray(self.position, dtype=float).T
        wanted = np.stack([np.interp(at, np.asarray(self.times, dtype=float), column) for column in columns], axis=-1)
        return q[frames] - episode.tensor(wanted)[:, None]

    def measure(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W): the largest error of a joint, so that a tolerance holds for each of them."""
        with torch.no_grad():
            return self.errors(episode, frames).abs().amax(-1)

    def _names(self, sim: Simulator) -> tuple[str, ...]:
        if self.joints:
            return tuple(self.joints)
        return tuple(name for name in sim.joint_names if sim.joint(name).kind in ("hinge", "slide"))


@dataclass(frozen=True, kw_only=True)
class Energy(Term):
    """Energy of the whole scene less a wanted one, J.

    Attributes:
        kind: "kinetic", "potential" (of gravity and springs) or "total".
        energy: Wanted, J.
    """

    unit: ClassVar[str] = "J"
    quantity: ClassVar[str] = "energy error"

    kind: str = "total"
    energy: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind not in ("kinetic", "potential", "total"):
            raise InputError(f"{self.title}: kind={self.kind!r}; use 'kinetic', 'potential' or 'total'")

    @property
    def outputs(self) -> tuple[str, ...]:
        """One or both energies."""
        return ("kinetic_energy", "potential_energy") if self.kind == "total" else (f"{self.kind}_energy",)

    def errors(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W, 1)."""
        parts = [episode.trajectory[name][frames] for name in self.outputs]
        return (torch.stack(parts).sum(0) - self.energy)[..., None]
