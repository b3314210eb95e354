"""One fit of some of the recordings, stage by stage; repeated fits of other choices of them start from nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from warpsim.identification.gauss_newton import GaussNewton, Setting
from warpsim.identification.gradient_fit import descend
from warpsim.identification.grid import Grid
from warpsim.identification.held_out import Errors, measure_errors
from warpsim.identification.loss_check import LossCheck, check_loss
from warpsim.identification.prediction import Contacts, Predictor, StartMoves
from warpsim.identification.recordings import Recordings
from warpsim.identification.starts import smoothed, with_starts
from warpsim.identification.windows import Cut
from warpsim.sim.simulator import Simulator


@dataclass(frozen=True)
class Prepared:
    """What a fit works on.

    Attributes:
        sim: One world.
        predictor: Of all usable recordings.
        recordings: These.
        train: (R,) places of those that are fitted.
        held_out: Of those that are not.
    """

    sim: Simulator
    predictor: Predictor
    recordings: Recordings
    train: torch.Tensor
    held_out: torch.Tensor


@dataclass(frozen=True)
class Fitting:
    """How to fit; the choices are those of `identify`.

    Attributes:
        ready: The data and the scene.
        raw: The data with the initial states that were measured.
        cut: Their windows; None: recordings are fitted as a whole.
        settings: The stages.
        moves: How well the first sample is known.
        start: One of `STARTS`.
        start_samples: How many samples a smoothed start looks at.
        method: "gauss_newton", or one of `METHODS`.
        robust: Width of the quadratic part of a sample's loss.
        difference: Step of the Jacobian's differences.
    """

    ready: Prepared
    raw: Grid
    cut: Cut | None
    settings: list[Setting]
    moves: StartMoves
    start: str
    start_samples: int
    method: str
    robust: float
    difference: float

    def solve(self, chosen: torch.Tensor, *, check: bool = False) -> tuple[GaussNewton, LossCheck | None]:
        """Fits some recordings from x = 0 on; the starts of the last stage stay in force.

        Args:
            chosen: (R,) their places; one that occurs twice counts twice.
            check: Whether the loss's exact gradient is compared with differences first.
        """
        predictor = self.ready.predictor
        predictor.grid = self._measured
        moves = self.moves if self.start == "fitted" else None
        solver = GaussNewton(
            predictor, chosen, robust=self.robust, moves=moves, difference=self.difference, cut=self.cut
        )
        found = None
        for place, setting in enumerate(self.settings):
            places = _drawn(len(chosen), setting.batch, place)
            stage = solver.part(places)
            if self.start == "smoothed":
                self._smooth(stage.shots.places[0], solver.x, setting.contacts)
            if check and place == 0:
                found = check_loss(stage, replace(setting, samples=self.settings[-1].samples))
            if self.method == "gauss_newton":
                stage.run(setting)
            else:
                descend(stage, setting, self.method)
            solver.x, solver.z[places] = stage.x, stage.z
        return solver, found

    def with_fitted_starts(self, solver: GaussNewton) -> Grid:
        """Whole recordings, with the starts that the fit ended with where it had any."""
        predictor = self.ready.predictor
        rows, owner, window = solver.shots.places
        first = window == 0
        numbers = solver.shots.numbers(solver.z[None])[0]
        q, qd = predictor.starts(numbers[first], rows[first], solver.moves)
        all_q, all_qd = self.raw.q.clone(), self.raw.qd.clone()
        if self.start != "measured":
            all_q[solver.chosen[owner[first]]], all_qd[solver.chosen[owner[first]]] = q, qd
        return replace(self.raw, q=all_q, qd=all_qd)

    @property
    def _measured(self) -> Grid:
        """Rows that are fitted, with starts as they were measured."""
        return self.raw if self.cut is None else self.cut.grid

    def judge(self, x: torch.Tensor, groups: Mapping[str, torch.Tensor]) -> dict[str, Errors]:
        """Errors of groups of recordings at x (n,), from measured and from smoothed starts; no part of a fit's cost."""
        predictor = self.ready.predictor
        setting = replace(self.settings[-1], samples=self.raw.samples)
        spent = predictor.rollouts
        made: dict[str, Errors] = {}
        for what, chosen in groups.items():
            if not len(chosen):
                continue
            predictor.grid = self.raw
            made[f"{what}, from the measured start"] = measure_errors(predictor, chosen, x, setting)
            self._smooth(chosen, x, setting.contacts, self.raw)
            made[f"{what}, from a smoothed start"] = measure_errors(predictor, chosen, x, setting)
        predictor.rollouts = spent
        return made

    def _smooth(self, rows: torch.Tensor, x: torch.Tensor, contacts: Contacts, measured: Grid | None = None) -> None:
        """Puts smoothed starts in force, anew from the measured samples."""
        predictor, measured = self.ready.predictor, measured or self._measured
        with_starts(predictor, rows, measured.q[rows], measured.qd[rows])
        q, qd = smoothed(predictor, rows, x, self.start_samples, contacts, self.moves)
        with_starts(predictor, rows, q, qd)


def _drawn(count: int, batch: int | None, stage: int) -> torch.Tensor:
    """(r,) places of the recordings that a stage fits, in order; always the same ones."""
    if batch is None or batch >= count:
        return torch.arange(count)
    generator = torch.Generator().manual_seed(stage)
    return torch.randperm(count, generator=generator)[:batch].sort().values
