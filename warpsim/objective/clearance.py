"""Staying away from things, by the signed distance between colliders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import warp as wp

from warpsim.autograd.exchange import on_torch_stream, to_torch, to_warp
from warpsim.autograd.node import Adjoints, Made, Node
from warpsim.collision.contacts import ShapePoses
from warpsim.collision.query import ShapeDistance
from warpsim.core.errors import InputError
from warpsim.core.kernel_lock import KERNELS
from warpsim.core.precision import quat, vec3
from warpsim.core.torch_quaternions import quat_product, rotate
from warpsim.objective.episode import Episode
from warpsim.objective.shapes import shapes_of
from warpsim.objective.term import Term
from warpsim.scene import Scene
from warpsim.sim.simulator import Simulator


@dataclass(frozen=True, kw_only=True)
class Clearance(Term):
    """By how much pairs of colliders are closer than wanted, m; zero for pairs that are further apart.

    The gradient is that of the colliders' motion, and of their sizes and places on their bodies where these vary.

    Attributes:
        subject: Name of a body (all its colliders) or of a collider.
        obstacles: Names likewise.
        distance: Wanted, m.
    """

    unit: ClassVar[str] = "m"
    quantity: ClassVar[str] = "missing clearance"

    subject: str
    obstacles: Sequence[str]
    distance: float = 0.0

    @property
    def outputs(self) -> tuple[str, ...]:
        """Poses."""
        return ("body_position", "body_rotation")

    def check(self, sim: Simulator) -> None:
        """Subject and obstacles must have colliders."""
        if not self._pairs(sim.scene):
            raise InputError(f"{self.title}: no obstacle to stay away from")

    def errors(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W, pairs) m."""
        return torch.relu(self.distance - self.distances(episode, frames))

    def measure(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W) m: of the closest pair."""
        with torch.no_grad():
            return self.errors(episode, frames).amax(-1)

    def distances(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W, pairs) m: signed distances, negative where colliders overlap."""
        sim = episode.sim
        position, rotation, size = _shape_poses(episode, frames)
        count, worlds = position.shape[:2]
        with KERNELS:
            query = ShapeDistance(sim.scene, self._pairs(sim.scene), count * worlds, sim.model.device)
        (found,) = Node.apply(_DistanceCall(query), *(pose.flatten(0, 1) for pose in (position, rotation, size)))
        return found.reshape(count, worlds, -1)

    def _pairs(self, scene: Scene) -> list[tuple[str, str]]:
        mine = shapes_of(scene, self.subject)
        return [(a, b) for a in mine for name in self.obstacles for b in shapes_of(scene, name)]


def _shape_poses(episode: Episode, frames: slice) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """World poses (frames, W, shapes, 3 and 4) and sizes of all colliders, in the scene's order."""
    sim = episode.sim
    order = [sim.model.layout.shape_names.index(shape.name) for shape in sim.scene.shapes]
    bodies = [sim.body_names.index(shape.body or "") for shape in sim.scene.shapes]
    place, turn, size = (episode.parameter(f"shape.{name}")[:, order] for name in ("position", "rotation", "size"))
    origin = episode.trajectory["body_position"][frames][:, :, bodies]
    carried = episode.trajectory["body_rotation"][frames][:, :, bodies]
    position = origin + rotate(carried, place)
    return position, quat_product(carried, turn.expand_as(carried)), size.expand_as(position)


@dataclass(frozen=True)
class _DistanceCall:
    """Positions, rotations and sizes of shapes, (n, shapes, …) each → distances (n, pairs)."""

    query: ShapeDistance

    def forward(self, poses: Sequence[torch.Tensor]) -> Made:
        """Asks."""
        with on_torch_stream(self.query.table.pair_case.device):
            found = to_torch(self.query(ShapePoses(*_arrays(poses))).distance).clone()
        return Made((found,), read_again=tuple(poses))

    def backward(
        self, made: Made, poses: Sequence[torch.Tensor], shapes: Sequence[torch.Size], adjoints: Adjoints
    ) -> list[torch.Tensor]:
        """Asks again, on a tape."""
        (adjoint,) = adjoints
        assert adjoint is not None
        with on_torch_stream(self.query.table.pair_case.device):
            arrays = _arrays(poses)
            for array in arrays:
                array.requires_grad = True
            tape = wp.Tape()
            with tape:
                found = self.query(ShapePoses(*arrays)).distance
            tape.backward(grads={found: to_warp(adjoint.contiguous(), found.dtype)})
            gradients = [to_torch(array.grad).clone() for array in arrays]
            tape.zero()
        return gradients


def _arrays(poses: Sequence[torch.Tensor]) -> list[wp.array]:
    return [to_warp(tensor.contiguous(), kind) for tensor, kind in zip(poses, (vec3, quat, vec3), strict=True)]
