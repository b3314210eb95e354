"""`OptimizedTask`: what a search over a task found, and the files it is kept in."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from warpsim.check.records import RunRecord
from warpsim.check.records.fingerprint import stage_hash, versions
from warpsim.core.driving import Steps, drive
from warpsim.core.notebook import folded_page_html, rows_html
from warpsim.io.reading_limits import trusting
from warpsim.optimizers.identification import Identification
from warpsim.optimizers.multi_start import StartsReport
from warpsim.optimizers.result import Result
from warpsim.task.course import Stop
from warpsim.task.folder import ResultFolder
from warpsim.task.outcome import Outcome
from warpsim.task.problem import TaskProblem
from warpsim.task.record import (
    change_record,
    control_record,
    identification_record,
    outcome_record,
    result_record,
    rollout_record,
    search_inputs,
    starts_record,
)
from warpsim.task.result_page import result_page
from warpsim.task.task import SearchSpec, Task
from warpsim.task.values import chosen_values
from warpsim.view.page import Page, page_html

DEFAULT_METHOD = "lbfgs"


@dataclass(frozen=True, repr=False)
class OptimizedTask:
    """A task and what came of it.

    Attributes:
        problem: The task on its source.
        search: How it was searched for.
        result: The optimizer's own: x, history, why it stopped.
        before: The source as it stands.
        after: The result as it loads from a file: values rounded to the attributes' types.
        loaded: The task as it was loaded from that file.
        diagnosis: Why the variables do not reach the objective, and what to try, where the search found no slope.
        course: Iterates of the search, first to last, to look at.
    """

    problem: TaskProblem
    source: Path
    search: SearchSpec
    result: Result
    before: Outcome
    after: Outcome
    loaded: TaskProblem
    diagnosis: tuple[str, ...] = ()
    course: tuple[Stop, ...] = ()

    @property
    def identification(self) -> Identification | None:
        """How well the data determine each value, from a method that knows; None from others."""
        report = self.result.report
        report = report.report if isinstance(report, StartsReport) else report
        return report if isinstance(report, Identification) else None

    @property
    def starts(self) -> StartsReport | None:
        """What each of several starts reached; None: there was one."""
        return self.result.report if isinstance(self.result.report, StartsReport) else None

    @property
    def solved(self) -> bool | None:
        """Whether the result meets all conditions; None: the task has none."""
        return self.after.solved

    @property
    def loss(self) -> float:
        """Of the result, as loaded from a file."""
        return self.after.loss

    @property
    def changes(self) -> dict[str, Any]:
        """By attribute: value before, value after, unit."""
        return change_record(self.problem, self.result.x)

    def record(self, result: str | PathLike[str]) -> RunRecord:
        """The run record of the result's rollout; `task` is the search that led to it, `more` what came of that.

        Args:
            result: The result's file, as `save` wrote it.
        """
        more: dict[str, Any] = {
            "before": outcome_record(self.before),
            "after": outcome_record(self.after),
            "attributes": self.changes,
            "controls": control_record(self.problem, self.result.x),
            "result": result_record(self.result),
        }
        if self.identification is not None:
            more["identification"] = identification_record(self.problem, self.identification)
        if self.starts is not None:
            more["starts"] = starts_record(self.starts)
        if self.problem.bias is not None:
            more["gradient"] = self.problem.bias
        if self.diagnosis:
            more["diagnosis"] = list(self.diagnosis)
        return rollout_record(
            self.loaded,
            self.after,
            self.loaded.sim,
            path=Path(fspath(result)),
            seed=self.search.seed,
            task=search_inputs(self.problem, self.source, self.search),
            more=more,
        )

    def save(
        self, path: str | PathLike[str], *, film: bool = True, page: bool = True, progress: bool = False
    ) -> list[Path]:
        """Writes the run's folder; see `warpsim.task.folder` for what it holds.

        Args:
            path: The folder.
            film: Whether to draw `before_after.gif`, which takes some seconds.
            page: Whether to write `result.html`, for which the iterates of `course` are simulated.
            progress: Show a bar while drawing.

        Returns:
            The files written, the result first and the page last.
        """
        return [*self.save_result(path), *self.save_record(path, film=film, page=page, progress=progress)]

    def save_result(self, path: str | PathLike[str]) -> list[Path]:
        """Writes the result, the motion before it, and the search's state; arguments as in `save`."""
        folder = ResultFolder(Path(fspath(path)), self.problem, self.source)
        values = chosen_values(self.problem, self.result.x, self.after.gradients)
        written = folder.write_result(self.after, values, self._provenance())
        written += folder.write_before(self.before)
        folder.save_state(search_key(self.source, self.problem.task, self.search), self.result.state)
        return written

    def save_record(
        self, path: str | PathLike[str], *, film: bool = True, page: bool = True, progress: bool = False
    ) -> list[Path]:
        """Writes the record of a result that is saved, draws the pictures and the page; arguments as in `save`."""
        return drive(self.saving_record(path, film=film, page=page, progress=progress))

    def saving_record(
        self, path: str | PathLike[str], *, film: bool = True, page: bool = True, progress: bool = False
    ) -> Steps[list[Path]]:
        """`save_record` as steps, for whoever drives them."""
        folder = ResultFolder(Path(fspath(path)), self.problem, self.source)
        written = [folder.write_record(self.record(folder.result))]
        history = self.result.history
        written.append(folder.write_plot([entry.iteration for entry in history], [entry.loss for entry in history]))
        with trusting(self.source):
            if film:
                written.append(folder.write_film(progress=progress))
            if page:
                written.append(folder.write_page((yield from self._page(folder.result))))
        return written

    def page(self, result: str | PathLike[str]) -> Page:
        """What the page of the run shows.

        Args:
            result: The result's file, as `save` wrote it.
        """
        return drive(self._page(result))

    def _page(self, result: str | PathLike[str]) -> Steps[Page]:
        return result_page(
            self.problem,
            self.before,
            self.after,
            self.course,
            self.result.history,
            source=self.source,
            result=Path(fspath(result)),
            notes=[f"loss {self.before.loss:.4g} → {self.after.loss:.4g}", *self._notes()],
        )

    def __repr__(self) -> str:
        return f"OptimizedTask({self._title})"

    def __str__(self) -> str:
        return "\n  ".join([self._title, *self._notes()])

    @property
    def _title(self) -> str:
        verdict = {True: "solved", False: "not solved", None: "no condition of success"}[self.solved]
        return f"{self.problem.task.name}: loss {self.before.loss:.4g} → {self.after.loss:.4g}, {verdict}"

    def _repr_html_(self) -> str:
        rows = ((path, _brief(c["before"]), _brief(c["after"]), c["unit"]) for path, c in self.changes.items())
        # what the result looks like is read from its file
        with tempfile.TemporaryDirectory() as scratch, trusting(self.source):
            folder = ResultFolder(Path(scratch), self.problem, self.source)
            folder.write_values(self.result.x, {})
            page = page_html(self.page(folder.result))
        return rows_html(self._title, ("attribute", "before", "after", "unit"), rows) + folded_page_html(
            page, "View the result"
        )

    def _notes(self) -> Iterator[str]:
        """Lines for a reader who has seen the losses."""
        if self.problem.bias is not None:
            yield self.problem.bias
        for path, change in self.changes.items():
            name = path.rpartition("/")[2]
            yield f"{name}: {_brief(change['before'])} → {_brief(change['after'])} {change['unit']}"
        yield from (verdict.text for verdict in self.after.verdicts)

    def _provenance(self) -> dict[str, Any]:
        return {
            "task": self.problem.task.name,
            "loss before": self.before.loss,
            "loss after": self.after.loss,
            "solved": str(self.solved),
            "search": dataclasses.asdict(self.search),
            "stopped": self.result.stopped,
            "gradient": self.problem.bias or "exact",
            "versions": versions(),
        }


def _brief(value: Any) -> str:
    """A value, or the first few of its numbers."""
    if not isinstance(value, list):
        return f"{value:.4g}"
    return f"({', '.join(map(_brief, value[:3]))}{', …' if len(value) > 3 else ''})"


def search_key(source: Path, task: Task, search: SearchSpec) -> dict[str, Any]:
    """What two runs must have in common for one to go on with the other's search."""
    return {
        "source": stage_hash(source),
        "task": task.name,
        "method": search.method,
        "rate": search.rate,
        "seed": search.seed,
        "starts": search.starts,
    }
