"""Which time codes of a stage are drawn."""

from __future__ import annotations

import numpy as np
from pxr import Usd

from warpsim.core.errors import InputError

FRAMES_PER_SECOND = 25.0
"""Of a film in real time; GIF counts in hundredths of a second."""


def frame_times(stage: Usd.Stage, *, frames: int | None = None, every: int | None = None) -> list[float]:
    """Time codes to draw.

    Args:
        stage: The stage.
        frames: How many, evenly from the stage's start to its end; 1 is the start.
        every: Every so many time codes, from the start.
            Without either: 25 per second of the stage's time.

    Returns:
        The codes; for a stage without a time range a list that holds its start time code alone.

    Raises:
        InputError: Both, or one that is not positive.
    """
    if frames is not None and every is not None:
        raise InputError("give frames or every, not both")
    for name, value in (("frames", frames), ("every", every)):
        if value is not None and value < 1:
            raise InputError(f"{name}={value}: at least 1 is needed")
    start, end = float(stage.GetStartTimeCode()), float(stage.GetEndTimeCode())
    if not stage.HasAuthoredTimeCodeRange() or end <= start:
        return [start]
    if every is not None:
        return np.arange(start, end + 1e-9, every).tolist()
    if frames is None:
        frames = 1 + round((end - start) / stage.GetTimeCodesPerSecond() * FRAMES_PER_SECOND)
    return np.linspace(start, end, frames).tolist()
