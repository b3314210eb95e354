"""Gradients of a policy's weights world by world, bounded before they are summed.

Kernels keep the gradient of each world's own copy of the weights anyway; bounding those takes no further backward pass
and leaves the adjoints of the motion exact. The bound follows the median world, since nobody knows the scale of a
gradient beforehand, and a few worlds that tumble have gradients thousands of times those of the others.
"""

from __future__ import annotations

from typing import Any

import torch

from warpsim.autograd.parameters import sum_worlds
from warpsim.core.errors import InputError
from warpsim.sim.network_policy import NetworkPolicy


class WorldGradients:
    """Spreads weights over worlds on the way to a rollout, and bounds what comes back.

    Attributes:
        clipped: Share of the worlds that were bounded in the last backward pass.
        dropped: Worlds whose gradient was not finite in it; they count nothing.
        median: Norm of the median world's gradient in it.
    """

    def __init__(self, worlds: int, largest: float | None) -> None:
        """Bounds nothing yet.

        Args:
            worlds: W.
            largest: Largest norm of a world's gradient, in multiples of the median world's; None: any.
        """
        self._worlds, self._largest = worlds, largest
        self.clipped, self.dropped, self.median = 0.0, 0, 0.0

    def __call__(self, weights: torch.Tensor) -> torch.Tensor:
        """Weights (n,) as (W, n)."""
        return _Spread.apply(weights, self)

    def expand(self, weights: torch.Tensor) -> torch.Tensor:
        """The same without a graph."""
        return weights.expand(self._worlds, -1)

    def gather(self, gradient: torch.Tensor) -> torch.Tensor:
        """Sum (n,) of gradients (W, n), in the order of worlds."""
        norms = torch.linalg.vector_norm(gradient, dim=1)
        sound = torch.isfinite(norms)
        self.dropped = int((~sound).sum())
        self.median = float(norms[sound].median()) if bool(sound.any()) else 0.0
        self.clipped = 0.0
        factor = sound.to(gradient.dtype)
        if self._largest is not None:
            bound = self._largest * self.median
            self.clipped = float((norms > bound).to(gradient.dtype).mean())
            factor = torch.where(norms > bound, bound / norms, factor)
        factor = torch.where(sound, factor, 0.0)
        return sum_worlds(torch.where(sound.unsqueeze(1), gradient, 0.0) * factor.unsqueeze(1))


class _Spread(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: torch.Tensor, owner: WorldGradients) -> torch.Tensor:
        ctx.owner = owner
        return owner.expand(weights).clone()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        return ctx.owner.gather(gradients[0]), None


def bounds_of(policy: torch.nn.Module, worlds: int, world_clip: float | None) -> WorldGradients | None:
    """Bounds on the gradients of single worlds, where a policy has them."""
    if isinstance(policy, NetworkPolicy):
        return WorldGradients(worlds, world_clip)
    if world_clip is not None:
        raise InputError("world_clip= needs gradients world by world, which a NetworkPolicy has; leave it out")
    return None
