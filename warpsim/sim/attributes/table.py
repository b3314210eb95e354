"""The attributes of one simulator: handles and feeds, each made once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from warpsim.autograd.exchange import as_real_tensor, torch_device
from warpsim.core.errors import InputError, RangeError
from warpsim.coupling.compiled import CompiledScene
from warpsim.io.scene_files import is_usd
from warpsim.sim.attributes.attribute import Attribute
from warpsim.sim.attributes.feed import Feed
from warpsim.sim.attributes.finder import find_attribute
from warpsim.sim.attributes.scene_map import SceneMap


class AttributeTable:
    """Opens the stage when a handle is first asked for."""

    def __init__(self, path: Path | None, compiled: CompiledScene) -> None:
        """Remembers where the scene came from.

        Args:
            path: The file; None: a scene without one.
            compiled: From it.
        """
        self._path = path
        self._compiled = compiled
        self._device = torch_device(compiled.device)
        self._map: SceneMap | None = None
        self._handles: dict[str, Attribute] = {}
        self._feeds: dict[tuple[Attribute, ...], Feed] = {}

    def handle(self, path: str) -> Attribute:
        """The handle on "/prim.attribute"."""
        if path not in self._handles:
            self._handles[path] = find_attribute(self._scene_map(path), path, self._device)
        return self._handles[path]

    def tensors(self, values: Mapping[Attribute, Any]) -> dict[str, torch.Tensor]:
        """Parameters and "state.…" that some attributes feed, (n, …), or (W, n, …) where values differ by world."""
        ordered = sorted(values, key=lambda attribute: attribute.path)
        key = tuple(ordered)
        for attribute in ordered:
            if self.handle(attribute.path) != attribute:
                raise InputError(f"{attribute.path} is a handle on another file; make one with this simulator")
        if key not in self._feeds:
            self._feeds[key] = Feed(self._scene_map(ordered[0].path), ordered)
        given = [self._checked(attribute, values[attribute]) for attribute in ordered]
        return self._feeds[key].tensors(given, self._compiled.worlds)

    def _checked(self, attribute: Attribute, value: Any) -> torch.Tensor:
        if isinstance(value, torch.Tensor) and not value.is_complex():
            value = value.to(torch.float64)  # whole numbers, too
        tensor = as_real_tensor(attribute.path, value, self._device, torch.float64)
        shapes = (attribute.shape, (self._compiled.worlds, *attribute.shape))
        if tuple(tensor.shape) not in shapes:
            raise InputError(
                f"{attribute.path} was given shape {tuple(tensor.shape)}; needed: {shapes[0]} for all worlds alike, or "
                f"{shapes[1]}, worlds first"
            )
        numbers = tensor.detach().cpu().numpy()
        if not np.isfinite(numbers).all():
            raise RangeError(
                f"{attribute.path} was given {numbers.tolist()}; the numbers must be finite",
                _worlds(~np.isfinite(numbers), attribute),
            )
        outside = (numbers < attribute.lower) | (numbers > attribute.upper)
        if outside.any():
            low, high = float(attribute.lower.min()), float(attribute.upper.max())
            least = "above 0" if 0 < low < 1e-300 else f"at least {low:g}"
            raise RangeError(
                f"{attribute.path} was given {numbers.tolist()} {attribute.unit}; it must be {least}"
                + ("" if np.isinf(high) else f" and at most {high:g}"),
                _worlds(outside, attribute),
            )
        return tensor

    def _scene_map(self, path: str) -> SceneMap:
        if self._map is None:
            if self._path is None or not is_usd(self._path):
                what = "a Scene" if self._path is None else str(self._path)
                raise InputError(
                    f"{path}: attributes belong to USD files, and this simulator was made from {what}; vary its arrays "
                    "by name instead, e.g. parameters={'body.mass': …} (see `parameter_names`), or convert it with "
                    "`warpsim convert`"
                )
            self._map = SceneMap(self._path, self._compiled)
        return self._map


def _worlds(outside: np.ndarray, attribute: Attribute) -> list[int]:
    """Worlds in which a value is out of range; none where all share one."""
    if outside.ndim == len(attribute.shape):
        return []
    return np.flatnonzero(outside.reshape(len(outside), -1).any(axis=1)).tolist()
