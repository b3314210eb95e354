"""What `identify` gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import torch

from warpsim.core.files import write_text
from warpsim.identification.held_out import Errors, fold_errors
from warpsim.identification.loss_check import LossCheck
from warpsim.identification.motion_page import motion_page
from warpsim.identification.parameter import BoundParameter
from warpsim.identification.prediction import Contacts, Predictor
from warpsim.identification.recordings import Recordings
from warpsim.identification.report import Curves, html_report, markdown_report
from warpsim.identification.uncertainty import Uncertainty
from warpsim.identification.writing import FittedValue, write_fitted
from warpsim.scene import Scene
from warpsim.view.page import write_page


@dataclass(frozen=True)
class IdentifiedScene:
    """A fit.

    Attributes:
        scene: As it was before.
        source: What it was made from.
        parameters: What was found, in the order of `names`.
        names: (n,).
        x: (n,) the solution, in units of the parameters' scales from their starts.
        uncertainty: Intervals, clustered by recording.
        errors: By what was judged: "train, from the measured start" …
        cross_validation: Likewise, one for each fold that was left out; empty: not asked for.
        recordings: Those that were used.
        train: Places of those that were fitted.
        held_out: Places of those that were not.
        notes: What was masked or left out of the data.
        loss: At the end.
        loss_check: Whether its gradient could be followed at the start; None: not asked for.
        rollouts: Of whole recordings, that the fit took (the check included, judging excluded).
        seconds: Processor time.
        contacts: With which the fit ended.
        predictor: Rolls out further candidates.
    """

    scene: Scene
    source: Any
    parameters: tuple[BoundParameter, ...]
    names: tuple[str, ...]
    x: torch.Tensor
    uncertainty: Uncertainty
    errors: dict[str, Errors]
    cross_validation: tuple[dict[str, Errors], ...]
    recordings: Recordings
    train: tuple[int, ...]
    held_out: tuple[int, ...]
    notes: tuple[str, ...]
    loss: float
    loss_check: LossCheck | None
    rollouts: float
    seconds: float
    contacts: Contacts
    predictor: Predictor = field(repr=False)

    @property
    def values(self) -> np.ndarray:
        """(n,) in their own units."""
        sizes = [p.size for p in self.parameters]
        parts = zip(self.parameters, torch.split(self.x, sizes), strict=True)
        return torch.cat([p.values(x) for p, x in parts]).numpy()

    @property
    def intervals(self) -> np.ndarray:
        """(n, 2) 95 %; infinite where the data do not determine a value."""
        half = self.uncertainty.half_width
        return np.stack([self.values - half, self.values + half], -1)

    @property
    def fitted_values(self) -> list[FittedValue]:
        """What each parameter sets in the scene."""
        made: dict[tuple[str, tuple[int, ...]], FittedValue] = {}
        for parameter, x in zip(self.parameters, torch.split(self.x, [p.size for p in self.parameters]), strict=True):
            for target in () if parameter.is_delay else parameter.targets:
                key = (target.name, target.item)  # several parameters may set components of one item
                numbers = made[key].numbers if key in made else target.base.copy()
                numbers[target.places] = parameter.written(parameter.values(x[None]), target)[0].numpy()
                made[key] = FittedValue(target.name, target.attribute, target.item, numbers)
        return list(made.values())

    def curves(self, place: int) -> Curves:
        """Predicted and measured curves of one recording, from the start that the fit used."""
        which = torch.tensor([place])
        own = torch.zeros(1, sum(p.size for p in self.predictor.nuisance), dtype=torch.float64)
        with torch.no_grad():
            late = self.predictor.late(self.x[None], own)
            samples = self.predictor.grid.samples
            motion = self.predictor.rollout(self.x[None], own, which, samples, self.contacts, steps=bool(late))
        return Curves.of(self.predictor, motion, place, self.recordings[place].name, late)

    def __str__(self) -> str:
        widths = zip(self.uncertainty.half_width, self.uncertainty.repeat_half_width, strict=True)
        lines = [
            f"{name}: {value:.6g} ± {half:.2g} (another such data set's value: ± {repeat:.2g})"
            if np.isfinite(half)
            else f"{name}: {value:.6g}, not determined"
            for name, value, (half, repeat) in zip(self.names, self.values, widths, strict=True)
        ]
        judged = [
            f"{what}: " + ", ".join(f"{part} {error:.4g}" for part, error in errors.mean.items())
            for what, errors in self.errors.items()
        ]
        judged += [
            f"{what}: " + ", ".join(f"{part} {mean:.4g} ± {spread:.2g}" for part, (mean, spread) in parts.items())
            for what, parts in fold_errors(self.cross_validation).items()
        ]
        checked = [] if self.loss_check is None else [self.loss_check.advice]
        spent = f"{self.rollouts:.0f} rollouts, {self.seconds:.1f} s"
        return "\n".join([*lines, *self.uncertainty.sentences, *judged, *checked, *self.notes, spent])

    def report(self) -> str:
        """In Markdown."""
        return markdown_report(self)

    def save(self, folder: str | PathLike[str]) -> list[Path]:
        """Writes the report (Markdown and a page with curves) and the fitted scene.

        Args:
            folder: Made if it is not there.

        Returns:
            The files written: report.md, report.html, motion.html (measured ghosts over predictions), and fitted.usda
            or fitted.xml (for an MJCF source both).
        """
        target = Path(fspath(folder))
        target.mkdir(parents=True, exist_ok=True)
        shown = [*self.held_out[:3], *self.train[:1]]
        page = html_report(self, [self.curves(place) for place in shown])
        written = [
            write_text(target / "report.md", markdown_report(self)),
            write_text(target / "report.html", page),
            write_page(target / "motion.html", motion_page(self, shown)),
        ]
        timestep = float(self.predictor.grid.interval.mean()) / self.predictor.substeps
        return [*written, *write_fitted(target, self.source, self.scene, self.fitted_values, self.contacts, timestep)]
