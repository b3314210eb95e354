"""Commands under `torchrun`: they join the other ranks, and rank 0 alone prints and writes."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from os import PathLike

from warpsim.core.errors import InputError
from warpsim.parallel.blocks import DEFAULT_BLOCKS
from warpsim.parallel.ranks import JOINING, SILENCE, TIMEOUT, Ranks, join


def under_torchrun() -> bool:
    """Whether torchrun started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ and "RANK" in os.environ


def writes() -> bool:
    """Whether this process writes files: alone, or as rank 0."""
    return not under_torchrun() or os.environ["RANK"] == "0"


def restarted() -> bool:
    """Whether torchrun has begun this job again after a failure: what stands in its folder is its own."""
    return under_torchrun() and int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


@contextmanager
def joined(files: Iterable[str | PathLike[str]], arguments: Iterable[object] = ()) -> Iterator[Ranks | None]:
    """The ranks, where there are any; while open, those but the first say nothing unless they fail.

    `WARPSIM_BLOCKS`, `WARPSIM_RANK_SILENCE`, `WARPSIM_RANK_TIMEOUT` and `WARPSIM_RANK_JOINING` change what
    `warpsim.parallel.join` is given.

    Args:
        files: That must be the same on all ranks.
        arguments: Of the command, likewise.
    """
    if not under_torchrun():
        yield None
        return
    with join(
        files,
        blocks=int(_setting("WARPSIM_BLOCKS", DEFAULT_BLOCKS)),
        silence=_setting("WARPSIM_RANK_SILENCE", SILENCE),
        timeout=_setting("WARPSIM_RANK_TIMEOUT", TIMEOUT),
        joining=_setting("WARPSIM_RANK_JOINING", JOINING),
        same={"command line": " ".join(map(str, arguments or sys.argv[1:]))},
    ) as ranks:
        if ranks.first:
            yield ranks
            return
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            yield ranks


def _setting(name: str, otherwise: float) -> float:
    text = os.environ.get(name, str(otherwise))
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not value > 0:
        raise InputError(f"{name}={text!r}: give a number above 0")
    return value
