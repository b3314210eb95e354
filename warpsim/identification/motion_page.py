"""A page of recordings in motion: what was measured as a ghost over what the fit predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from warpsim.core.errors import SimulationError
from warpsim.identification.coordinates import measured_states
from warpsim.rigid.model.tangent import tangent_pieces
from warpsim.view.page import Page, Take

_POSES = ("body_position", "body_rotation")
_CONTACTS = ("contact_points", "contact_point_forces")


def motion_page(fit: Any, places: Sequence[int]) -> Page:
    """Some recordings beside each other, from the starts that the fit used.

    Coordinates that were not measured at a sample are as in the last one before it, or as predicted where none was.

    Args:
        fit: An `IdentifiedScene`.
        places: Which recordings.
    """
    predictor = fit.predictor
    which = torch.tensor(list(places))
    own = torch.zeros(len(which), sum(p.size for p in predictor.nuisance), dtype=torch.float64)
    shown = (*_POSES, *(_CONTACTS if predictor.has_contacts else ()))
    samples = predictor.grid.samples
    with torch.no_grad():
        motion = predictor.rollout(fit.x.expand(len(which), -1), own, which, samples, fit.contacts, outputs=shown)
    late = "; ghosts stand as recorded, late by the fitted delays" if predictor.delays else ""
    page = motion.page(title=f"measured (ghosts) and predicted{late}")
    takes: list[Take] = []
    for world, (place, take) in enumerate(zip(places, page.takes, strict=True)):
        last = _last(fit, place)
        times = float(predictor.grid.interval[place]) * np.arange(last + 1)
        name = fit.recordings[place].name
        takes.append(_cut(replace(take, name=name, times=times), last))
        seen = _measured(fit, place, motion.q[:, world].double(), times)
        if seen is not None:
            takes.append(replace(seen, name=f"{name}, measured", over=len(takes) - 1))
    return replace(page, takes=takes)


def _last(fit: Any, place: int) -> int:
    """The last sample of a recording at which anything was measured."""
    masks = torch.stack([mask[place] for mask in fit.predictor.grid.mask.values()]).amax(0)
    return int(torch.nonzero(masks)[-1]) if bool(masks.any()) else fit.predictor.grid.samples - 1


def _cut(take: Take, last: int) -> Take:
    frames = slice(0, last + 1)
    return replace(
        take,
        positions=take.positions[frames],
        rotations=take.rotations[frames],
        values=None if take.values is None else take.values[frames],
        contacts=None if take.contacts is None else list(take.contacts)[frames],
    )


def _measured(fit: Any, place: int, predicted: torch.Tensor, times: np.ndarray) -> Take | None:
    """The scene in the coordinates that were measured; None: there are none."""
    predictor, count = fit.predictor, len(times)
    q, _, known = measured_states(predictor.grid, predictor.layout)
    q, known = q[place, :count], known[place, :count]
    if not known[1:].any():
        return None
    made = predicted[:count].clone()
    for _, coordinates, dofs in tangent_pieces(predictor.layout):
        latest = torch.where(known[:, dofs].all(-1), torch.arange(count), -1).cummax(0).values
        told = latest >= 0
        made[told, coordinates] = q[latest[told]][:, coordinates]
    try:
        with torch.no_grad():  # one frame of as many worlds as there are samples
            posed = predictor.simulator(count, fit.contacts).rollout(1, q=made, outputs=_POSES)
    except SimulationError:  # what was measured need not be a state that can be simulated
        return None
    bodies = [predictor.layout.body(body.name) for body in fit.scene.bodies]
    positions, rotations = (posed.numpy(name)[0][:, bodies] for name in _POSES)
    return Take("measured", times, positions, rotations, ghost=True)
