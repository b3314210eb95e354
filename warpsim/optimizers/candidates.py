"""Losses of several candidates of which some cannot be simulated: these are infinitely bad, the others keep theirs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import torch

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
        return torch.stack([_loss_or_infinity(loss, candidate) for candidate in candidates])

    return worlds_over_ranks(here, x, what="losses of candidates")


def losses_side_by_side(losses: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """(k,) losses of candidates x (k, n), each in a world of its own; infinite where one cannot be simulated.

    A world with values out of range is found before anything is simulated, and another candidate is simulated in its
    place. Where a simulation fails on its way, the candidates are simulated again, one by one. Ranks share them.

    Args:
        losses: Of candidates (k, n) in k worlds; raises `SimulationError` where one of them fails.
        x: (k, n).
    """
    return worlds_over_ranks(lambda candidates: _losses_here(losses, candidates), x, what="losses of candidates")


def _losses_here(losses: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    dropped = torch.zeros(len(x), dtype=torch.bool, device=x.device)
    while not dropped.all():
        try:
            return torch.where(dropped, torch.inf, losses(_filled(x, dropped)))
        except RangeError as error:
            found = [world for world in error.worlds if not dropped[world]]
            if not found:
                return losses_one_by_one(lambda row: losses(row[None])[0], x)
            dropped[found] = True
        except SimulationError:
            return losses_one_by_one(lambda row: losses(row[None])[0], x)
    return _infinity(x)


def residuals_side_by_side(residuals: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor | None:
    """(k, m) residuals of candidates x (k, n), each in a world of its own; NaN where one cannot be simulated.

    Args:
        residuals: Of candidates (k, n) in k worlds; raises `SimulationError` where one of them fails.
        x: (k, n).

    Returns:
        None where none of them can be simulated.
    """
    with contextlib.suppress(SimulationError):
        if current() is not None:
            return worlds_over_ranks(residuals, x, what="residuals of candidates")
    return _residuals_here(residuals, x)  # by every rank, where one of them failed


def _residuals_here(residuals: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor | None:
    dropped = torch.zeros(len(x), dtype=torch.bool, device=x.device)
    while not dropped.all():
        try:
            return torch.where(dropped[:, None], torch.nan, residuals(_filled(x, dropped)))
        except RangeError as error:
            found = [world for world in error.worlds if not dropped[world]]
            if not found:
                return _residuals_one_by_one(residuals, x)
            dropped[found] = True
        except SimulationError:
            return _residuals_one_by_one(residuals, x)
    return None


def _residuals_one_by_one(residuals: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor | None:
    found: dict[int, torch.Tensor] = {}
    for k, row in enumerate(x):
        with contextlib.suppress(SimulationError):
            found[k] = residuals(row[None])[0]
    if not found:
        return None
    failed = torch.full_like(next(iter(found.values())), torch.nan)
    return torch.stack([found.get(k, failed) for k in range(len(x))])


def _filled(x: torch.Tensor, dropped: torch.Tensor) -> torch.Tensor:
    """The candidates, with the first that is left in the place of those that were dropped."""
    stand_in = x[~dropped][0].detach()
    return torch.where(dropped[:, None], stand_in, x)


def _loss_or_infinity(loss: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    try:
        return loss(x)
    except SimulationError:
        return _infinity(x)


def _infinity(x: torch.Tensor) -> torch.Tensor:
    """(…) for x (…, n): infinite without slope, but in the graph, so that others' slopes can be asked for."""
    return torch.inf + torch.zeros_like(x).mul(x).sum(-1)
