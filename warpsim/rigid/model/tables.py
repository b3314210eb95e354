"""Device arrays of a model in the making: parameters replicated over worlds, integer tables as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from warpsim.core.precision import numpy_real


class Tables:
    """Makes the arrays and keeps the authored ones by name, and the scene's own numbers behind them in float64."""

    def __init__(self, worlds: int, device: wp.Device):
        self.worlds = worlds
        self.device = device
        self.authored: dict[str, wp.array] = {}
        self.described: dict[str, np.ndarray] = {}

    def parameter(self, name: str, rows: Sequence[Any], dtype: Any, *, derived: bool = False) -> wp.array:
        """(W, n) array of `rows`, entered as authored parameter `name`; if derived, a second array for the steps."""
        width = getattr(dtype, "_length_", 1)
        shape = (len(rows), width) if width > 1 else (len(rows),)
        self.described[name] = np.array(rows, dtype=np.float64).reshape(shape)
        values = self.described[name].astype(numpy_real)
        full = np.ascontiguousarray(np.broadcast_to(values, (self.worlds, *values.shape)))
        self.authored[name] = wp.array(full, dtype=dtype, device=self.device, shape=(self.worlds, len(rows)))
        return wp.clone(self.authored[name]) if derived else self.authored[name]

    def per_world(self, name: str, value: Any, dtype: Any) -> wp.array:
        """(W,) array, entered as authored parameter `name`."""
        self.described[name] = np.array(value, dtype=np.float64)
        values = np.broadcast_to(self.described[name].astype(numpy_real), (self.worlds, *np.shape(value)))
        self.authored[name] = wp.array(np.ascontiguousarray(values), dtype=dtype, device=self.device)
        return self.authored[name]

    def derived(self, count: int, dtype: Any) -> wp.array:
        """(W, count) array that no one authors: `warpsim.rigid.compile.derive` fills it."""
        return wp.zeros((self.worlds, count), dtype=dtype, device=self.device)

    def integers(self, values: Sequence[int]) -> wp.array:
        """Integer table shared by all worlds."""
        return wp.array(np.asarray(values, np.int32), dtype=wp.int32, device=self.device)
