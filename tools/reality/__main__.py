"""Runs the cube-toss protocol: `python -m tools.reality path/to/tosses.npz [--markdown out.md] [--json out.json]`."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import warpsim as ws
from tools.reality.mujoco_side import authors_model, fitted_model, rollouts
from tools.reality.protocol import OPTIONS, SCENE, SPLITS, SUBSTEPS, WIDTH, errors, measured, parameters, split
from warpsim.core.files import write_text
from warpsim.identification import IdentifiedScene, Recording, read_recordings
from warpsim.identification.prediction import Contacts
from warpsim.identification.starts import smoothed, start_moves

PHYSICAL = {**OPTIONS, "softening": (0.004, 0.002, 0.0)}
"""The schedule that ends at the physical model, for files that MuJoCo runs."""


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="tosses.npz")
    parser.add_argument("--splits", type=int, nargs="+", default=list(SPLITS), help="seeds; 0: the development tosses")
    parser.add_argument("--few", type=int, default=16, help="training tosses of the small fit; 0: none")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    recordings = read_recordings(arguments.data)
    rows: list[dict[str, Any]] = []
    for seed in arguments.splits:
        rows += run_split(recordings, seed, arguments.few)
        print(table(rows), flush=True)
    if arguments.json:
        write_text(arguments.json, json.dumps({"format": "warpsim reality", "rows": rows}, indent=1))
    if arguments.markdown:
        write_text(arguments.markdown, table(rows))


def run_split(recordings: list[Recording], seed: int, few: int) -> list[dict[str, Any]]:
    """All methods on one split; the test tosses are held out of every fit."""
    train, test = split(seed, len(recordings))
    made = []
    fit = _fit(recordings, train, test, OPTIONS)
    made += _judged(f"warpsim, {len(train)} tosses", seed, fit)
    if few:
        made += _judged(f"warpsim, {few} tosses", seed, _fit(recordings, train[:few], test, OPTIONS))
    physical = _fit(recordings, train, test, PHYSICAL)
    made += _judged("warpsim, softening down to 0", seed, physical)
    made += _in_mujoco(recordings, physical, test, seed)
    return made


def _fit(recordings: list[Recording], train: np.ndarray, test: np.ndarray, options: dict[str, Any]) -> IdentifiedScene:
    used = [recordings[i] for i in (*train, *test)]
    held = list(range(len(train), len(used)))
    return ws.identify(used, SCENE, parameters(), validation=held, **options)


def _judged(name: str, seed: int, fit: IdentifiedScene) -> list[dict[str, Any]]:
    rows = []
    for start in ("measured", "smoothed"):
        (what,) = (k for k in fit.errors if k.startswith("held out") and start in k)
        position, rotation = (fit.errors[what].mean[f"q free {part}"] for part in ("position", "rotation"))
        rows.append(_row(name, seed, start, 100 * position / WIDTH, np.degrees(rotation), fit.rollouts, fit.seconds))
    return rows


def _row(name: str, seed: int, start: str, position: float, rotation: float, spent: float, s: float) -> dict[str, Any]:
    return dict(
        method=name, split=seed, start=start, position=position, rotation=float(rotation), rollouts=spent, seconds=s
    )


def _in_mujoco(recordings: list[Recording], fit: IdentifiedScene, test: np.ndarray, seed: int) -> list[dict[str, Any]]:
    """MuJoCo with the authors' values, and with the fitted file, from the same starts."""
    truth = measured(recordings, test)
    chosen = torch.tensor(fit.held_out)
    moves = start_moves(fit.predictor, None, OPTIONS["velocity_noise"])
    q, qd = smoothed(fit.predictor, chosen, fit.x, OPTIONS["start_rows"], Contacts(), moves)
    starts = {"measured": truth[:, 0], "smoothed": torch.cat([q, qd], -1).numpy()}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        fit.save(folder)
        fitted = fitted_model(Path(folder) / "fitted.xml")
    for name, model in (("MuJoCo, authors' values", authors_model(SUBSTEPS)), ("MuJoCo, our fitted file", fitted)):
        for start, states in starts.items():
            began = time.process_time()
            position, rotation = errors(rollouts(model, states), truth)
            rows.append(_row(name, seed, start, position, rotation, 0.0, time.process_time() - began))
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Means over the splits, in Markdown."""
    lines = [
        "| method | start | position, % of width | rotation, ° | rollouts | processor s |",
        "|---|---|---|---|---|---|",
    ]
    for name, start in dict.fromkeys((row["method"], row["start"]) for row in rows):
        own = [row for row in rows if (row["method"], row["start"]) == (name, start)]
        mean = {
            key: float(np.mean([row[key] for row in own])) for key in ("position", "rotation", "rollouts", "seconds")
        }
        spread = " / ".join(f"{row['position']:.2f}, {row['rotation']:.2f}" for row in own)
        lines.append(
            f"| {name} | {start} | {mean['position']:.2f} | {mean['rotation']:.2f} ({spread}) | {mean['rollouts']:.0f} "
            f"| {mean['seconds']:.1f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
