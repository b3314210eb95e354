"""Numbers over time as few bytes: 16 bits within each channel's range, second differences, bytes sorted by weight.

Second differences of a smooth motion are small, so their upper bytes are nearly all alike, which deflate then squeezes
out. Everything is integer arithmetic modulo 2¹⁶, undone exactly.
"""

from __future__ import annotations

import numpy as np

LEVELS = 65535
"""Steps that each range is divided into."""


def quantized(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """uint16 of values, the range low … high (broadcast over the last axes) mapped to 0 … 65535."""
    span = np.where(high > low, high - low, 1.0)
    return np.rint((values - low) * (LEVELS / span)).astype(np.uint16)


def squeezed(levels: np.ndarray) -> bytes:
    """Bytes of (frames, channels) uint16: zigzag second differences over time, channel by channel, low bytes first."""
    series = np.ascontiguousarray(levels.T)
    for first in (1, 2):  # after the first pass column 0 holds the start and column 1 the first difference
        if series.shape[1] > first:
            series[:, first:] = series[:, first:] - series[:, first - 1 : -1]
    signed = series.view(np.int16)
    zigzag = ((signed << 1) ^ (signed >> 15)).view(np.uint16)
    return (zigzag & 0xFF).astype(np.uint8).tobytes() + (zigzag >> 8).astype(np.uint8).tobytes()


def restored(data: bytes, frames: int, channels: int) -> np.ndarray:
    """(frames, channels) uint16 that `squeezed` was given."""
    planes = np.frombuffer(data, dtype=np.uint8).reshape(2, channels, frames).astype(np.uint16)
    zigzag = planes[0] | (planes[1] << 8)
    series = (zigzag >> 1) ^ (0 - (zigzag & 1)).astype(np.uint16)
    for first in (2, 1):
        if frames > first:
            series[:, first - 1 :] = np.cumsum(series[:, first - 1 :], axis=1, dtype=np.uint16)
    return series.T
