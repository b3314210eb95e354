"""Places: points with axes, fixed in the world, carried by a body, or moving as keyframes say.

A place answers for chosen frames of an episode with positions (frames, W, 3), m, and rotations (frames, W, 4), in world
coordinates; axes of length 1 where frames or worlds agree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch

from warpsim.core.errors import InputError, unknown_name
from warpsim.core.names import find
from warpsim.core.torch_quaternions import interpolate, quat_product, rotate
from warpsim.objective.episode import Episode
from warpsim.scene import Scene
from warpsim.scene.matters import matter_kind
from warpsim.sim.simulator import Simulator

NO_TURN = (1.0, 0.0, 0.0, 0.0)


class Place(Protocol):
    """What terms ask of a place."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Outputs of the rollout that it reads."""

    def check(self, sim: Simulator) -> None:
        """Raises if the simulator has no such place."""

    def position(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W, 3) m."""

    def rotation(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W, 4)."""


@dataclass(frozen=True)
class Fixed:
    """A place that stands still: position m, rotation (w, x, y, z)."""

    at: tuple[float, float, float]
    turn: tuple[float, float, float, float] = NO_TURN
    outputs: tuple[str, ...] = field(default=(), init=False)

    def check(self, sim: Simulator) -> None:
        """Refuses numbers that are not finite."""
        if len(self.at) != 3 or len(self.turn) != 4 or not np.isfinite([*self.at, *self.turn]).all():
            raise InputError(f"a place needs three finite coordinates and a quaternion; got {self.at}, {self.turn}")

    def position(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(1, 1, 3)."""
        return episode.tensor(self.at).reshape(1, 1, 3)

    def rotation(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(1, 1, 4)."""
        return episode.tensor(self.turn).reshape(1, 1, 4)


@dataclass(frozen=True)
class OnBody:
    """A place carried by a body: offset m and turn in the body's frame."""

    body: str
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    turn: tuple[float, float, float, float] = NO_TURN
    outputs: tuple[str, ...] = field(default=("body_position", "body_rotation"), init=False)

    def check(self, sim: Simulator) -> None:
        """Refuses a body that does not exist."""
        find("body", self.body, sim.body_names)

    def position(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W, 3)."""
        origin = episode.trajectory.body_position(self.body)[frames]
        return origin + self.arm(episode, frames) if any(self.offset) else origin

    def arm(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W, 3) m: from the body's origin to the place, world axes."""
        return rotate(episode.trajectory.body_rotation(self.body)[frames], episode.tensor(self.offset))

    def rotation(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W, 4)."""
        turn = episode.trajectory.body_rotation(self.body)[frames]
        return quat_product(turn, episode.tensor(self.turn).expand_as(turn))


@dataclass(frozen=True)
class OnMatter:
    """A point of a matter that is not rigid: "net:End" is the place End of the matter called net."""

    matter: str
    place: str
    field: str
    """The state or output that holds it, "net.x"."""
    index: int

    @property
    def outputs(self) -> tuple[str, ...]:
        """The field, unless it is a state, which is always shown."""
        return (self.field,)

    def check(self, sim: Simulator) -> None:
        """Refuses a field that does not exist."""
        known = (*sim.state_names, *sim.output_names)
        if self.field not in known:
            raise unknown_name("state or output", self.field, known)

    def position(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W, 3)."""
        return episode.trajectory[self.field][frames][..., self.index, :]

    def rotation(self, episode: Episode, frames: slice) -> torch.Tensor:
        """Refused: a point has no axes."""
        raise InputError(f"{self.matter}:{self.place} is a point, which has no rotation; use Reach")


def matter_places(scene: Scene) -> dict[str, OnMatter]:
    """The places of a scene's matters, by "/prim of the matter/place" and "matter:place"."""
    found = {}
    for matter in scene.matters:
        for name, (field_name, index) in matter_kind(matter.kind).places(matter).items():
            place = OnMatter(matter.name, name, f"{matter.name}.{field_name}", index)
            found[f"{matter.path}/{name}"] = found[f"{matter.name}:{name}"] = place
    return found


@dataclass(frozen=True, eq=False)
class Keyframes:
    """A place that moves: straight and evenly between keyframes, standing before the first and after the last.

    Attributes:
        times: (n,) s, increasing.
        positions: (n, 3) m.
        rotations: (n, 4); None: no turn.
    """

    times: np.ndarray
    positions: np.ndarray
    rotations: np.ndarray | None = None
    outputs: tuple[str, ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        times, positions = np.asarray(self.times, dtype=float), np.asarray(self.positions, dtype=float)
        if times.ndim != 1 or not len(times) or (np.diff(times) <= 0).any():
            raise InputError("keyframes need increasing times")
        if positions.shape != (len(times), 3) or not np.isfinite(positions).all():
            raise InputError(f"{len(times)} keyframes need finite positions of shape {(len(times), 3)}")
        if self.rotations is not None and np.shape(self.rotations) != (len(times), 4):
            raise InputError(f"{len(times)} keyframes need rotations of shape {(len(times), 4)}")

    def check(self, sim: Simulator) -> None:
        """Nothing of the simulator is needed."""

    def position(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, 1, 3)."""
        left, right, share = self._between(episode.times[frames])
        positions = np.asarray(self.positions, dtype=float)
        return episode.tensor(positions[left] * (1 - share) + positions[right] * share)[:, None]

    def rotation(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, 1, 4)."""
        if self.rotations is None:
            return episode.tensor(NO_TURN).reshape(1, 1, 4)
        left, right, share = self._between(episode.times[frames])
        turns = episode.tensor(self.rotations)
        return interpolate(turns[left], turns[right], episode.tensor(share))[:, None]

    def _between(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(earlier keyframe, later keyframe, share of the way (n, 1)) of each time."""
        keys = np.asarray(self.times, dtype=float)
        right = np.clip(np.searchsorted(keys, times), 0, len(keys) - 1)
        left = np.maximum(right - 1, 0)
        gap = np.where(right > left, keys[right] - keys[left], 1.0)
        return left, right, np.clip((times - keys[left]) / gap, 0.0, 1.0)[:, None]


def as_place(value: Place | str | tuple[float, float, float] | np.ndarray) -> Place:
    """A place from itself, a body's name, or three coordinates."""
    if isinstance(value, str):
        return OnBody(value)
    if isinstance(value, Fixed | OnBody | OnMatter | Keyframes):
        return value
    numbers = np.asarray(value, dtype=float)
    if numbers.shape != (3,):
        raise InputError(f"{value!r} is no place; give a body's name, three coordinates, or a place")
    x, y, z = numbers.tolist()
    return Fixed((x, y, z))
