"""How reliably `scenes/pour.usda` is solved: five starts times three places of the mug, and cross-entropy beside it.

    python -m tools.bench.pour [--cases 0 1 …] [--further] [--rivals] [--json FILE] [--markdown FILE]

A case moves the knots of the start (each joint and the tilt, by its seed) and the mug. It is optimized as the scene's
task says. With `--further` the mug is then moved on, so far that the motion found puts at most a fifth into it, and a
second search goes on from the result. With `--rivals` CEM gets the processor time of the first search, on the same
variables and loss, and again on the tilt of the hand alone. Cases are added to the JSON file one by one; what is in it
is not run again.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pxr import Gf, Usd

import warpsim as ws
from warpsim.objective import Episode
from warpsim.optimizers import CEM, minimize
from warpsim.task.problem import TaskProblem
from warpsim.task.read import read_task
from warpsim.task.solve import with_channels

SCENE = Path(__file__).resolve().parents[2] / "scenes" / "pour.usda"
YAW = 45.0  # deg: how the arm stands in the world
STARTS, PLACES = (1, 2, 3, 4, 5), ((0.410, 24.0), (0.425, 27.0), (0.395, 30.0))
"""Seeds; places of the mug in the arm's frame, m and deg about its axis."""
AWAY = 10.0  # deg: how far the mug is moved for the second search
SPREAD = np.array([0.05, 0.03, 0.03, 0.05, 0.1, 0.08, 0.0])  # rad: largest change of a joint's start
TILT_SPREAD = 0.1  # share of the tilt
ENOUGH, OLD, SPILLED = 0.95, 0.2, 0.05
"""Shares: that must land in the mug; that the old motion, and that the start, may put there."""
SPEEDS = np.array([2.6, 2.6, 2.6, 2.6, 5.2, 5.2, 5.2])  # rad/s, as such arms allow; the simulation does not clip
DEVIATION, SAMPLES, ELITES = 0.04, 8, 3
"""Of CEM, in the task's units (half a joint's range)."""


def moved_start(values: np.ndarray, seed: int) -> np.ndarray:
    """(knots, 7) rad: knots of a start; the first, where the arm stands, stays."""
    rng = np.random.default_rng(seed)
    move, tilt = SPREAD * rng.uniform(-1.0, 1.0, 7), 1.0 + TILT_SPREAD * rng.uniform(-1.0, 1.0)
    made = values + np.clip(np.arange(len(values)) / 2.0, 0.0, 1.0)[:, None] * move
    made[:, 6] = tilt * values[:, 6]
    return made


def mug_at(radius: float, angle: float) -> Gf.Vec3d:
    """World, m."""
    turned = np.radians(YAW + angle)
    return Gf.Vec3d(float(radius * np.cos(turned)), float(radius * np.sin(turned)), 0.0)


def rewritten(source: Path, target: Path, place: tuple[float, float], seed: int | None = None) -> Path:
    """A copy of a file with the mug elsewhere and, with a seed, from another start."""
    stage = Usd.Stage.Open(str(source))
    layer = stage.Flatten()
    stage = Usd.Stage.Open(layer)
    stage.GetPrimAtPath("/World/Mug").GetAttribute("xformOp:translate").Set(mug_at(*place))
    if seed is not None:
        values = stage.GetPrimAtPath("/World/Task/Motion").GetAttribute("values")
        values.Set(moved_start(np.array(values.Get()).reshape(-1, 7), seed).ravel().tolist())
    stage.GetRootLayer().Export(str(target))
    return target


@dataclass
class Timer:
    """Processor and wall-clock time since it was made, s."""

    processor: float = field(default_factory=time.process_time)
    wall: float = field(default_factory=time.perf_counter)

    def read(self) -> dict[str, float]:
        """Both."""
        return {
            "processor": round(time.process_time() - self.processor, 1),
            "wall": round(time.perf_counter() - self.wall, 1),
        }


def solved(source: Path, folder: Path) -> dict[str, Any]:
    """Optimizes a file as the command does, and keeps the result in a folder."""
    timer = Timer()
    done = ws.optimize(source, folder=folder)
    done.save(folder, film=False)
    before, after = (1.0 - outcome.verdicts[0].value for outcome in (done.before, done.after))
    met = all(verdict.met for verdict in done.after.verdicts)
    speed = float((np.abs(done.after.motion.qd).max(axis=0) / SPEEDS).max())
    found = {"before": before, "share": after, "met": met, "iterations": done.result.iterations, "speed": speed}
    return {**found, **timer.read()}


class Best:
    """The largest share among all candidates of a search, and when it has had its time."""

    def __init__(self, problem: TaskProblem, seconds: float) -> None:
        self._problem, self._end = problem, time.process_time() + seconds
        self.share, self.candidates = 0.0, 0
        problem.watch = self._note

    def _note(self, x: torch.Tensor, episode: Episode) -> None:
        with torch.no_grad():
            for world in range(len(x)):
                self.share = max(self.share, 1.0 - self._problem.judge(episode, world)[0].value)
        self.candidates += len(x)

    def over(self, _seen: Any) -> bool:
        """Whether to stop."""
        return self.share >= ENOUGH or time.process_time() >= self._end


