"""`Randomization`: values that differ from world to world about a base value, drawn by seed; gradients reach the base.

A draw is the base value moved by numbers ξ that depend on the seed, the name of what is drawn, the world and the
component alone; so it is the same in every process and for every number of worlds, and its derivative by the base value
is that of the formula (the reparametrization of a random value).
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from warpsim.core.errors import InputError, unknown_name
from warpsim.core.random import hashes, normal_numbers, unit_numbers

_REACH = {"uniform": 1.0, "normal": 3.0}
"""Kind → largest |ξ|."""


@dataclass(frozen=True, eq=False)
class Randomization:
    """How values lie about a base value; see `Simulator.draw`.

    One of `absolute`, `relative` and `factor` is given. With ξ uniform within −1 … 1, or normal (of deviation 1, cut at
    ±3, so that bounds can be kept):

    - absolute: base + absolute·ξ; a base `q` is moved along its dofs
    - relative: base·(1 + relative·ξ)
    - factor: base·factor^ξ, as likely halved as doubled

    Attributes:
        base: The value about which they lie, a tensor that may require a gradient; None: the one in force.
        absolute: Half the width, or the deviation, in the value's own unit; a number or one per component.
        relative: Likewise, as a share of the base; less than 1 (normal: 1/3), so that the sign is kept.
        factor: Likewise, as a factor above 1.
        kind: "uniform" or "normal".
        alike: Whether all components of a world share one ξ, as the inertias of a body that is scaled do.
    """

    base: Any = None
    absolute: Any = None
    relative: Any = None
    factor: Any = None
    kind: str = "uniform"
    alike: bool = False

    def __post_init__(self) -> None:
        if self.kind not in _REACH:
            raise unknown_name("kind of distribution", self.kind, _REACH)
        given = [name for name in ("absolute", "relative", "factor") if getattr(self, name) is not None]
        if len(given) != 1:
            raise InputError(f"give one of absolute, relative and factor; got {', '.join(given) or 'none'}")
        size = np.asarray(self.spread, dtype=np.float64)
        least, most = {
            "absolute": (0.0, np.inf),
            "relative": (0.0, 1.0 / _REACH[self.kind]),
            "factor": (1.0, np.inf),
        }[given[0]]
        if not (np.isfinite(size).all() and (size >= least).all() and (size < most).all()):
            limit = "" if np.isinf(most) else f" and less than {most:g}, or values could change their sign"
            raise InputError(f"{given[0]}={size.tolist()}; it must be finite, at least {least:g}{limit}")

    @property
    def spread(self) -> Any:
        """That one of `absolute`, `relative` and `factor` which is given."""
        return next(size for size in (self.absolute, self.relative, self.factor) if size is not None)

    def numbers(self, name: str, seed: int, worlds: int, shape: tuple[int, ...]) -> np.ndarray:
        """ξ (worlds, *shape).

        Args:
            name: Of what is drawn; other names have other numbers.
            seed: Any integer.
            worlds: How many.
            shape: Of one world's value.
        """
        size = 1 if self.alike else math.prod(shape)
        state = hashes(seed, zlib.crc32(name.encode()), np.arange(worlds)[:, None], np.arange(size))
        drawn = 2.0 * unit_numbers(state) - 1.0 if self.kind == "uniform" else _cut_normal(state)
        return np.array(np.broadcast_to(drawn, (worlds, math.prod(shape))).reshape(worlds, *shape))

    def values(self, base: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        """Values (W, …) for a base (…) or (W, …) and ξ (W, …)."""
        if self.absolute is not None:
            return base + self.move(numbers)
        if self.relative is not None:
            return base * (1.0 + torch.as_tensor(self.relative, dtype=base.dtype, device=base.device) * numbers)
        return base * torch.as_tensor(self.factor, dtype=base.dtype, device=base.device) ** numbers

    def move(self, numbers: torch.Tensor) -> torch.Tensor:
        """absolute·ξ."""
        return torch.as_tensor(self.absolute, dtype=numbers.dtype, device=numbers.device) * numbers

    def extremes(self, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The least and the largest value it can give."""
        reach = torch.full_like(base, _REACH[self.kind])
        ends = torch.stack([self.values(base, -reach), self.values(base, reach)])
        return ends.amin(0), ends.amax(0)


def _cut_normal(state: np.ndarray) -> np.ndarray:
    """Normal numbers, those beyond the reach drawn again."""
    drawn = normal_numbers(state)
    while (beyond := np.abs(drawn) > _REACH["normal"]).any():
        state = hashes(0, state)
        drawn = np.where(beyond, normal_numbers(state), drawn)
    return drawn
