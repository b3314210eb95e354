"""Progress of sweeps over segments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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


def _nothing() -> None:
    """No progress bar."""
