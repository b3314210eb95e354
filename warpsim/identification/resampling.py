"""Fits of other choices of the recordings: the bootstrap, and cross validation."""

from __future__ import annotations

import numpy as np
import torch

from warpsim.core.errors import InputError
from warpsim.identification.fitting import Fitting
from warpsim.identification.held_out import Errors


def bootstrap(fitting: Fitting, resamples: int, seed: int) -> torch.Tensor:
    """(resamples, n) what fits of as many recordings give, drawn with replacement from the fitted ones.

    Each fit runs through all stages from the start, so that the ruggedness of a loss and a search that ends early show.

    Args:
        fitting: How to fit.
        resamples: How many fits.
        seed: Of the draws.
    """
    train = fitting.ready.train
    if resamples < 2 or len(train) < 2:
        raise InputError(f"bootstrap={resamples} of {len(train)} recording(s): at least 2 of both are needed")
    rng = np.random.default_rng([seed, 1])
    draws = [train[torch.tensor(np.sort(rng.integers(len(train), size=len(train))))] for _ in range(resamples)]
    return torch.stack([fitting.solve(draw)[0].x for draw in draws])


def cross_validate(fitting: Fitting, folds: int, seed: int) -> tuple[dict[str, Errors], ...]:
    """Errors of each part of the fitted recordings, at the values that the other parts give.

    Args:
        fitting: How to fit.
        folds: How many parts.
        seed: Of the division.
    """
    train = fitting.ready.train
    if not 2 <= folds <= len(train):
        raise InputError(f"folds={folds} of {len(train)} recording(s): give from 2 to as many as there are")
    parts = np.array_split(np.random.default_rng([seed, 2]).permutation(len(train)), folds)
    made = []
    for part in parts:
        others = torch.tensor(np.setdiff1d(np.arange(len(train)), part))
        solver, _ = fitting.solve(train[others])
        made.append(fitting.judge(solver.x, {"left out": train[torch.tensor(np.sort(part))]}))
    return tuple(made)
