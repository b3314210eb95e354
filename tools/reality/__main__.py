"""Runs the cube-toss protocol: `python -m tools.reality path/to/tosses.npz [--markdown out.md] [--json out.json]`."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import torch

import warpsim as ws
from tools.reality.mujoco_side import authors_model, fitted_model, rollouts
from tools.reality.protocol import (
    OPTIONS,
    PLAIN_SCENE,
    RISING_SCENE,
    SAMPLES,
    SCENE,
    SOFTENED,
    SPLITS,
    SUBSTEPS,
    WIDTH,
    errors,
    few_parameters,
    measured,
    parameters,
    plain_parameters,
    split,
)
from tools.reality.windows import one_impact
from warpsim.core.files import write_text
from warpsim.identification import IdentifiedScene, Parameter, Recording, read_recordings
from warpsim.identification.starts import smoothed, start_moves, with_starts

VARIANTS: dict[str, tuple[str, dict[str, Any], Path, list[Parameter]]] = {
    "softened": ("contacts at touch, softened by 4 mm", SOFTENED, PLAIN_SCENE, plain_parameters()),
    "scheduled": ("contacts at touch", {**SOFTENED, "softening": (0.004, 0.002, 0.0)}, PLAIN_SCENE, plain_parameters()),
    "rising": (
        "contacts at touch that harden over a width, softened by 4, 0 mm",
        {**OPTIONS, "softening": (0.004, 0.0)},
        RISING_SCENE,
        parameters(),
    ),
    "all": ("all tosses in every stage", {**SOFTENED, "softening": 0.0}, SCENE, parameters()),
}
"""Other ways to fit: title, options, scene, what may vary."""
FEW = 16
"""Training tosses of the small fit."""
METHODS = ("protocol", "few", *VARIANTS)


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="tosses.npz")
    parser.add_argument("--splits", type=int, nargs="+", default=list(SPLITS), help="seeds; 0: the development tosses")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS[:2]), help="fits to make")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    recordings = read_recordings(arguments.data)
    rows: list[dict[str, Any]] = []
    for seed in arguments.splits:
        rows += run_split(recordings, seed, arguments.methods)
        print(table(rows), flush=True)
    if arguments.json:
        write_text(arguments.json, json.dumps({"format": "warpsim reality", "rows": rows}, indent=1))
    if arguments.markdown:
        write_text(arguments.markdown, table(rows))


def run_split(recordings: list[Recording], seed: int, methods: Sequence[str]) -> list[dict[str, Any]]:
    """All methods on one split; the test tosses are held out of every fit."""
    train, test = split(seed, len(recordings))
    made: list[dict[str, Any]] = []
    if "protocol" in methods:
        fit = _fit(recordings, train, test, OPTIONS)
        made += _judged(f"warpsim, {len(train)} tosses", seed, fit)
        made += _in_mujoco("MuJoCo, the fitted file", recordings, fit, test, seed)
        made += _in_mujoco("MuJoCo, authors' values", recordings, fit, test, seed, authors_model(SUBSTEPS))
        made += _in_windows(recordings, fit, test, seed)  # puts its starts in force
    if "few" in methods:
        fit = _fit(recordings, train[:FEW], test, SOFTENED, PLAIN_SCENE, few_parameters())
        made += _judged(f"warpsim, {FEW} tosses", seed, fit)
    for key, (title, options, scene, varied) in VARIANTS.items():
        if key in methods:
            fit = _fit(recordings, train, test, options, scene, varied)
            made += _judged(f"warpsim, {title}", seed, fit)
            if not fit.contacts.softening:
                made += _in_mujoco(f"MuJoCo, {title}", recordings, fit, test, seed)
    return made


def _fit(
    recordings: list[Recording],
    train: np.ndarray,
    test: np.ndarray,
    options: dict[str, Any],
    scene: Path = SCENE,
    varied: list[Parameter] | None = None,
) -> IdentifiedScene:
    used = [recordings[i] for i in (*train, *test)]
    held = list(range(len(train), len(used)))
    return ws.identify(used, scene, varied or parameters(), validation=held, **options)


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


def _smoothed_starts(fit: IdentifiedScene) -> tuple[torch.Tensor, torch.Tensor]:
    """(tosses, 7), (tosses, 6): smoothed initial states of the held-out tosses."""
    moves = start_moves(fit.predictor, None, OPTIONS["velocity_noise"])
    return smoothed(fit.predictor, torch.tensor(fit.held_out), fit.x, OPTIONS["start_samples"], fit.contacts, moves)


def _in_windows(recordings: list[Recording], fit: IdentifiedScene, test: np.ndarray, seed: int) -> list[dict[str, Any]]:
    """Errors in windows with one impact, from smoothed starts, with the flight before it and without."""
    truth, chosen = measured(recordings, test), torch.tensor(fit.held_out)
    with_starts(fit.predictor, chosen, *_smoothed_starts(fit))
    with torch.no_grad():
        own = torch.zeros(len(chosen), 0, dtype=torch.float64)
        motion = fit.predictor.rollout(fit.x.expand(len(chosen), -1), own, chosen, SAMPLES, fit.contacts)
    rows = []
    for name, flight in (("windows with one impact", True), ("windows with one impact, from the touch on", False)):
        position, rotation = errors(motion.q.transpose(0, 1).numpy(), truth, one_impact(truth, flight=flight))
        rows.append(_row(f"warpsim, {name}", seed, "smoothed", position, rotation, fit.rollouts, fit.seconds))
    return rows


def _in_mujoco(
    name: str,
    recordings: list[Recording],
    fit: IdentifiedScene,
    test: np.ndarray,
    seed: int,
    model: mujoco.MjModel | None = None,
) -> list[dict[str, Any]]:
    """MuJoCo with the fitted file, or another model, from the fit's starts."""
    truth = measured(recordings, test)
    starts = {"measured": truth[:, 0], "smoothed": torch.cat(_smoothed_starts(fit), -1).numpy()}
    if model is None:
        with tempfile.TemporaryDirectory() as folder:
            fit.save(folder)
            model = fitted_model(Path(folder) / "fitted.xml")
    rows = []
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
