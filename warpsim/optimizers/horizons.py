"""Fits over growing horizons: a start for a long fit that lies in its valley.

Over a long time small errors of a parameter turn motions out of phase, and a sum of squares has many valleys. Over a
short time it has one, if a shallow one. So the first part of the data is fitted first, roughly, then more of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import torch

from warpsim.core.driving import Steps
from warpsim.core.errors import SimulationError
from warpsim.optimizers.iterate import Method
from warpsim.optimizers.problem import Problem, Shortens
from warpsim.optimizers.search import Search, Stopping

HORIZONS = (0.125, 0.25, 0.5)
"""Shares of the time, fitted one after the other."""

_ROUGHLY = Stopping(iterations=10, change=0.01, patience=2)
"""A short part of the data leaves some parameters open: a search for its optimum would chase noise."""


class Grown(NamedTuple):
    """Where growing horizons led.

    Attributes:
        x: (n,).
        evaluations: Losses computed on the way.
        dropped: How many of them could not be simulated.
    """

    x: torch.Tensor
    evaluations: int
    dropped: int


def grow(problem: Problem, method: Method, x: torch.Tensor, shares: Sequence[float]) -> Steps[Grown]:
    """Fits parts of a problem's time, each from where the last one ended.

    Args:
        problem: One that cannot be shortened is left where it starts.
        method: What fits.
        x: (n,): the start.
        shares: Of the time, growing. A part with fewer residuals than parameters is left out.

    Raises:
        KeyboardInterrupt: Ctrl-C, which the search around this one handles.
    """
    evaluations, dropped = 0, 0
    if not isinstance(problem, Shortens):
        return Grown(x, evaluations, dropped)
    for share in shares:
        part = yield partial(problem.shortened, share)
        if part is None:
            continue
        try:
            if len((yield partial(part.residuals, x))) < len(x):
                continue
            found = yield from Search(part, method, _ROUGHLY).run(x)
        except SimulationError:  # where this part starts: the next one may do better
            continue
        if found.stopped == "interrupted":
            raise KeyboardInterrupt
        evaluations, dropped = evaluations + found.evaluations, dropped + found.dropped
        x = found.x
    return Grown(x, evaluations, dropped)
