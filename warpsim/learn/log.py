"""A training as files that grow while it runs: one line of JSON and one of CSV for each update."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict, fields
from os import PathLike
from pathlib import Path
from typing import Any

from warpsim.learn.iteration import Iteration

COLUMNS = tuple(field.name for field in fields(Iteration))
"""Of the CSV file, and keys of each line of JSON."""


class TrainingLog:
    """Writes `log.jsonl` and `log.csv` into a folder; can be given to `SHAC.train` as `until`, and ends nothing."""

    def __init__(self, folder: str | PathLike[str], *, keep: int = 0) -> None:
        """Begins both files, or goes on with them.

        Args:
            folder: Exists.
            keep: Updates of the files that stay, of a training that goes on; later ones are cut off.
        """
        self._json, self._csv = Path(folder) / "log.jsonl", Path(folder) / "log.csv"
        lines = self._json.read_text(encoding="utf-8").splitlines()[:keep] if keep and self._json.is_file() else []
        self._json.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        with self._csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(json.loads(line) for line in lines)

    def __call__(self, made: Iteration) -> bool:
        """Adds an update."""
        row: dict[str, Any] = asdict(made)
        with self._json.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        with self._csv.open("a", newline="", encoding="utf-8") as file:
            csv.DictWriter(file, COLUMNS).writerow(row)
        return False


def read_log(folder: str | PathLike[str]) -> list[Iteration]:
    """The updates that a `TrainingLog` wrote."""
    lines = (Path(folder) / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [Iteration(**json.loads(line)) for line in lines]
