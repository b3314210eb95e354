"""What a command may write: nothing that it reads, and what others wrote only with `--force`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

from warpsim.core.errors import OutputError
from warpsim.core.files import is_marked, refuse_sources, same_file
from warpsim.io.scene_files import is_usd, scene_files
from warpsim.io.usd.layer_files import is_our_layer

_HEAD = 4096
_LOG = (b"number,", b'{"number":')
"""How the lines of `warpsim.learn.log` begin."""
_TRAINED = {".pt": (b"warpsim policy", b"warpsim training"), ".csv": _LOG, ".jsonl": _LOG}
"""What the first bytes of a training's files hold."""


def check_outputs(
    targets: Iterable[str | PathLike[str]],
    read: Iterable[str | PathLike[str]],
    *,
    force: bool,
    make_folder: bool = False,
) -> None:
    """Raises, before anything is computed, if a file must not or cannot be written.

    Args:
        targets: All files that the command may write.
        read: Files that it reads; what they are composed of is found here.
        force: Replace files that are not ours.
        make_folder: The command makes the targets' folder.

    Raises:
        OutputError: Names the file, and what to do.
    """
    files = [Path(target) for target in targets]
    for source in read:
        refuse_sources(files, scene_files(source), str(source))
    for place, target in enumerate(files):
        if any(same_file(target, other) for other in files[:place]):
            raise OutputError(f"{target} would be written twice; choose another name for one of the outputs")
        _check_place(target, make_folder)
        if target.is_file() and not force and not _is_ours(target):
            raise OutputError(
                f"{target} exists, and was not written by warpsim or was changed since; choose another name, or "
                "replace it with --force"
            )


def _check_place(target: Path, make_folder: bool) -> None:
    if target.is_dir():
        raise OutputError(f"{target} is a folder; give the name of a file")
    folder = Path(os.path.realpath(target)).parent
    while make_folder and not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise OutputError(f"{target}: there is no folder {str(target.parent)!r}; make it first")
    if not os.access(folder, os.W_OK | os.X_OK) and (not target.exists() or target.is_file()):
        raise OutputError(f"{target}: {str(folder)!r} cannot be written to; choose another folder")


def _is_ours(target: Path) -> bool:
    """Whether a file was written by warpsim, and is as it was written."""
    try:
        if is_usd(target):
            return is_our_layer(target)
        if target.suffix.lower() == ".json":
            return _is_our_record(target)
        if target.suffix.lower() in _TRAINED:
            with target.open("rb") as file:
                head = file.read(_HEAD)
            whole = target.suffix.lower() == ".pt"  # an archive, whose first bytes are torch's
            if any(mark in head if whole else head.startswith(mark) for mark in _TRAINED[target.suffix.lower()]):
                return True
        return is_marked(target)
    except OSError:
        return False


def _is_our_record(target: Path) -> bool:
    try:
        data = json.loads(target.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and str(data.get("format")).startswith("warpsim")
