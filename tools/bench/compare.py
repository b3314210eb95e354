"""Compares two result files of `python -m tools.bench --json`: what has become slower, beyond noise?

Times of two runs cannot be compared on a machine whose speed drifts; ratios to MuJoCo's forward pass, taken round by
round within each run, can. A workload counts as changed if its median ratio moved by more than `LEAST` and the middle
halves of the two sides' samples do not overlap.

A side is a file, whose samples are its rounds, or a folder of files of runs taken in turns with the other side's, whose
samples are the ratios of the runs' shortest rounds: where memory and caches happen to lie differs between processes by
more than between rounds, so one process a side calls a tree slower than itself; and what others do on the machine only
ever adds time.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LEAST = 0.05
"""Smallest relative change that counts."""


@dataclass(frozen=True)
class Change:
    """One workload in both files."""

    case: str
    label: str
    before: tuple[float, ...]
    """Ratios to MuJoCo: of one run's rounds, or of several runs' shortest rounds."""
    after: tuple[float, ...]

    @property
    def factor(self) -> float:
        """Median ratio after over that before; above 1 is slower."""
        return statistics.median(self.after) / statistics.median(self.before)

    @property
    def verdict(self) -> str:
        """One of "slower", "faster" and "same"."""
        low_before, high_before = _middle_half(self.before)
        low_after, high_after = _middle_half(self.after)
        if self.factor > 1.0 + LEAST and low_after > high_before:
            return "slower"
        if self.factor < 1.0 / (1.0 + LEAST) and high_after < low_before:
            return "faster"
        return "same"


def compare(before: Path, after: Path) -> list[Change]:
    """All workloads of warpsim that both sides hold with valid results."""
    old, new = _samples(before), _samples(after)
    return [
        Change(case, label, old[case, label], ratios) for (case, label), ratios in new.items() if (case, label) in old
    ]


def to_text(changes: list[Change]) -> str:
    """A Markdown table, and a line that names what became slower."""
    lines = ["| case | workload | ratio before | after | change | |", "|---|---|---|---|---|---|"]
    for c in changes:
        medians = f"{statistics.median(c.before):.2f} | {statistics.median(c.after):.2f}"
        lines.append(f"| {c.case} | {c.label} | {medians} | {100 * (c.factor - 1):+.0f} % | {c.verdict} |")
    slower = [f"{c.case}: {c.label}" for c in changes if c.verdict == "slower"]
    lines += ["", "slower beyond noise: " + "; ".join(slower) if slower else "nothing is slower beyond noise"]
    return "\n".join(lines)


def _samples(side: Path) -> dict[tuple[str, str], tuple[float, ...]]:
    """Ratios to MuJoCo by case and label: of the rounds of a file, or one for each file of a folder."""
    if not side.is_dir():
        return {key: tuple(own / its for own, its in pairs) for key, pairs in _rounds(side)}
    runs = [dict(_rounds(file)) for file in sorted(side.glob("*.json"))]
    if not runs:
        raise SystemExit(f"{side} holds no .json file of --json")
    common = [key for key in runs[0] if all(key in run for run in runs)]
    return {key: tuple(_shortest_ratio(run[key]) for run in runs) for key in common}


def _rounds(file: Path) -> Iterator[tuple[tuple[str, str], list[tuple[float, float]]]]:
    """((case, label), seconds of each round and of MuJoCo on as many threads)."""
    for entry in json.loads(file.read_text(encoding="utf-8"))["cases"]:
        rows = entry["measurements"]
        for row in rows:
            if not row["label"].startswith("warpsim") or not row["valid"]:
                continue
            threads = row.get("threads", 1)
            reference = next(r for r in rows if r.get("threads", 1) == threads)
            yield (entry["case"]["name"], row["label"]), list(zip(row["seconds"], reference["seconds"], strict=True))


def _shortest_ratio(pairs: list[tuple[float, float]]) -> float:
    own, its = zip(*pairs, strict=True)
    return min(own) / min(its)


def _middle_half(values: tuple[float, ...]) -> tuple[float, float]:
    """First and third quartile."""
    if len(values) < 2:
        return values[0], values[0]
    quartiles = statistics.quantiles(values, n=4, method="inclusive")
    return quartiles[0], quartiles[2]
