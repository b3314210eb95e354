"""Two animated stages side by side, seen by one camera."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

import numpy as np
import warp as wp
from pxr import Usd

from warpsim.io.usd.reader import open_stage
from warpsim.view.items.focus import find_focus
from warpsim.view.items.stage_items import StageReader
from warpsim.view.raycast.frames import render_stage
from warpsim.view.raycast.images import contact_sheet
from warpsim.view.raycast.times import FRAMES_PER_SECOND

MOST_FRAMES = 60


def render_pair(
    sources: Sequence[str | PathLike[str] | Usd.Stage],
    labels: Sequence[str],
    *,
    width: int = 320,
    height: int = 240,
    device: wp.DeviceLike = "cpu",
    progress: bool = False,
) -> tuple[list[np.ndarray], float]:
    """Draws stages over their time ranges at the same instants; the shorter one waits at its end.

    Args:
        sources: The stages, with time ranges.
        labels: Written into the pictures.
        width: Pixels of one.
        height: Pixels.
        device: Warp device.
        progress: Show a progress bar.

    Returns:
        Pictures, (height, about 2·width, 3) uint8 each, and the seconds each is to be shown.
    """
    stages = [open_stage(source) for source in sources]
    lengths = [(s.GetEndTimeCode() - s.GetStartTimeCode()) / s.GetTimeCodesPerSecond() for s in stages]
    longest = max(lengths)
    frames = max(2, min(MOST_FRAMES, 1 + round(longest * FRAMES_PER_SECOND)))
    seconds = np.linspace(0.0, longest, frames)
    codes = [
        (s.GetStartTimeCode() + np.minimum(seconds, length) * s.GetTimeCodesPerSecond()).tolist()
        for s, length in zip(stages, lengths, strict=True)
    ]
    items = [StageReader(s).items(Usd.TimeCode(code)) for s, each in zip(stages, codes, strict=True) for code in each]
    focus = find_focus([shown for shown in items if shown])
    camera = focus.camera(width / height)
    # One scale, too: squares of two sizes on one floor would look like two distances.
    options = {"width": width, "height": height, "device": device, "progress": progress, "scale": focus.size}
    films = [render_stage(s, times=each, camera=camera, **options) for s, each in zip(stages, codes, strict=True)]
    pictures = [contact_sheet(list(pair), columns=len(films), labels=labels) for pair in zip(*films, strict=True)]
    return pictures, longest / (frames - 1)