def by_cem(source: Path, seconds: float, seed: int, *, tilt_only: bool) -> dict[str, Any]:
    """What CEM finds within processor time, on all joints or on the last one alone."""
    timer, sim = Timer(), ws.Simulator(source)
    task = read_task(source, sim.scene, None)
    problem = TaskProblem(with_channels(sim, task), task)
    if tilt_only:
        others = torch.arange(len(problem.start)) % 7 != 6
        problem.lower[others] = problem.upper[others] = problem.start[others]
    best = Best(problem, seconds)
    with torch.no_grad():
        minimize(
            problem,
            CEM(samples=SAMPLES, elites=ELITES, deviation=DEVIATION, seed=seed),
            callback=best.over,
            iterations=10_000,
        )
    return {"share": best.share, "candidates": best.candidates, **timer.read()}


def run_case(number: int, folder: Path) -> dict[str, Any]:
    """The first search of a case."""
    seed, place = STARTS[number // len(PLACES)], PLACES[number % len(PLACES)]
    folder.mkdir(parents=True, exist_ok=True)
    first = solved(rewritten(SCENE, folder / "case.usda", place, seed), folder / "first")
    return {"case": number, "seed": seed, "radius": place[0], "angle": place[1], "first": first}


def add_second(case: dict[str, Any], folder: Path) -> None:
    """The search that goes on from the result after the mug was moved."""
    if "second" not in case:
        place = (case["radius"], case["angle"] + AWAY)
        moved = rewritten(folder / "first" / "result.usda", folder / "moved.usda", place)
        case["second"] = solved(moved, folder / "second")


def add_rivals(case: dict[str, Any], folder: Path) -> None:
    """CEM at the processor time of the first search."""
    for name, tilt_only in (("cem", False), ("tilt", True)):
        if name not in case:
            case[name] = by_cem(folder / "case.usda", case["first"]["processor"], case["seed"], tilt_only=tilt_only)


def good(case: dict[str, Any]) -> bool:
    """Whether the start spills and the first search solves it."""
    first = case["first"]
    return first["before"] <= SPILLED and first["met"] and first["speed"] <= 1.0


def _cells(run: dict[str, Any]) -> str:
    """Four columns of the table."""
    return f"{run['before']:.1%} | {run['share']:.1%} | {run['iterations']} | {run['processor']:.0f}, {run['wall']:.0f}"


def table(cases: list[dict[str, Any]]) -> str:
    """Markdown."""
    lines = [
        "| start | mug | in it before | after | iterations | processor, wall, s | largest speed "
        "| mug moved: before | after | iterations | processor, wall, s | CEM | tilt alone, CEM |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]

    for case in sorted(cases, key=lambda c: c["case"]):
        first, second = case["first"], case.get("second")
        rivals = [
            f"{case[name]['share']:.1%} of {case[name]['candidates']}" if name in case else "not run"
            for name in ("cem", "tilt")
        ]
        further = "not run | | | " if second is None else _cells(second)
        lines.append(
            f"| {case['seed']} | {1e3 * case['radius']:.0f} mm, {case['angle']:.0f}° | {_cells(first)} "
            f"| {first['speed']:.0%} | {further} | {rivals[0]} | {rivals[1]} |"
        )
    seconds = [c["second"] for c in cases if "second" in c]
    lines.append(f"\nSolved: {sum(map(good, cases))} of {len(cases)}.")
    if seconds:
        found = sum(s["before"] <= OLD and s["met"] for s in seconds)
        lines.append(f"After the mug was moved: {found} of {len(seconds)}.")
    return "\n".join(lines) + "\n"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, nargs="*", default=range(len(STARTS) * len(PLACES)))
    parser.add_argument("--further", action="store_true", help="go on after the mug was moved")
    parser.add_argument("--rivals", action="store_true", help="CEM too")
    parser.add_argument("--folder", type=Path, default=Path("out/pour"))
    parser.add_argument("--json", type=Path, default=Path("out/pour.json"))
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args()
    steps: list[Callable[[dict[str, Any], Path], None]] = [add_second] if given.further else []
    steps += [add_rivals] if given.rivals else []
    known = {c["case"]: c for c in json.loads(given.json.read_text())} if given.json.exists() else {}
    for number in given.cases:
        folder = given.folder / f"case{number}"
        case = known.get(number) or run_case(number, folder)
        for step in steps:
            step(case, folder)
        known[number] = case
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(list(known.values()), indent=1, default=_plain))
        print(table([case]), flush=True)
    print(table(list(known.values())))
    if given.markdown:
        given.markdown.write_text(table(list(known.values())))


def _plain(value: Any) -> Any:
    return float(value) if not math.isnan(float(value)) else None


if __name__ == "__main__":
    main()
