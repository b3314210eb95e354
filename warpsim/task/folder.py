"""The folder of a run: the best so far while it runs, everything about it at the end.

result.usda             root layer over animation, values and the source: the solved scene
before.usda             the source as it moves unsolved
record.json             the run record of the result's rollout, with the search that led to it
loss.png                loss over iterations
before_after.gif        both motions side by side
result.html             both motions, and how the search went, in a browser
search.json             the optimizer's state, from which `--resume` goes on
"""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from warpsim.check.records import RunRecord
from warpsim.check.records.signed import read_json, signed_text, verified
from warpsim.core.errors import CacheWarning, InputError, OutputError
from warpsim.core.files import write_text
from warpsim.io.usd.motion import Motion
from warpsim.io.usd.writer import OptimizedValue, result_files, write_result
from warpsim.optimizers.search import Progress
from warpsim.task.outcome import Outcome
from warpsim.task.plot import loss_plot
from warpsim.task.problem import TaskProblem
from warpsim.task.values import chosen_values
from warpsim.view.page import Page, write_page
from warpsim.view.raycast.compare import render_pair
from warpsim.view.raycast.images import write_gif, write_png

FORMAT = "warpsim search 1"
_SAVE_EVERY = 1.0
"""s between saves of a running search, at least."""


def folder_files(path: Path) -> list[Path]:
    """Every file that a run may write into its folder."""
    names = ("record.json", "loss.png", "before_after.gif", "search.json", "result.html")
    layers = [*result_files(path / "result.usda"), *result_files(path / "before.usda")]
    return [*layers, *(path / name for name in names)]


class ResultFolder:
    """Writes a run's files.

    Attributes:
        path: The folder, which is made.
    """

    def __init__(self, path: Path, problem: TaskProblem, source: Path) -> None:
        self.path, self._problem, self._source = path, problem, source
        if path.exists() and not path.is_dir():
            raise InputError(f"{path} is a file; give a folder to write to")
        path.mkdir(parents=True, exist_ok=True)
        self._saved = -_SAVE_EVERY

    @property
    def result(self) -> Path:
        """The result's root layer."""
        return self.path / "result.usda"

    @property
    def state(self) -> Path:
        """The optimizer's state."""
        return self.path / "search.json"

    def load_state(self, key: Mapping[str, Any]) -> dict[str, Any]:
        """The state of an earlier run.

        Args:
            key: What the run must have in common with this one.

        Raises:
            InputError: There is none, it is damaged, or it is of another scene, task or method.
        """
        if not self.state.is_file():
            raise InputError(f"{self.state}: nothing to resume; run without --resume first")
        try:
            saved = verified(read_json(self.state), self.state)
        except InputError as error:
            raise InputError(
                f"{self.state} is damaged, or was changed since; begin again, without --resume\n{error}"
            ) from error
        if not all(isinstance(saved.get(part), dict) for part in ("key", "state")):
            raise InputError(f"{self.state} is not the state of a search; run without --resume")
        for name, value in key.items():
            before = saved["key"].get(name)
            if before != value:
                raise InputError(f"{self.state} was saved with {name} {before!r}, not {value!r}; run without --resume")
        return saved["state"]

    def save_state(self, key: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        """Replaces the saved state as a whole, so that being killed leaves the old one or the new one."""
        write_text(self.state, signed_text({"format": FORMAT, "key": dict(key), "state": state}))

    def keep(self, key: Mapping[str, Any], seen: Progress) -> None:
        """Saves the best so far and the state from which the search can go on, about once a second."""
        if time.perf_counter() - self._saved < _SAVE_EVERY and seen.entry.iteration > 1:
            return
        try:
            self.write_values(seen.best_x, {"loss": seen.best_loss, "iteration": seen.entry.iteration})
            self.save_state(key, seen.state())
        except OutputError as error:  # what was found so far is worth more than keeping it
            warnings.warn(f"the search goes on, but the best so far is not kept: {error}", CacheWarning, stacklevel=2)
        self._saved = time.perf_counter()

    def write_values(self, x: torch.Tensor, provenance: Mapping[str, Any]) -> list[Path]:
        """The result without a motion."""
        values = chosen_values(self._problem, x)
        return write_result(self.result, self._source, self._problem.sim.scene, values=values, provenance=provenance)

    def write_result(
        self, outcome: Outcome, values: Sequence[OptimizedValue], provenance: Mapping[str, Any]
    ) -> list[Path]:
        """The whole result."""
        return write_result(
            self.result,
            self._source,
            self._problem.sim.scene,
            _without_contacts(outcome.motion),
            values=list(values),
            provenance=provenance,
            states=False,
            start_code=self._problem.task.start_code,
        )

    def write_before(self, outcome: Outcome) -> list[Path]:
        """The motion of the source."""
        return write_result(
            self.path / "before.usda",
            self._source,
            self._problem.sim.scene,
            _without_contacts(outcome.motion),
            states=False,
            start_code=self._problem.task.start_code,
        )

    def write_record(self, record: RunRecord) -> Path:
        """`record.json`."""
        return record.save(self.path / "record.json")

    def write_plot(self, iterations: Sequence[int], losses: Sequence[float]) -> Path:
        """`loss.png`."""
        return write_png(self.path / "loss.png", loss_plot(iterations, losses, self._problem.task.name))

    def write_film(self, *, progress: bool) -> Path:
        """`before_after.gif`, from the two files."""
        pictures, interval = render_pair(
            [self.path / "before.usda", self.result], ["before", "after"], progress=progress
        )
        return write_gif(self.path / "before_after.gif", pictures, interval=interval)

    def write_page(self, page: Page) -> Path:
        """`result.html`."""
        return write_page(self.path / "result.html", page)


def _without_contacts(motion: Motion) -> Motion:
    """Results are thin layers: contacts are on the page."""
    return dataclasses.replace(motion, contacts=None)
