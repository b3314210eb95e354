"""Liquids in containers: the share in one, and what is spilled beside several.

A container is a box, standing or carried by a body, whose upper face (+z of its frame) is its opening. Whether a
particle is inside is no function to be differentiated. `Fill` measures that share, and has a loss that is read before
the splash: where each particle first falls through the plane of the opening, on the line between two frames.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from warpsim.core.errors import InputError, unknown_name
from warpsim.core.torch_quaternions import rotate
from warpsim.objective.episode import Episode
from warpsim.objective.places import as_place
from warpsim.objective.term import Term
from warpsim.sim.simulator import Simulator

_NEAR_AXIS = 0.5
"""Share of the opening about its axis in which a particle may cross it without any loss."""


@dataclass(frozen=True)
class Container:
    """A box.

    Attributes:
        place: Its middle and axes: a `Place` or a body's name.
        size: (3,) m, half edges.
    """

    place: Any
    size: tuple[float, float, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "place", as_place(self.place))
        if len(self.size) != 3 or not all(0.0 < edge < float("inf") for edge in self.size):
            raise InputError(f"a container needs three positive half edges in m, not {self.size}")

    def local(self, x: torch.Tensor, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W, n, 3) points in its frame, in half edges."""
        origin, turn = self.place.position(episode, frames), self.place.rotation(episode, frames)
        back = turn * turn.new_tensor([1.0, -1.0, -1.0, -1.0])
        apart = x - origin[..., None, :]
        return rotate(back[..., None, :].expand(*apart.shape[:-1], 4), apart) / episode.tensor(self.size)


@dataclass(frozen=True, kw_only=True)
class _OfLiquid(Term):
    """A term about the particles of a matter."""

    matter: str

    @property
    def _field(self) -> str:
        return f"{self.matter}.x"

    def _check(self, sim: Simulator, *containers: Container) -> None:
        if self._field not in sim.state_names:
            liquids = [name.removesuffix(".x") for name in sim.state_names if name.endswith(".x")]
            raise unknown_name("liquid", self.matter, liquids)
        for container in containers:
            container.place.check(sim)


@dataclass(frozen=True, kw_only=True)
class Fill(_OfLiquid):
    """The share of a liquid that is not in a container.

    Errors: how far from the opening's axis each particle first falls through the plane of the opening, in half edges
    beyond the middle half; of particles that have not, how far they are from the opening's middle at the last frame
    that counts. A distance d enters as d/√(1 + d), so that drops thrown far away do not outweigh the stream, and is
    divided by √n.

    Attributes:
        matter: Name of the liquid.
        container: Where it is wanted.
        above: m above the opening at which errors are read: a stream that hits the rim says little about where to go.
    """

    quantity: ClassVar[str] = "share outside"

    container: Container
    above: float = 0.0

    @property
    def outputs(self) -> tuple[str, ...]:
        """The container's place."""
        return self.container.place.outputs

    def check(self, sim: Simulator) -> None:
        """Liquid and container must exist."""
        self._check(sim, self.container)
        if not 0.0 <= self.above < float("inf"):
            raise InputError(f"above={self.above}: errors are read at the opening, 0, or above it")

    def errors(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(1, W, 3 n)."""
        until = slice(0, frames.stop)
        local = self.container.local(episode.trajectory[self._field][until], episode, until)
        local = local - local.new_tensor([0.0, 0.0, self.above / self.container.size[2]])
        crossed, frame, share = _crossing(local[..., 2])
        index = frame[None, ..., None].expand(1, *frame.shape, 3)
        before, after = (torch.gather(local, 0, index + k)[0] for k in (0, 1))
        at = before + share[..., None] * (after - before)
        flat = torch.cat([_beyond(at[..., :2]), torch.zeros_like(at[..., 2:])], -1)
        above = local[-1] - local.new_tensor([0.0, 0.0, 1.0])
        chosen = _bounded_pull(torch.where(crossed[..., None], flat, above))
        return (chosen / chosen.shape[-2] ** 0.5).flatten(-2)[None]

    def measure(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W) the share outside."""
        with torch.no_grad():
            local = self.container.local(episode.trajectory[self._field][frames], episode, frames)
            return 1.0 - (local.abs() <= 1.0).all(-1).to(local.dtype).mean(-1)


@dataclass(frozen=True, kw_only=True)
class Spill(_OfLiquid):
    """The share of a liquid that is in none of some containers.

    Errors: the distance of each particle from the nearest container, m, divided by √n.

    Attributes:
        matter: Name of the liquid.
        containers: Where it may be.
    """

    quantity: ClassVar[str] = "share spilled"

    containers: tuple[Container, ...]

    @property
    def outputs(self) -> tuple[str, ...]:
        """The containers' places."""
        return tuple(dict.fromkeys(name for c in self.containers for name in c.place.outputs))

    def check(self, sim: Simulator) -> None:
        """Liquid and containers must exist."""
        self._check(sim, *self.containers)

    def errors(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W, 3 n) m: from the nearest point of the nearest container."""
        x = episode.trajectory[self._field][frames]
        ways = []
        for container in self.containers:
            local = container.local(x, episode, frames)
            ways.append((local - local.clamp(-1.0, 1.0)) * episode.tensor(container.size))
        apart = torch.stack(ways)
        nearest = apart.detach().square().sum(-1).argmin(0)
        chosen = torch.gather(apart, 0, nearest[None, ..., None].expand(1, *apart.shape[1:]))[0]
        return (chosen / chosen.shape[-2] ** 0.5).flatten(-2)

    def measure(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W) the share."""
        with torch.no_grad():
            apart = self.errors(episode, frames).unflatten(-1, (-1, 3))
            return (apart.abs().amax(-1) > 0.0).to(apart.dtype).mean(-1)


def _crossing(height: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Whether, after which frame, and how far on each particle first falls through height 1, from (frames, W, n)."""
    falls = (height[:-1] > 1.0) & (height[1:] <= 1.0)
    crossed, frame = falls.any(0), falls.to(torch.uint8).argmax(0)
    before, after = (torch.gather(height, 0, frame[None] + k)[0] for k in (0, 1))
    share = torch.where(crossed, (before - 1.0) / (before - after).clamp(min=1e-12), torch.zeros_like(before))
    return crossed, frame, share.clamp(0.0, 1.0)


def _bounded_pull(error: torch.Tensor) -> torch.Tensor:
    """Errors (…, 3) whose squares grow as a distance that is large, not as its square."""
    size = (error.square().sum(-1, keepdim=True) + 1e-24).sqrt()
    return error / (1.0 + size).sqrt()


def _beyond(place: torch.Tensor) -> torch.Tensor:
    """The part of coordinates (…, 2), in half edges, that lies outside the middle of the opening."""
    return place - place.clamp(-_NEAR_AXIS, _NEAR_AXIS)
