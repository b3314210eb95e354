"""Recordings cut into windows, each with a start of its own.

Over a long time motions that bounce follow from their start as dice do: a loss of whole rollouts is rugged, and weighs
what happened last the most. Over a window it is smooth, and every part of a recording speaks. What a window's start is,
was measured, is smoothed, or is fitted; where fitted starts must also continue the window before, that is multiple
shooting (Bock, 1981).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from warpsim.core.errors import InputError
from warpsim.identification.coordinates import measured_states
from warpsim.identification.delays import lead_of
from warpsim.identification.grid import Grid
from warpsim.identification.prediction import Contacts, Predictor
from warpsim.rigid.model.tangent import tangent_pieces


@dataclass(frozen=True)
class Windows:
    """How recordings are cut.

    Attributes:
        samples: Of a window, the first one included.
        stride: Samples from one's start to the next one's; None: each ends where the next one begins.
        continuity: How far a window's end and the next one's start may lie apart, as a standard deviation in units of
            the first sample's own (`identify`'s `position_noise` and `velocity_noise`); several are a schedule, as
            (10.0, 1.0, 0.1). Needs fitted starts. None: windows do not know of each other.
    """

    samples: int
    stride: int | None = None
    continuity: float | Sequence[float] | None = None

    @property
    def apart(self) -> int:
        """Samples from one's start to the next one's."""
        return self.samples - 1 if self.stride is None else self.stride

    @property
    def schedule(self) -> tuple[float | None, ...]:
        """`continuity`, stage by stage."""
        if self.continuity is None:
            return (None,)
        return tuple(float(part) for part in np.atleast_1d(np.asarray(self.continuity, dtype=np.float64)))


@dataclass(frozen=True)
class Cut:
    """A grid whose rows are parts of recordings.

    Attributes:
        grid: One row per window.
        row: (R, K) place of a recording's windows among the rows; −1: it has no such window.
        known: (rows, 2·nv) whether a start's coordinate or velocity is a measurement that counts, and not just a guess.
    """

    grid: Grid
    row: torch.Tensor
    known: torch.Tensor


def check_windows(windows: Windows, samples: int, start: str) -> None:
    """Whether the choices go together.

    Args:
        windows: How recordings are cut.
        samples: Of the longest recording.
        start: What the windows' starts are.
    """
    if not 2 <= windows.samples <= samples:
        raise InputError(f"windows of {windows.samples} samples: give from 2 to {samples}, the first one included")
    if windows.apart < 1:
        raise InputError(f"windows {windows.stride} samples apart: give 1 or more")
    if windows.continuity is None:
        return
    if start != "fitted" or windows.apart != windows.samples - 1:
        raise InputError(
            'windows that continue each other need start="fitted", and to end where the next one begins: leave '
            "stride out"
        )
    if not all(part is not None and part > 0 for part in windows.schedule):
        raise InputError(f"continuity={windows.continuity}: give numbers above 0")


def cut(predictor: Predictor, windows: Windows, contacts: Contacts, *, guess: bool) -> Cut:
    """Cuts a predictor's recordings.

    Args:
        predictor: Of whole recordings.
        windows: How.
        contacts: With which motions are simulated, where a guess of a start is needed.
        guess: Whether starts that were not measured may be guessed, since they are fitted; else they are an error.
    """
    grid, length = predictor.grid, windows.samples
    firsts = list(range(0, max(1, grid.samples - 1), windows.apart))
    told = torch.stack(list(grid.mask.values())).amax(0) > 0  # (R, G)
    q, qd, known = _starts(predictor, firsts, contacts, guess=guess)
    row = torch.full((len(told), len(firsts)), -1)
    places = [
        (r, k)
        for r in range(len(told))
        for k, first in enumerate(firsts)
        if bool(told[r, first + 1 : first + length].any()) and (guess or bool(known[r, k].all()))
    ]
    for at, (r, k) in enumerate(places):
        row[r, k] = at
    if not places:
        raise InputError(
            'no window has a start that was measured as a whole ("q", or all joints); give start="fitted", or more '
            "channels"
        )
    owner, place = (torch.tensor([pair[i] for pair in places]) for i in (0, 1))
    lead = lead_of(predictor.delays, float(grid.interval.min()))
    made = _part(grid, owner, torch.tensor(firsts)[place], length, lead)
    known = known[owner, place]
    if windows.continuity is not None:  # what was measured there is compared as the end of the window before
        known[place > 0] = False
    return Cut(replace(made, q=q[owner, place], qd=qd[owner, place]), row, known)


def _part(grid: Grid, owner: torch.Tensor, begin: torch.Tensor, length: int, lead: int) -> Grid:
    """The grid's samples from `begin` on, row by row; its starts are still the recordings'."""
    places = begin[:, None] + torch.arange(length)
    inside = places < grid.samples
    places = places.clamp(max=grid.samples - 1)
    measured = {name: values[owner[:, None], places] for name, values in grid.measured.items()}
    mask = {name: values[owner[:, None], places] * inside for name, values in grid.mask.items()}
    controls, before = None, None
    if grid.controls is not None:
        controls = grid.controls[owner[:, None], places]
        before = grid.controls[owner[:, None], (begin[:, None] + torch.arange(-lead, 0)).clamp(min=0)]
    return replace(
        grid,
        interval=grid.interval[owner],
        measured=measured,
        mask=mask,
        q=grid.q[owner],
        qd=grid.qd[owner],
        controls=controls,
        before=before,
    )


def _starts(
    predictor: Predictor, firsts: list[int], contacts: Contacts, *, guess: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(R, K, nq), (R, K, nv), (R, K, 2·nv): states at samples, and which of their numbers were measured.

    What was not, is guessed to be as in a rollout from the recording's start with the values that the fit begins with.
    """
    grid = predictor.grid
    found = measured_states(grid, predictor.layout)
    q, qd, known = (part[:, torch.tensor(firsts)] for part in found)
    q[:, 0], qd[:, 0], known[:, 0] = grid.q, grid.qd, True
    if guess and not known.all():
        count, nv = len(q), qd.shape[-1]
        x, z = (
            torch.zeros(count, sum(p.size for p in part), dtype=torch.float64)
            for part in (predictor.shared, predictor.nuisance)
        )
        with torch.no_grad():
            motion = predictor.rollout(x, z, torch.arange(count), grid.samples, contacts)
        predictor.rollouts += count
        simulated = (motion[name].double().transpose(0, 1)[:, torch.tensor(firsts)] for name in ("q", "qd"))
        free_q, free_qd = simulated
        q = torch.where(_by_coordinate(predictor, known[..., :nv]), q, free_q)
        qd = torch.where(known[..., nv:], qd, free_qd)
    return q, qd, known


def _by_coordinate(predictor: Predictor, known: torch.Tensor) -> torch.Tensor:
    """(…, nq) whether a coordinate is known, of (…, nv) whether its dof is."""
    made = torch.zeros(*known.shape[:-1], predictor.grid.q.shape[1], dtype=torch.bool)
    for _, coordinates, dofs in tangent_pieces(predictor.layout):
        made[..., coordinates] = known[..., dofs].all(-1, keepdim=True)
    return made
