"""Data as JSON can hold it, and back, to the last bit: Python prints the shortest digits that read back the same."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

_ARRAY = "array"
"""Key that marks an encoded array."""


def encode(value: Any) -> Any:
    """Nested data; arrays become {"array": type, "shape", "data"}, numbers that are not finite become text."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        flat = value.ravel().tolist()
        if value.dtype.kind not in "iub" and not _finite(value):
            flat = [encode(x) for x in flat]
        return {_ARRAY: str(value.dtype), "shape": list(value.shape), "data": flat}
    if isinstance(value, np.generic):
        return encode(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        return [encode(item) for item in items]
    return value


def _finite(value: np.ndarray) -> bool:
    return value.dtype.kind == "f" and bool(np.isfinite(value).all())


def decode(value: Any) -> Any:
    """Nested data with its arrays made again."""
    if isinstance(value, Mapping):
        if _ARRAY in value:
            return _array(value)
        return {key: decode(item) for key, item in value.items()}
    if isinstance(value, list):
        return [decode(item) for item in value]
    return value


def _array(value: Mapping[str, Any]) -> np.ndarray:
    """An encoded array; only numbers, so that a text cannot ask for any amount of memory."""
    kind = np.dtype(value[_ARRAY])
    if kind.kind not in "fiub":
        raise ValueError(f"an array of {kind} is not one of numbers")
    return np.array([_number(x) for x in value["data"]], dtype=kind).reshape(value["shape"])


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, str) else value
