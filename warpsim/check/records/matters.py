"""What a record keeps of liquids, cloths and cables: figures of each row instead of all its numbers.

A liquid of a thousand particles has twenty thousand numbers per step. The scene's file and the inputs make them again;
the record keeps what it takes to see that they are the same, and where they are not.
"""

from __future__ import annotations

import zlib

import numpy as np


def is_of_matter(name: str) -> bool:
    """Whether a field of the state belongs to a matter, "coffee.x", and not to rigid bodies, "q"."""
    return "." in name


def matter_summary(frames: np.ndarray) -> dict[str, np.ndarray]:
    """Figures of a field.

    Args:
        frames: (frames, W, n, …).

    Returns:
        "crc32": (frames,) checksums of the bits; "mean": (frames, W, …) over the n; "largest": (frames,) of the
        absolute values, not finite where one is not.
    """
    checksums = [zlib.crc32(np.ascontiguousarray(frame).tobytes()) for frame in frames]
    flat = np.abs(frames).reshape(len(frames), -1)
    return {
        "crc32": np.array(checksums, dtype=np.int64),
        "mean": frames.mean(axis=2),
        "largest": flat.max(axis=1, initial=0.0),
    }
