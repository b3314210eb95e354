"""`Attribute`: a handle on a USD attribute that reaches physics."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from warpsim.sim.attributes.slopes import Slope
from warpsim.sim.attributes.value_type import ValueType


class Attribute:
    """A USD attribute as a parameter, in the stage's own units; a key of `parameters=`.

    Handles of one file and path are equal.

    Attributes:
        path: "/World/Ball.physics:velocity".
        shape: Of the value: () for a number, (3,) for a vector, (4,) for a quaternion (real part first) …
        unit: In words, e.g. "cm/s".
        type_name: USD's type, e.g. "vector3f".
        reach: What it feeds: parameter names, and "state.q", "state.qd", "state.activation" of the initial state.
        lower: (…) what each component must not fall below.
        upper: (…) nor exceed.
    """

    def __init__(
        self,
        source: str,
        path: str,
        value: np.ndarray,
        kind: ValueType,
        unit: str,
        slope: Slope,
        reach: tuple[str, ...],
        bounds: tuple[float, float],
        device: torch.device,
    ) -> None:
        self.path = path
        self.shape = value.shape
        self.unit = unit
        self.type_name = kind.name
        self.reach = reach
        self.lower = np.full(value.shape, bounds[0])
        self.upper = np.full(value.shape, bounds[1])
        self.kind = kind
        self.slope = slope
        self.numbers = value
        self._source = source
        self._device = device

    @property
    def value(self) -> torch.Tensor:
        """A copy of the value on the stage, float64."""
        return torch.tensor(self.numbers, dtype=torch.float64, device=self._device)

    @property
    def prim_path(self) -> str:
        """Path of the prim."""
        return self.path.rpartition(".")[0]

    @property
    def name(self) -> str:
        """Name of the attribute on its prim."""
        return self.path.rpartition(".")[2]

    def rounded(self, value: Any) -> np.ndarray:
        """What the attribute's type would store of a value, as float64: "float" keeps seven digits."""
        given = value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value
        return self.kind.rounded(given)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attribute) and (self.path, self._source) == (other.path, other._source)

    def __hash__(self) -> int:
        return hash((self.path, self._source))

    def __repr__(self) -> str:
        return f"Attribute({self.path} = {self.numbers.tolist()} {self.unit})"
