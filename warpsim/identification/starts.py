"""Where rollouts start: the first measured row, or what the first rows together say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from warpsim.core.errors import InputError
from warpsim.identification.gauss_newton import GaussNewton, Setting
from warpsim.identification.prediction import Contacts, Predictor, StartMoves

STARTS = ("measured", "smoothed", "fitted")
_ITERATIONS = 4


def start_moves(predictor: Predictor, velocity_noise: Any = None) -> StartMoves:
    """How well the first row is known: the noise of "q", and of velocities as differences of two rows of it.

    Args:
        predictor: Whose channels tell the noise.
        velocity_noise: Standard deviation of initial velocities, one number or one per dof; None: as above.
    """
    nv = predictor.grid.qd.shape[1]
    noise = [channel.noise.expand(nv) for channel in predictor.channels if channel.name == "q"]
    position = noise[0] if noise else torch.full((nv,), 1e-3, dtype=torch.float64)
    if velocity_noise is None:
        return StartMoves(position, position * 2**0.5 / float(predictor.grid.interval.mean()))
    given = torch.as_tensor(np.broadcast_to(np.asarray(velocity_noise, dtype=np.float64), (nv,)).copy())
    if not bool((given > 0).all()):
        raise InputError(f"velocity_noise={velocity_noise}: give numbers above 0")
    return StartMoves(position, given)


def smoothed(
    predictor: Predictor, chosen: torch.Tensor, x: torch.Tensor, rows: int, contacts: Contacts, moves: StartMoves
) -> tuple[torch.Tensor, torch.Tensor]:
    """(R, nq), (R, nv): initial states that fit the first rows best, given the shared values.

    The states move from where the predictor's grid has them, with the first row's noise as a prior.

    Args:
        predictor: Of all recordings.
        chosen: (R,) those whose starts are wanted.
        x: (n,) shared numbers.
        rows: Measured rows that count, the first one included.
        contacts: How they are modeled.
        moves: How well the first row is known.
    """
    solver = GaussNewton(predictor, chosen, robust=float("inf"), moves=moves, shared=False)
    solver.x = x
    held = torch.zeros(len(chosen), solver.z.shape[1], dtype=torch.float64)
    solver.z = held
    solver.run(Setting(min(rows, predictor.grid.rows), contacts, _ITERATIONS, 1e-3))
    return predictor.starts(solver.z, chosen, moves)


def with_starts(predictor: Predictor, chosen: torch.Tensor, q: torch.Tensor, qd: torch.Tensor) -> None:
    """Puts initial states of some recordings in force."""
    all_q, all_qd = predictor.grid.q.clone(), predictor.grid.qd.clone()
    all_q[chosen], all_qd[chosen] = q, qd
    predictor.grid = replace(predictor.grid, q=all_q, qd=all_qd)
