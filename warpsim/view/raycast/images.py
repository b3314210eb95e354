"""Pictures to files: PNG, animated GIF, and many frames on one sheet."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from PIL.PngImagePlugin import PngInfo

from warpsim.core.errors import InputError
from warpsim.core.files import MARK, replacing

_PALETTE_FRAMES = 8
"""Frames from which a film's colors are chosen."""
_GAP = 4
"""Pixels between pictures on a sheet."""


def write_png(path: str | PathLike[str], picture: np.ndarray) -> Path:
    """Writes one picture.

    Args:
        path: A .png file.
        picture: (height, width, 3) uint8.
    """
    target = _target(path, ".png")
    note = PngInfo()
    note.add_text("Software", MARK.decode())
    with replacing(target) as temporary:
        Image.fromarray(picture).save(temporary, optimize=True, pnginfo=note)
    return target


def write_gif(path: str | PathLike[str], pictures: Sequence[np.ndarray], *, interval: float) -> Path:
    """Writes an endless GIF with one palette for all frames, so that colors do not flicker.

    Args:
        path: A .gif file.
        pictures: Each (height, width, 3) uint8.
        interval: Seconds a frame is shown, rounded to 0.01 s, at least 0.02 s (players show faster ones slowly).
    """
    target = _target(path, ".gif")
    if not pictures:
        raise InputError(f"{target}: no pictures to write")
    chosen = np.unique(np.linspace(0, len(pictures) - 1, _PALETTE_FRAMES).round().astype(int))
    palette = Image.fromarray(np.concatenate([pictures[k] for k in chosen])).quantize(256)
    frames = [Image.fromarray(p).quantize(palette=palette, dither=Image.Dither.NONE) for p in pictures]
    duration = 10 * max(2, round(100 * interval))
    options: dict[str, Any] = {"duration": duration, "optimize": False, "loop": 0, "comment": MARK}
    with replacing(target) as temporary:
        frames[0].save(temporary, save_all=True, append_images=frames[1:], **options)
    return target


def contact_sheet(
    pictures: Sequence[np.ndarray], *, columns: int | None = None, labels: Sequence[str] | None = None
) -> np.ndarray:
    """Pictures in a grid, row by row.

    Args:
        pictures: Each (height, width, 3) uint8, all of one size.
        columns: None: about as many as rows.
        labels: Written in the pictures' upper left corners.

    Returns:
        (height, width, 3) uint8.
    """
    if not pictures:
        raise InputError("a contact sheet needs at least one picture")
    height, width, _ = pictures[0].shape
    columns = min(len(pictures), columns or int(np.ceil(np.sqrt(len(pictures)))))
    rows = -(-len(pictures) // columns)
    sheet = Image.new("RGB", (columns * (width + _GAP) - _GAP, rows * (height + _GAP) - _GAP), "white")
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(max(10, height // 16))
    for number, picture in enumerate(pictures):
        corner = ((number % columns) * (width + _GAP), (number // columns) * (height + _GAP))
        sheet.paste(Image.fromarray(picture), corner)
        if labels is not None:
            draw.text((corner[0] + height // 30, corner[1] + height // 40), labels[number], (30, 34, 40), font=font)
    return np.asarray(sheet)


def _target(path: str | PathLike[str], suffix: str) -> Path:
    target = Path(fspath(path))
    if target.suffix.lower() != suffix:
        raise InputError(f"{target}: give a {suffix} file")
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {str(target.parent)!r}; make it first")
    return target
