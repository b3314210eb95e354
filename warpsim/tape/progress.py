"""Progress of sweeps over segments, and tasks that keep quiet about numbers that overflow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from warpsim.tape.threads import Team


@contextmanager
def bar(team: Team, segments: int, what: str, shown: bool) -> Iterator[Callable[[], None]]:
    """A progress bar over segments, as the function to call after each; threads of the team may call it."""
    if not shown:
        yield _nothing
        return
    with tqdm(total=segments, desc=what, unit="segment") as progress:
        yield team.guarded(lambda: progress.update())


def quiet(task: Callable[[Any], None]) -> Callable[[Any], None]:
    """The same task without NumPy's warnings: numbers that overflow are looked for, and reported, by `diagnostics`."""

    def quieted(item: Any) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            task(item)

    return quieted


def _nothing() -> None:
    """No progress bar."""
