"""Results as JSON and Markdown, with the machine, the versions and the command that made them."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shlex
import statistics
import sys
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from tools.bench.cases import Case
from tools.bench.timing import Timing

_PACKAGES = ("warp-lang", "mujoco", "numpy", "torch", "usd-core")


ADJOINT_SHARE = "captured adjoint / captured step"
ROLLOUT_SHARE = "gradient / forward rollout"


def rollout_bar(case: Case) -> float:
    """What a gradient may take of the plain rollout."""
    return 4.6 if case.contact else 4.0


@dataclass(frozen=True)
class Measurement:
    """One workload of one case."""

    label: str
    timing: Timing
    deviation: float
    """Of the final state from MuJoCo's, relative; NaN fails."""
    gradient_error: float | None = None
    """Relative, against central differences of the workload's own forward pass; None for forward passes."""

    def microseconds(self, seconds: float, case: Case) -> float:
        """Seconds of a whole run as µs per step and world."""
        return 1e6 * seconds / (case.steps * case.worlds)


@dataclass(frozen=True)
class Result:
    """All workloads of one case, or the reason why it was skipped."""

    case: Case
    contacts: float = 0.0
    """At the start, mean over worlds."""
    measurements: list[Measurement] = field(default_factory=list)
    skipped: str = ""
    invalid: str = ""
    """Why MuJoCo's own run is not what the case says, if so."""

    @property
    def failures(self) -> list[str]:
        """Workloads whose result is wrong: their time means nothing."""
        return [m.label for m in self.measurements if self.invalid or not self._right(m)]

    def ratio(self, m: Measurement) -> float:
        """Time over MuJoCo's forward pass on as many threads, the median over rounds."""
        return statistics.median(m.timing.ratios(self._reference(m)))

    def shares(self) -> dict[str, float]:
        """Costs of differentiation in terms of each other, medians over rounds, where the case has all of them."""
        found = {m.label: m.timing for m in self.measurements if m.label not in self.failures}
        try:
            step, adjoint = found["warpsim captured step"], found["warpsim captured adjoint"]
            forward, gradient = found["warpsim forward"], found["warpsim gradient"]
        except KeyError:
            return {}
        return {
            ADJOINT_SHARE: statistics.median(adjoint.ratios(step)),
            ROLLOUT_SHARE: statistics.median(gradient.ratios(forward)),
        }

    def bars(self) -> dict[str, float]:
        """What each of the `shares` must not exceed."""
        return {ADJOINT_SHARE: 2.0, ROLLOUT_SHARE: rollout_bar(self.case)}

    def _reference(self, m: Measurement) -> Timing:
        """The first workload, which is MuJoCo's, on the same number of threads."""
        same = [other.timing for other in self.measurements if other.timing.threads == m.timing.threads]
        return same[0]

    def _right(self, m: Measurement) -> bool:
        stated_only = m.gradient_error is None or m.label.startswith("mujoco")  # finite differences are what they are
        error = 0.0 if stated_only else m.gradient_error
        return m.deviation <= self.case.tolerance and error <= self.case.gradient_tolerance


def environment(module: str = "tools.bench") -> dict[str, Any]:
    """Machine, versions and command line of a module that was run."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in _PACKAGES},
        "precision": os.environ.get("WARPSIM_PRECISION", "float64"),
        "command": f"python -m {module} {shlex.join(sys.argv[1:])}".strip(),
    }


def machine_lines(here: dict[str, Any]) -> list[str]:
    """The head of a report: the command, then the machine and the versions of an `environment`."""
    versions = ", ".join(f"{name} {version}" for name, version in here["versions"].items())
    return [
        f"`{here['command']}`",
        "",
        f"{here['processor']}, {here['cores']} cores, {here['system']}; Python {here['python']}, {versions}; "
        f"{here['precision']}.",
    ]


def add_files(parser: argparse.ArgumentParser) -> None:
    """The options that say where reports go."""
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE")


def publish(options: argparse.Namespace, text: str, found: dict[str, Any]) -> None:
    """Prints a report and writes it where the options say."""
    print(text)
    for path, written in ((options.markdown, text), (options.json, json.dumps(found, indent=2) + "\n")):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(written, encoding="utf-8")


def to_json(results: list[Result]) -> dict[str, Any]:
    """Everything, with each repeat's time."""
    cases = []
    for result in results:
        rows = [
            {
                "label": m.label,
                "min_us": m.microseconds(m.timing.best, result.case),
                "median_us": m.microseconds(m.timing.median, result.case),
                "threads": m.timing.threads,
                "ratio": result.ratio(m),
                "seconds": m.timing.samples,
                "wall_seconds": m.timing.wall,
                "deviation": m.deviation if math.isfinite(m.deviation) else None,  # JSON has no NaN
                "gradient_error": m.gradient_error,
                "valid": m.label not in result.failures,
            }
            for m in result.measurements
        ]
        cases.append(
            {
                "case": asdict(result.case),
                "contacts": result.contacts,
                "skipped": result.skipped,
                "invalid": result.invalid,
                "measurements": rows,
            }
        )
    return {"environment": environment(), "cases": cases}


def to_markdown(results: list[Result]) -> str:
    """A table in µs per step and world; a wrong result shows no time."""
    lines = [
        *machine_lines(environment()),
        "",
        "µs per step and world; processor time on one thread, wall-clock time on several. Ratio: to MuJoCo's forward",
        "pass on as many threads, measured alternately; the median over the rounds.",
        "",
        "| case | worlds | steps | contacts | workload | min | median | ratio | deviation | gradient error |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        lines += _rows(result)
    return "\n".join([*lines, *_shares(results)]) + "\n"


def _shares(results: list[Result]) -> list[str]:
    """What differentiation costs in terms of stepping, beside what it may cost."""
    found = [(result, result.shares()) for result in results]
    found = [(result, shares) for result, shares in found if shares]
    if not found:
        return []
    kinds = list(found[0][1])
    lines = ["", "Medians over the rounds, and in brackets what they may be:", ""]
    lines += [f"| case | steps | {' | '.join(kinds)} |", "|---" * (2 + len(kinds)) + "|"]
    for result, shares in found:
        cells = [f"{shares[kind]:.2f} ({result.bars()[kind]:.3g})" for kind in kinds]
        lines.append(f"| {result.case.name} | {result.case.steps} | {' | '.join(cells)} |")
    return lines


def _rows(result: Result) -> list[str]:
    case = result.case
    if result.skipped:
        return [f"| {case.name} | {case.worlds} | {case.steps} | – | skipped: {result.skipped} | – | – | – | – | – |"]
    rows = []
    for m in result.measurements:
        times = "wrong result | – | –"
        if m.label not in result.failures:
            best, median = (m.microseconds(s, case) for s in (m.timing.best, m.timing.median))
            times = f"{best:.2f} | {median:.2f} | {result.ratio(m):.2f}"
        error = "–" if m.gradient_error is None else f"{m.gradient_error:.1e}"
        rows.append(
            f"| {case.name} | {case.worlds} | {case.steps} | {result.contacts:.1f} | {m.label} | {times} "
            f"| {m.deviation:.1e} | {error} |"
        )
    return rows


def _processor() -> str:
    """The processor's marketing name, where the system tells it."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
