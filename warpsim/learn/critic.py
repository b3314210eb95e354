"""`Critic`: a learned value of states, what it costs to go on from them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from warpsim.autograd.exchange import torch_real


class Critic:
    """A network from features of a state to the cost to go, and a slow copy of it that gives targets and slopes.

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
        rate: float = 3e-3,
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
            follow: Share of the way that `slow` goes towards `network` after each fit.
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
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=rate, betas=(0.9, 0.95))

    def __call__(self, features: torch.Tensor) -> torch.Tensor:
        """The slow copy's value (…) of features (…, n); differentiable by them."""
        return self.slow(features).squeeze(-1)

    def fit(self, features: torch.Tensor, targets: torch.Tensor) -> float:
        """Moves the values of features (samples, n) towards targets (samples,); returns their mean square error."""
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

    def _made(self, widths: Sequence[int]) -> torch.nn.Sequential:
        layers: list[torch.nn.Module] = []
        for before, after in zip(widths[:-1], widths[1:], strict=True):
            layer = torch.nn.Linear(before, after, dtype=torch_real)
            with torch.no_grad():
                layer.weight.uniform_(-1.0, 1.0, generator=self._generator).div_(before**0.5)
                layer.bias.zero_()
            layers += [layer, torch.nn.ELU()]
        return torch.nn.Sequential(*layers[:-1])


def blended_returns(
    costs: torch.Tensor, values: torch.Tensor, alive: torch.Tensor, discount: float, blend: float
) -> torch.Tensor:
    """Targets of a critic along a window: TD(λ), blends of the returns over all shorter windows.

    G(t) = c(t) + γ·((1 − λ)·V(t+1) + λ·G(t+1)), and G = V at the end (Sutton and Barto, Reinforcement Learning, 12.1).

    Args:
        costs: (n, W) of the states reached.
        values: (n + 1, W) of the states, the first included.
        alive: (n + 1, W) 1 until a world fails, 0 from then on; a failed one costs nothing more.
        discount: γ.
        blend: λ.

    Returns:
        (n, W), of the states from which the steps begin.
    """
    made = torch.empty_like(costs)
    after = values[-1]
    for t in reversed(range(len(costs))):
        after = costs[t] + discount * alive[t + 1] * ((1 - blend) * values[t + 1] + blend * after)
        made[t] = after
    return made
