"""Losses of several candidates of which some cannot be simulated: these are infinitely bad, the others keep theirs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial

import torch

from warpsim.core.driving import Steps, ask, drive
from warpsim.core.errors import RangeError, SimulationError
from warpsim.parallel.ranks import current
from warpsim.parallel.worlds import worlds_over_ranks


def losses_one_by_one(loss: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """(k,) losses of candidates x (k, n), one after the other; infinite where one cannot be simulated.

    Ranks share the candidates.

    Args:
        loss: Of one candidate (n,); raises `SimulationError` where it fails.
        x: (k, n).
    """

    def here(candidates: torch.Tensor) -> torch.Tensor:
        return drive(_one_by_one(partial(ask, loss), candidates))

    return worlds_over_ranks(here, x, what="losses of candidates")


def losses_side_by_side(losses: Callable[[torch.Tensor], Steps[torch.Tensor]], x: torch.Tensor) -> Steps[torch.Tensor]:
    """(k,) losses of candidates x (k, n), each in a world of its own; infinite where one cannot be simulated.

    A world with values out of range is found before anything is simulated, and another candidate is simulated in its
    place. Where a simulation fails on its way, the candidates are simulated again, one by one. Ranks share them.

    Args:
        losses: Of candidates (k, n) in k worlds; raises `SimulationError` where one of them fails.
        x: (k, n).
    """
    if current() is None:
        return (yield from _losses_here(losses, x))

    def here(candidates: torch.Tensor) -> torch.Tensor:
        return drive(_losses_here(losses, candidates))

    return (yield partial(worlds_over_ranks, here, x, what="losses of candidates"))


def _losses_here(losses: Callable[[torch.Tensor], Steps[torch.Tensor]], x: torch.Tensor) -> Steps[torch.Tensor]:
    def alone(row: torch.Tensor) -> Steps[torch.Tensor]:
        return (yield from losses(row[None]))[0]

    dropped = torch.zeros(len(x), dtype=torch.bool, device=x.device)
    while not dropped.all():
        try:
            return torch.where(dropped, torch.inf, (yield from losses(_filled(x, dropped))))
        except RangeError as error:
            found = [world for world in error.worlds if not dropped[world]]
            if not found:
                return (yield from _one_by_one(alone, x))
            dropped[found] = True
        except SimulationError:
            return (yield from _one_by_one(alone, x))
    return _infinity(x)


def _one_by_one(loss: Callable[[torch.Tensor], Steps[torch.Tensor]], x: torch.Tensor) -> Steps[torch.Tensor]:
    found = []
    for candidate in x:
        try:
            found.append((yield from loss(candidate)))
        except SimulationError:
            found.append(_infinity(candidate))
    return torch.stack(found)


def residuals_side_by_side(
    residuals: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor
) -> Steps[torch.Tensor | None]:
    """(k, m) residuals of candidates x (k, n), each in a world of its own; NaN where one cannot be simulated.

    Args:
        residuals: Of candidates (k, n) in k worlds; raises `SimulationError` where one of them fails.
        x: (k, n).

    Returns:
        None where none of them can be simulated.
    """
    with contextlib.suppress(SimulationError):
        if current() is not None:
            return (yield partial(worlds_over_ranks, residuals, x, what="residuals of candidates"))
    return (yield from _residuals_here(residuals, x))  # by every rank, where one of them failed


def _residuals_here(residuals: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> Steps[torch.Tensor | None]:
    dropped = torch.zeros(len(x), dtype=torch.bool, device=x.device)
    while not dropped.all():
        try:
            found_here = yield partial(residuals, _filled(x, dropped))
            return torch.where(dropped[:, None], torch.nan, found_here)
        except RangeError as error:
            found = [world for world in error.worlds if not dropped[world]]
            if not found:
                return (yield from _residuals_one_by_one(residuals, x))
            dropped[found] = True
        except SimulationError:
            return (yield from _residuals_one_by_one(residuals, x))
    return None


def _residuals_one_by_one(
    residuals: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor
) -> Steps[torch.Tensor | None]:
    found: dict[int, torch.Tensor] = {}
    for k, row in enumerate(x):
        with contextlib.suppress(SimulationError):
            found[k] = (yield partial(residuals, row[None]))[0]
    if not found:
        return None
    failed = torch.full_like(next(iter(found.values())), torch.nan)
    return torch.stack([found.get(k, failed) for k in range(len(x))])


def _filled(x: torch.Tensor, dropped: torch.Tensor) -> torch.Tensor:
    """The candidates, with the first that is left in the place of those that were dropped."""
    stand_in = x[~dropped][0].detach()
    return torch.where(dropped[:, None], stand_in, x)


def _infinity(x: torch.Tensor) -> torch.Tensor:
    """(…) for x (…, n): infinite without slope, but in the graph, so that others' slopes can be asked for."""
    return torch.inf + torch.zeros_like(x).mul(x).sum(-1)
