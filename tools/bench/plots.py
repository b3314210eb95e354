"""Plots of what `tools.bench.horizons` and `tools.bench.scaling` measured.

python -m tools.bench.plots [--horizons FILE] [--scaling FILE] [--images FOLDER]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tools.bench.horizons import CHAOTIC

DOCS = Path(__file__).resolve().parents[2] / "docs"
_COLORS = {"warpsim": "#c0392b", "MJX": "#2471a3", "Brax": "#229954", "Newton": "#7d6608", "mujoco": "#34495e"}
_LINES = {"humanoid-ground": "-", "ant-ground": "--"}


def plot_horizons(found: dict[str, Any]) -> Figure:
    """Memory, time and gradient error against the horizon."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    panels: tuple[tuple[str, str, Callable[[dict[str, Any]], float | None]], ...] = (
        ("memory held by a gradient", "MB", lambda row: _scaled(row["memory"], 1e-6)),
        ("time of a gradient", "s", lambda row: _scaled(row["gradient_us"], 1e-6 * row["steps"])),
        ("gradient error", "relative", lambda row: None if (row["norm"] or 0.0) > CHAOTIC else row["error"]),
    )
    for ax, (title, unit, value) in zip(axes, panels, strict=True):
        for system, case in dict.fromkeys((row["system"], row["case"]) for row in found["rows"]):
            rows = [row for row in found["rows"] if (row["system"], row["case"]) == (system, case)]
            pairs = [(row["steps"], value(row)) for row in rows if value(row) is not None]
            if pairs:
                label = f"{system}, {case.removesuffix('-ground')}"
                ax.plot(*zip(*pairs, strict=True), _LINES.get(case, ":"), marker="o", c=_COLORS[system], label=label)
        _finish(ax, title, "steps", unit)
    axes[0].axhline(_megabytes(found["budget"]), c="gray", lw=0.8, ls=":")
    axes[0].legend(fontsize=7)
    return figure


def plot_throughput(found: dict[str, Any]) -> Figure:
    """World-steps per second against worlds, on one and two threads."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharex=True)
    rows = [row for row in found["rows"] if row["sweep"] == "worlds"]
    for ax, kind in zip(axes, ("forward", "gradient"), strict=True):
        for label, threads in dict.fromkeys((r["label"], r["threads"]) for r in rows if r["label"].endswith(kind)):
            line = [r for r in rows if (r["label"], r["threads"]) == (label, threads)]
            ax.plot(
                [r["size"] for r in line],
                [1e6 / r["microseconds"] for r in line],
                "-" if threads == 1 else "--",
                marker="o",
                c=_COLORS[label.partition(" ")[0]],
                label=f"{label.partition(' ')[0]}, {threads} thread{'s' * (threads > 1)}",
            )
        _finish(ax, f"humanoids on the ground, {kind}", "worlds", "world-steps per second")
        ax.legend(fontsize=7)
    return figure


def plot_sizes(found: dict[str, Any]) -> Figure:
    """Time of a step against dofs, bodies and contacts."""
    titles = {"dofs": "a chain of hinges", "bodies": "free bodies", "contacts": "one body on round feet"}
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for ax, (sweep, title) in zip(axes, titles.items(), strict=True):
        rows = [row for row in found["rows"] if row["sweep"] == sweep]
        for label in dict.fromkeys(row["label"] for row in rows):
            line = [row for row in rows if row["label"] == label]
            style = "--" if label.endswith("gradient") else "-"
            sizes, times = [row["size"] for row in line], [row["microseconds"] for row in line]
            ax.plot(sizes, times, style, marker="o", c=_COLORS[label.partition(" ")[0]], label=label)
        _finish(ax, title, sweep, "µs per step")
        ax.legend(fontsize=7)
    return figure


def _finish(ax: Axes, title: str, x: str, y: str) -> None:
    ax.set(xscale="log", yscale="log", title=title, xlabel=x, ylabel=y)
    ax.grid(alpha=0.3)


def _scaled(value: float | None, unit: float) -> float | None:
    return None if value is None else unit * value


def _megabytes(budget: str) -> float:
    return float(budget.removesuffix("MB"))


def main() -> int:
    """Reads the results and writes the images."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.plots", description=__doc__)
    parser.add_argument("--horizons", type=Path, default=DOCS / "bench" / "horizons.json")
    parser.add_argument("--scaling", type=Path, default=DOCS / "bench" / "scaling.json")
    parser.add_argument("--images", type=Path, default=DOCS / "images")
    options = parser.parse_args()
    options.images.mkdir(parents=True, exist_ok=True)
    made: dict[str, Figure] = {}
    for path, drawn in (
        (options.horizons, {"bench_horizons.png": plot_horizons}),
        (options.scaling, {"bench_throughput.png": plot_throughput, "bench_sizes.png": plot_sizes}),
    ):
        if not path.is_file():
            print(f"no {path}: {', '.join(drawn)} not drawn", file=sys.stderr)
            continue
        found = json.loads(path.read_text(encoding="utf-8"))
        made |= {name: draw(found) for name, draw in drawn.items()}
    for name, figure in made.items():
        figure.savefig(options.images / name, dpi=90)
        plt.close(figure)
        print(options.images / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
