"""`warpsim render`: a file, animated or not, as a picture, a film or a sheet of frames."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pxr import Usd

from warpsim.cli.commands.looking import open_for_looking
from warpsim.cli.commands.outputs import check_outputs
from warpsim.core.errors import InputError
from warpsim.core.registry import provided
from warpsim.view.raycast import contact_sheet, frame_times, render_stage, write_gif, write_png

_SHEET_FRAMES = 9
_FILMS = (".gif", ".mp4", ".webm")


def run(arguments: argparse.Namespace) -> int:
    """Draws and writes."""
    output = Path(arguments.output)
    _check_output(output, arguments.sheet)
    width, height = _size(arguments.size)
    stage = open_for_looking(arguments.file, keyframe=arguments.keyframe, scene=arguments.scene, world=arguments.world)
    times = _times(stage, arguments, film=output.suffix.lower() in _FILMS)
    targets = _targets(output, len(times), arguments.sheet)
    read = [arguments.file] if arguments.scene is None else [arguments.file, arguments.scene]
    check_outputs(targets, read, force=arguments.force)
    pictures = render_stage(
        stage,
        times=times,
        width=width,
        height=height,
        camera=arguments.camera,
        colliders=arguments.colliders,
        contacts=not arguments.no_contacts,
        device=arguments.device,
        progress=not arguments.quiet and len(times) > 1,
    )
    _write(targets, pictures, np.array(times) / stage.GetTimeCodesPerSecond(), arguments.sheet)
    for path in targets:
        print(f"wrote {path}")
    return 0


def _check_output(output: Path, sheet: bool) -> None:
    """Refuses before the drawing what could not be written after it."""
    suffix = output.suffix.lower()
    if suffix not in (*_FILMS, ".png"):
        raise InputError(f"{output}: give a .png, .gif, .mp4 or .webm file to write")
    if sheet and suffix != ".png":
        raise InputError(f"{output}: a sheet is one picture; give a .png file")
    if suffix in (".mp4", ".webm"):
        provided("write_video")  # whether it is installed
    if not output.parent.is_dir():
        raise InputError(f"{output}: there is no folder {str(output.parent)!r}; make it first")


def _size(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)[xX×](\d+)", text)
    if match is None:
        raise InputError(f"--size {text!r}: give width and height in pixels, for example 480x320")
    return int(match[1]), int(match[2])


def _times(stage: Usd.Stage, arguments: argparse.Namespace, *, film: bool) -> list[float]:
    if arguments.time is not None and not math.isfinite(arguments.time):
        raise InputError(f"--time {arguments.time:g}: give a time code of the file")
    if arguments.time is not None:
        return [arguments.time]
    frames = arguments.frames
    if frames is None and arguments.every is None and not film:
        frames = _SHEET_FRAMES if arguments.sheet else 1
    return frame_times(stage, frames=frames, every=arguments.every)


def _targets(output: Path, frames: int, sheet: bool) -> list[Path]:
    """The files to write: one, or a numbered series of pictures."""
    if output.suffix.lower() in _FILMS or sheet or frames == 1:
        return [output]
    digits = len(str(frames - 1))
    return [output.with_name(f"{output.stem}_{k:0{digits}}{output.suffix}") for k in range(frames)]


def _write(targets: Sequence[Path], pictures: Sequence[np.ndarray], seconds: np.ndarray, sheet: bool) -> None:
    kind = targets[0].suffix.lower()
    if kind in _FILMS:
        interval = float(seconds[1] - seconds[0]) if len(seconds) > 1 else 1.0
        write = write_gif if kind == ".gif" else provided("write_video")
        write(targets[0], pictures, interval=interval)
    elif sheet:
        labels = [f"{t:.2f} s" for t in seconds - seconds[0]]
        write_png(targets[0], contact_sheet(pictures, labels=labels))
    else:
        for target, picture in zip(targets, pictures, strict=True):
            write_png(target, picture)
