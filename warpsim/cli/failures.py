"""What to tell a user of an error that is not one of ours."""

from __future__ import annotations

import errno
import os
import re

from warpsim.core.errors import WarpsimError

_REPORT = "run again with --traceback to see where, and report it with what `warpsim doctor` prints"
_NO_MEMORY = re.compile(
    r"out of memory|can't allocate memory|cannot allocate memory|bad_alloc|failed to allocate", re.I
)
_FLAGS = {
    "strict=False": "--lenient",
    "strict=True": "--strict",
    "colliders=True (--colliders)": "--colliders",
    "memory=": "--budget=",
}
"""What Python calls it → the command line's flag."""


def explain(error: BaseException) -> str:
    """One error in words, with what to try next; ours speak for themselves."""
    if isinstance(error, WarpsimError):
        text = str(error)
        for argument, flag in _FLAGS.items():
            text = text.replace(argument, flag)
        return text
    if isinstance(error, MemoryError) or _NO_MEMORY.search(str(error)):
        return f"out of memory{_said(error)}; ask for less at a time: fewer worlds, steps or frames, a smaller --budget"
    if isinstance(error, RecursionError):
        return "the file is nested too deeply to be read; flatten its hierarchy"
    if isinstance(error, OSError):
        return _system(error)
    if isinstance(error, UnicodeError):
        return f"text that cannot be read or shown here ({error}); set PYTHONUTF8=1, or rename the file"
    if isinstance(error, OverflowError):
        return f"a number is too large ({error}); check durations, steps, counts and units"
    return f"{type(error).__name__}{_said(error)}; this is a fault of warpsim, not yours: {_REPORT}"


def _said(error: BaseException) -> str:
    text = str(error).strip()
    return f": {text.splitlines()[0][:300]}" if text else ""


def _system(error: OSError) -> str:
    where = f" {os.fspath(error.filename)!r}" if isinstance(error.filename, str) else ""
    advice = {
        errno.ENOSPC: "free some space there, or write elsewhere",
        errno.EROFS: "that disk is read-only; choose another folder",
        errno.EACCES: "you may not go there; check the permissions",
        errno.ENOENT: "check the path",
    }.get(error.errno or 0, "check the file and the disk")
    return f"{error.strerror or error}{where}; {advice}"
