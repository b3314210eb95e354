"""Data as JSON can hold it, and back, to the last bit: Python prints the shortest digits that read back the same.

Printing a number takes as long as simulating some, so the many numbers of a motion are kept as their bytes in base64.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

_ARRAY = "array"
"""Key that marks an encoded array."""
_BYTES = "base64"
"""Key of the little-endian bytes of a large one."""
_NUMBERS = "fiub"
"""Kinds of types that arrays may have."""
_MOST_DIGITS = 256
"""Numbers up to which an array is printed."""


def encode(value: Any) -> Any:
    """Nested data; numbers that are not finite become text.

    Arrays become {"array": type, "shape", "data"}, of more than 256 numbers {"array": type, "shape", "base64"}.
    """
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        if value.size > _MOST_DIGITS and value.dtype.kind in _NUMBERS:
            raw = value.astype(value.dtype.newbyteorder("<"), order="C", copy=False).tobytes()
            return {_ARRAY: str(value.dtype), "shape": list(value.shape), _BYTES: base64.b64encode(raw).decode()}
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
    if kind.kind not in _NUMBERS:
        raise ValueError(f"an array of {kind} is not one of numbers")
    if _BYTES in value:
        try:
            raw = base64.b64decode(value[_BYTES], validate=True)
        except binascii.Error as error:
            raise ValueError(f"an array's bytes are not base64: {error}") from error
        return np.frombuffer(raw, dtype=kind.newbyteorder("<")).astype(kind).reshape(value["shape"])
    return np.array([_number(x) for x in value["data"]], dtype=kind).reshape(value["shape"])


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, str) else value
