"""The force with which things touch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from warpsim.core.errors import InputError
from warpsim.objective.episode import Episode
from warpsim.objective.shapes import shapes_of
from warpsim.objective.term import Term, along
from warpsim.sim.simulator import Simulator


@dataclass(frozen=True, kw_only=True)
class ContactForce(Term):
    """Sum of the contact forces on a body or collider less a wanted one, N, world axes.

    Attributes:
        subject: Name of a body (all its colliders) or of a collider.
        force: Wanted, N.
        at_most: N; if given, the error is by how much the force's size exceeds this, and `force` is not used.
        axes: World axes that count.
    """

    unit: ClassVar[str] = "N"
    quantity: ClassVar[str] = "contact force error"

    subject: str
    force: tuple[float, float, float] = (0.0, 0.0, 0.0)
    at_most: float | None = None
    axes: str = "xyz"

    def __post_init__(self) -> None:
        super().__post_init__()
        along(self.axes)
        if self.at_most is not None and not self.at_most >= 0.0:
            raise InputError(f"{self.title}: at most {self.at_most} N; give 0 or more")

    @property
    def outputs(self) -> tuple[str, ...]:
        """Forces by shape."""
        return ("contact_force",)

    def check(self, sim: Simulator) -> None:
        """The subject must have colliders."""
        shapes_of(sim.scene, self.subject)

    def errors(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W, number of axes), or (frames, W, 1) with `at_most`; N."""
        order = episode.sim.model.layout.shape_names
        places = [order.index(name) for name in shapes_of(episode.sim.scene, self.subject)]
        total = episode.trajectory["contact_force"][frames][:, :, places].sum(2)
        if self.at_most is None:
            return (total - episode.tensor(self.force))[..., along(self.axes)]
        square = total[..., along(self.axes)].square().sum(-1, keepdim=True)
        none = square == 0.0  # where the size has no derivative, and costs nothing
        size = torch.sqrt(torch.where(none, torch.ones_like(square), square))
        return torch.where(none, torch.zeros_like(square), torch.relu(size - self.at_most))
