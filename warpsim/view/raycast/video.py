"""Films as MP4 or WebM, by the ffmpeg that imageio-ffmpeg brings, an extra: `pip install warpsim[video]`."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path

import numpy as np

from warpsim.core.errors import InputError, WarpsimError
from warpsim.core.files import MARK, replacing

try:
    import imageio_ffmpeg
except ImportError as error:
    raise WarpsimError("films as .mp4 or .webm need ffmpeg: pip install warpsim[video]; .gif needs nothing") from error

CODECS = {
    ".mp4": ("libx264", ("-crf", "20", "-preset", "medium", "-movflags", "+faststart")),
    ".webm": ("libvpx-vp9", ("-crf", "32", "-b:v", "0", "-row-mt", "1")),
}
"""Suffix → codec and its options."""
_COMMON = ("-threads", "1", "-fflags", "+bitexact", "-flags:v", "+bitexact", "-metadata", f"comment={MARK.decode()}")
"""One thread and no version in the file: the same pictures give the same bytes."""


def write_video(path: str | PathLike[str], pictures: Sequence[np.ndarray], *, interval: float) -> Path:
    """Writes a film that browsers and slides play.

    Args:
        path: A .mp4 (H.264) or .webm (VP9) file.
        pictures: Each (height, width, 3) uint8; odd edges lose a pixel, which the codecs ask for.
        interval: Seconds a frame is shown.
    """
    target = Path(fspath(path))
    suffix = target.suffix.lower()
    if suffix not in CODECS:
        raise InputError(f"{target}: give a {' or '.join(CODECS)} file")
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {str(target.parent)!r}; make it first")
    if not pictures:
        raise InputError(f"{target}: no pictures to write")
    height, width = (edge - edge % 2 for edge in pictures[0].shape[:2])
    codec, options = CODECS[suffix]
    with replacing(target) as temporary:
        writer = imageio_ffmpeg.write_frames(
            str(temporary),
            (width, height),
            fps=1.0 / interval,
            codec=codec,
            quality=None,
            macro_block_size=2,
            ffmpeg_log_level="error",
            output_params=[*options, *_COMMON, "-f", suffix[1:]],
        )
        writer.send(None)
        for picture in pictures:
            writer.send(np.ascontiguousarray(picture[:height, :width]))
        writer.close()
    return target
