"""`Critic`: a learned value of states, what it costs to go on from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


class Critic:
    """A network from normalized features of a state to the cost to go, and a slow copy that gives targets and slopes.

    It computes in single precision, whatever the simulator does: targets are far less exact than that.

    Attributes:
        network: What is fitted.
        slow: What is asked: it follows `network` by a share of the way each time that is fitted, so that policies and
            targets see a value that does not jump.
    """

    def __init__(
        self,
        features: int,
        *,
        hidden: Sequence[int] = (64, 64),
        rate: float = 2e-3,
        follow: float = 0.2,
        passes: int = 2,
        batches: int = 4,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        """Draws weights.

        Args:
            features: How many numbers it sees.
            hidden: Widths of the hidden layers.
            rate: Adam's learning rate.
            follow: Share of the way that `slow` goes toward `network` after each fit.
            passes: How often a fit goes through its samples.
            batches: Into how many batches it cuts them.
            seed: Of the weights and of the batches.
            device: Where it lives.
        """
        self._generator = torch.Generator().manual_seed(seed)
        self._passes, self._batches, self._follow = passes, batches, follow
        self.network, self.slow = (self._made([features, *hidden, 1]).to(device) for _ in range(2))
        self.slow.load_state_dict(self.network.state_dict())
        self.slow.requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=rate, betas=(0.9, 0.95), fused=True)

    def __call__(self, features: torch.Tensor) -> torch.Tensor:
        """The slow copy's value (…) of features (…, n), in their precision; differentiable by them."""
        return self.slow(features.float()).squeeze(-1).to(features.dtype)

    def fit(self, features: torch.Tensor, targets: torch.Tensor) -> float:
        """Moves the values of features (samples, n) toward targets (samples,); returns their mean square error."""
        features, targets = features.float(), targets.float()
        errors: list[torch.Tensor] = []
        for _ in range(self._passes):
            order = torch.randperm(len(features), generator=self._generator).to(features.device)
            for batch in order.chunk(self._batches):
                error = (self.network(features[batch]).squeeze(-1) - targets[batch]).square().mean()
                self.optimizer.zero_grad()
                error.backward()
                self.optimizer.step()
                errors.append(error.detach())
        with torch.no_grad():
            for slow, fitted in zip(self.slow.parameters(), self.network.parameters(), strict=True):
                slow.lerp_(fitted, self._follow)
        return float(torch.stack(errors).mean())

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {
            "network": self.network.state_dict(),
            "slow": self.slow.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "generator": self._generator.get_state(),
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Goes on from what `state_dict` gave."""
        self.network.load_state_dict(saved["network"])
        self.slow.load_state_dict(saved["slow"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self._generator.set_state(saved["generator"])

    def _made(self, widths: Sequence[int]) -> torch.nn.Sequential:
        layers: list[torch.nn.Module] = []
        for before, after in zip(widths[:-1], widths[1:], strict=True):
            layer = torch.nn.Linear(before, after)
            with torch.no_grad():
                layer.weight.uniform_(-1.0, 1.0, generator=self._generator).div_(before**0.5)
                layer.bias.zero_()
            layers += [layer, torch.nn.ELU()]
        return torch.nn.Sequential(*layers[:-1])
