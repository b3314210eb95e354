"""Files replaced as a whole, by writing beside them and renaming: a full disk or a kill leaves the old one."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from os import PathLike, fspath
from pathlib import Path
from stat import S_IMODE

from warpsim.core.errors import OutputError

MARK = b"written by warpsim"
"""Stands in the first bytes of every picture and array file we write; layers and records carry their own."""
_HEAD_BYTES = 4096
_ADVICE = {
    errno.ENOSPC: "free some space there, or write elsewhere",
    errno.EDQUOT: "your quota there is used up: free some space, or write elsewhere",
    errno.EFBIG: "the file would be larger than allowed here; write elsewhere, or raise the limit (ulimit -f)",
    errno.EACCES: "you may not write there; choose another folder",
    errno.EPERM: "you may not write there; choose another folder",
    errno.EROFS: "that disk is read-only; choose another folder",
    errno.ENOENT: "make the folder first",
    errno.ENOTDIR: "a part of that path is a file; choose another folder",
    errno.EISDIR: "it is a folder; give the name of a file",
    errno.ENAMETOOLONG: "choose a shorter name",
}


def output_error(target: str | PathLike[str], error: OSError) -> OutputError:
    """The error of a file that could not be written: the reason, and what to do."""
    advice = _ADVICE.get(error.errno or 0, "check the disk and the folder")
    return OutputError(
        f"cannot write {fspath(target)}: {error.strerror or error}; what was there before is unchanged; {advice}"
    )


@contextmanager
def replacing(path: str | PathLike[str], *, durable: bool = True) -> Iterator[Path]:
    """Gives a temporary file to write instead of `path`; it takes the target's place when the block ends well.

    A link is followed: what it points to is replaced. Pipes and devices are written directly.

    Args:
        path: The target, in a folder that exists.
        durable: Wait until the data is on the disk before renaming, so that not even a power cut leaves an empty file.

    Yields:
        A path in the target's folder with the target's suffix, where nothing is yet.

    Raises:
        OutputError: It cannot be written; what was there before is unchanged.
    """
    target = Path(os.path.realpath(fspath(path)))
    if target.exists() and not target.is_file():
        if target.is_dir():
            raise output_error(path, IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)))
        yield target
        return
    temporary = target.with_name(f".warpsim-{secrets.token_hex(6)}{target.suffix}")
    try:
        yield temporary
        if target.exists():
            os.chmod(temporary, S_IMODE(target.stat().st_mode))
        if durable:
            _flush(temporary)
        os.replace(temporary, target)
    except OSError as error:
        raise output_error(path, error) from error
    finally:
        with suppress(OSError):  # gone where all went well
            temporary.unlink(missing_ok=True)


def write_text(path: str | PathLike[str], text: str) -> Path:
    """Replaces a file by text in UTF-8."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return Path(fspath(path))


def is_marked(path: Path) -> bool:
    """Whether a picture or array file is one of ours."""
    with path.open("rb") as file:
        return MARK in file.read(_HEAD_BYTES)


def same_file(a: Path, b: Path) -> bool:
    """Whether two paths name one file, through symbolic or hard links or by spelling."""
    if os.path.realpath(a) == os.path.realpath(b):
        return True
    return a.exists() and b.exists() and os.path.samefile(a, b)


def refuse_sources(targets: Iterable[Path], sources: Iterable[Path], what: str) -> None:
    """Raises if one of the files to be written is among those that were read.

    Args:
        targets: To be written.
        sources: Read, directly or through composition.
        what: What read them, for the message, e.g. the scene.
    """
    read = list(sources)
    for target in targets:
        for source in read:
            if same_file(target, source):
                link = "" if os.path.abspath(target) == os.path.abspath(source) else f" (the same file as {source})"
                raise OutputError(
                    f"{target}{link} is read by {what}; nothing is ever written over what it was made from: choose "
                    "another name"
                )


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
