"""`Transmission`: what becomes of controls between whoever gives them and what they drive."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch


@dataclass(frozen=True)
class Transmission:
    """Late and noisy controls; not for differentiation.

    Attributes:
        delay: Steps after which a control acts; until the first one does, what it drives rests.
        noise: Standard deviation of what is added at each step, as a share of the control's range, or of its value
            where the range is open.
        seed: Of the noise.
    """

    delay: int = 0
    noise: float = 0.0
    seed: int = 0

    def sent(self, signal: torch.Tensor, limits: np.ndarray, rest: np.ndarray) -> torch.Tensor:
        """(steps, W, n) as applied; what is applied at a step does not depend on later ones, nor on how many there are.

        Args:
            signal: (steps, W, n).
            limits: (2, n) to which the noisy signal is cut, and by which noise is measured.
            rest: (n,) of what is not yet driven.
        """
        applied = signal
        if self.noise:
            low, high = torch.as_tensor(limits, dtype=signal.dtype)
            size = torch.where(torch.isfinite(high - low), high - low, signal.abs())
            draws = np.random.default_rng(self.seed).standard_normal(tuple(signal.shape))
            noisy = signal + self.noise * size * torch.as_tensor(draws, dtype=signal.dtype)
            applied = torch.minimum(torch.maximum(noisy, low), high)
        if self.delay:
            first = torch.as_tensor(rest, dtype=signal.dtype).expand(self.delay, *signal.shape[1:])
            applied = torch.cat([first, applied])[: len(signal)]
        return applied
