"""`Normalizer`: mean and deviation of what a policy sees, learned ever slower while it is trained, then frozen."""

from __future__ import annotations

from typing import Any

import torch

from warpsim.autograd.exchange import torch_real


class Normalizer:
    """Running moments of features.

    Each batch counts as much as every other so far, so that a new one moves the moments less and less: a policy in
    training must not see the same state differently all the time. From `freeze` batches on nothing changes any more.

    Attributes:
        mean: (features,).
        variance: (features,).
        batches: Seen so far.
    """

    def __init__(self, features: int, *, freeze: int = 400, device: torch.device | str = "cpu") -> None:
        """Knows nothing: mean 0, variance 1.

        Args:
            features: How many numbers are seen at a time.
            freeze: Batches after which the moments stay what they are.
            device: Where it lives.
        """
        self._freeze = freeze
        self.mean = torch.zeros(features, dtype=torch_real, device=device)
        self.variance = torch.ones(features, dtype=torch_real, device=device)
        self.batches = 0

    @property
    def frozen(self) -> bool:
        """Whether the moments stay what they are."""
        return self.batches >= self._freeze

    def see(self, features: torch.Tensor) -> None:
        """Takes in a batch (samples, features); those that are not finite are left out."""
        if self.frozen:
            return
        features = features[torch.isfinite(features).all(-1)]
        if not len(features):
            return
        self.batches += 1
        share = 1.0 / self.batches
        mean, variance = features.mean(0), features.var(0, correction=0)
        apart = mean - self.mean if self.batches > 1 else torch.zeros_like(mean)
        self.variance = (1 - share) * self.variance + share * variance + share * (1 - share) * apart.square()
        self.mean = self.mean + share * (mean - self.mean)

    @property
    def deviation(self) -> torch.Tensor:
        """(features,): by what to divide; a feature that hardly varies is not blown up beyond a hundred times."""
        return self.variance.sqrt().clamp_min(1e-2)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"mean": self.mean.clone(), "variance": self.variance.clone(), "batches": self.batches}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Goes on from what `state_dict` gave."""
        self.mean, self.variance, self.batches = saved["mean"].clone(), saved["variance"].clone(), saved["batches"]
