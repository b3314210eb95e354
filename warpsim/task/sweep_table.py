"""`Sweep`: the table of a sweep, printed, as CSV, and as a picture."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path

import numpy as np

from warpsim.core.errors import OutputError
from warpsim.core.files import MARK, write_text
from warpsim.task.sweep_plot import sweep_plot
from warpsim.task.varied import Varied
from warpsim.view.raycast.images import write_png

_MOST_ROWS, _MOST_COLUMNS = 40, 6
"""That are printed; the CSV holds all."""
_WORDS = {True: "yes", False: "no", None: ""}


@dataclass(frozen=True)
class SweepPoint:
    """One point.

    Attributes:
        number: In the grid, the last attribute's values changing fastest.
        values: Of what was varied.
        results: By name: with a task "loss" and the terms; without, energies and coordinates at the end.
        success: Whether all conditions of the task hold; None: it has none, or the point failed.
        reason: Why it could not be simulated; "": it was.
    """

    number: int
    values: tuple[float, ...]
    results: dict[str, float]
    success: bool | None = None
    reason: str = ""

    @property
    def loss(self) -> float:
        """The task's objective; infinite where the point failed, NaN where there is no task."""
        return math.inf if self.reason else self.results.get("loss", math.nan)


@dataclass(frozen=True)
class Sweep:
    """What came of all points; print it.

    Attributes:
        title: The task or scene.
        varied: What was varied, with the values as their attributes' types store them.
        units: Of each.
        points: In the order of the grid.
    """

    title: str
    varied: tuple[Varied, ...]
    units: tuple[str, ...]
    points: tuple[SweepPoint, ...] = field(repr=False)

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the results."""
        return next((tuple(point.results) for point in self.points if not point.reason), ())

    @property
    def failed(self) -> tuple[SweepPoint, ...]:
        """Points that could not be simulated."""
        return tuple(point for point in self.points if point.reason)

    @property
    def best(self) -> SweepPoint | None:
        """The point of least loss; None: there is no task, or all failed."""
        judged = [point for point in self.points if math.isfinite(point.loss)]
        return min(judged, key=lambda point: point.loss, default=None)

    @property
    def _judged(self) -> bool:
        return any(point.success is not None for point in self.points)

    def csv(self) -> str:
        """All points, as text: their values, results, success and reason; numbers with all their digits."""
        out = io.StringIO()
        out.write(f"# {MARK.decode()}: sweep of {self.title}\n")
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["point", *self._headings(), *self.measures, "success", "reason"])
        for point in self.points:
            results = [repr(point.results[name]) if name in point.results else "" for name in self.measures]
            values = [_stored(value) for value in point.values]
            writer.writerow([point.number, *values, *results, _WORDS[point.success], point.reason])
        return out.getvalue()

    def save(self, folder: str | PathLike[str]) -> list[Path]:
        """Writes `sweep.csv` and `sweep.png` into a folder, which is made; their paths."""
        path = Path(fspath(folder))
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"cannot make the folder {path}: {error.strerror or error}") from error
        table, picture = sweep_files(path)
        picture_array = sweep_plot(self.title, self._headings(), self._pictured(), self._measure())
        return [write_text(table, self.csv()), write_png(picture, picture_array)]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _headings(self) -> list[str]:
        units = [f" ({unit})" if unit else "" for unit in self.units]
        return [varied.name + unit for varied, unit in zip(self.varied, units, strict=True)]

    def _measure(self) -> str:
        """What the picture shows."""
        return self.measures[0] if self.measures else "loss"

    def _pictured(self) -> list[tuple[tuple[float, ...], float, bool | None]]:
        """Values, measure and success of each point; NaN where it failed."""
        name = self._measure()
        return [(point.values, point.results.get(name, math.nan), point.success) for point in self.points]

    def _lines(self) -> Iterator[str]:
        shown = self._shown()
        measures = self.measures[:_MOST_COLUMNS]
        head = [varied.name.rpartition(".")[2] or varied.name for varied in self.varied]
        rows = [["point", *head, *measures, *(["success"] if self._judged else [])]]
        for point in shown:
            results = [f"{point.results[name]:.6g}" if name in point.results else "–" for name in measures]
            verdict = [_WORDS[point.success] or "–"] if self._judged else []
            rows.append([str(point.number), *(f"{value:.6g}" for value in point.values), *results, *verdict])
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        reasons = ["", *(f"  {point.reason}" if point.reason else "" for point in shown)]
        for row, reason in zip(rows, reasons, strict=True):
            yield ("  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) + reason).rstrip()
        yield from self._summary(shown)

    def _shown(self) -> Sequence[SweepPoint]:
        """The rows that are printed: all of a small table; of a large one the best, or the first."""
        if len(self.points) <= _MOST_ROWS:
            return self.points
        if self.best is None:
            return self.points[:_MOST_ROWS]
        return sorted(self.points, key=lambda point: (point.loss, point.number))[:_MOST_ROWS]

    def _summary(self, shown: Sequence[SweepPoint]) -> Iterator[str]:
        if len(shown) < len(self.points):
            which = "first" if self.best is None else "best"
            yield f"the {which} {len(shown)} of {len(self.points)} points; the table has all"
        if len(self.measures) > _MOST_COLUMNS:
            yield f"the first {_MOST_COLUMNS} of {len(self.measures)} results; the table has all"
        counts = [f"{len(self.points)} points"]
        if self._judged:
            counts.append(f"{sum(point.success is True for point in self.points)} solved")
        counts.append(f"{len(self.failed)} could not be simulated")
        if self.best is not None:
            where = ", ".join(f"{v.name} = {x:.6g}" for v, x in zip(self.varied, self.best.values, strict=True))
            counts.append(f"least loss {self.best.loss:.6g} at {where}")
        yield "; ".join(counts)


def _stored(value: float) -> str:
    """A value with the digits that its type keeps: 0.1 where that is the nearest number of single precision."""
    single = np.float32(value)
    return str(single) if float(single) == value else repr(value)


def sweep_files(folder: Path) -> tuple[Path, Path]:
    """The files that `Sweep.save` writes."""
    return folder / "sweep.csv", folder / "sweep.png"
