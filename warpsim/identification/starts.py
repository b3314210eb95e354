"""Where rollouts start: the first measured sample, or what the first samples together say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from warpsim.core.errors import InputError
from warpsim.identification.coordinates import channel_dofs
from warpsim.identification.gauss_newton import GaussNewton, Setting
from warpsim.identification.grid import Grid
from warpsim.identification.prediction import Contacts, Predictor, StartMoves

STARTS = ("measured", "smoothed", "fitted")
_ITERATIONS = 2
"""Before contacts, motions are nearly linear in their initial states."""


def start_moves(predictor: Predictor, position_noise: Any = None, velocity_noise: Any = None) -> StartMoves:
    """How well the first sample is known: the noise of coordinates, and of velocities as differences of two samples.

    Args:
        predictor: Whose channels tell the noise: "q", or those of single joints.
        position_noise: Standard deviation of initial coordinates, one number or one per dof; None: as above, or 1e-3
            where they are not compared.
        velocity_noise: Of initial velocities, likewise; None: as above.
    """
    nv = predictor.grid.qd.shape[1]
    position = torch.full((nv,), 1e-3, dtype=torch.float64)
    for channel in predictor.channels:
        dofs = channel_dofs(channel.name, predictor.layout)
        if dofs is not None:
            position[dofs] = channel.noise.expand(channel.size)
    if position_noise is not None:
        position = _per_dof("position_noise", position_noise, nv)
    if velocity_noise is None:
        return StartMoves(position, position * 2**0.5 / float(predictor.grid.interval.mean()))
    return StartMoves(position, _per_dof("velocity_noise", velocity_noise, nv))


def _per_dof(what: str, given: Any, nv: int) -> torch.Tensor:
    numbers = np.asarray(given, dtype=np.float64)
    if numbers.shape not in ((), (nv,)) or not (numbers > 0).all():
        raise InputError(f"{what}={given}: give one number above 0, or {nv}")
    return torch.tensor(np.broadcast_to(numbers, (nv,)).copy())


def smoothed(
    predictor: Predictor, chosen: torch.Tensor, x: torch.Tensor, samples: int, contacts: Contacts, moves: StartMoves
) -> tuple[torch.Tensor, torch.Tensor]:
    """(R, nq), (R, nv): initial states that fit the first samples best, given the shared values.

    The states move from where the predictor's grid has them, with the first sample's noise as a prior. A recording's
    samples from its first contact on are not looked at, unless it is in contact from the beginning.

    Args:
        predictor: Of all recordings.
        chosen: (R,) those whose starts are wanted.
        x: (n,) shared numbers.
        samples: Measured samples that count, the first one included.
        contacts: How they are modeled.
        moves: How well the first sample is known.
    """
    solver = GaussNewton(predictor, chosen, robust=float("inf"), moves=moves, shared=False)
    solver.x = x
    setting = Setting(min(samples, predictor.grid.samples), contacts, _ITERATIONS, 1e-3)
    whole = predictor.grid
    predictor.grid = _before_contact(solver, setting)
    try:
        solver.run(setting)
        return predictor.starts(solver.z, chosen, moves)
    finally:
        predictor.grid = whole


def _before_contact(solver: GaussNewton, setting: Setting) -> Grid:
    """The grid with samples from the first contact on masked, as rollouts from the present starts see it."""
    predictor, chosen = solver.predictor, solver.chosen
    if not predictor.has_contacts:
        return predictor.grid
    with torch.no_grad():
        made = predictor.rollout(
            solver.x.expand(len(chosen), -1),
            solver.z,
            chosen,
            setting.samples,
            setting.contacts,
            solver.moves,
            outputs=("contact_point_forces",),
        )["contact_point_forces"]
    predictor.rollouts += len(chosen) * (setting.samples - 1) / max(1, predictor.grid.samples - 1)
    touching = (made != 0).flatten(2).any(-1).T  # (R, samples)
    before = (touching.cumsum(1) == 0) | touching[:, 1:2]
    masks = {}
    for name, mask in predictor.grid.mask.items():
        masks[name] = mask.clone()
        masks[name][chosen, : setting.samples] *= before.to(mask)
    return replace(predictor.grid, mask=masks)


def with_starts(predictor: Predictor, chosen: torch.Tensor, q: torch.Tensor, qd: torch.Tensor) -> None:
    """Puts initial states of some recordings in force."""
    all_q, all_qd = predictor.grid.q.clone(), predictor.grid.qd.clone()
    all_q[chosen], all_qd[chosen] = q, qd
    predictor.grid = replace(predictor.grid, q=all_q, qd=all_qd)
