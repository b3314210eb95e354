"""Simulator steps to the same success: first-order, zeroth-order, and the cross-entropy method.

    python -m tools.evidence.steps_to_success   # all, five seeds; writes docs/evidence, docs/images
    python -m tools.evidence.steps_to_success --case throw --seeds 2 --output /tmp/steps

Each seed draws a start; all methods begin there. After every iteration the conditions of success of the task, the same
for all, judge the iterate; those rollouts are not counted. Every other step in every world is. A differentiated step
is run once more for the tape and pulled back, about as much work as two further steps: the last column counts it so.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch

from tools.evidence.counted import CountedProblem
from warpsim.objective import Posture, Within, running, succeeded
from warpsim.optimizers import Problem, SmoothedProblem, Stopping, minimize
from warpsim.optimizers.evaluation import project
from warpsim.sim.simulator import Simulator
from warpsim.task.controls import Knots
from warpsim.task.problem import TaskProblem
from warpsim.task.read import read_task
from warpsim.task.task import Task

ROOT = Path(__file__).resolve().parents[2]
SEEDS = 5
ADJOINT_COST = 2
"""Steps that the tape's second run and the adjoint of a step are counted as."""


@dataclass(frozen=True)
class Contestant:
    """A method with the options it is run with.

    Attributes:
        method: As in `minimize`.
        options: Of it; "seed" is set by the run where it has one.
        smoothing: Options of `SmoothedProblem`; None: the gradient of the simulation.
    """

    name: str
    method: str
    options: dict[str, Any]
    smoothing: dict[str, Any] | None = None
    seeded: bool = False


@dataclass(frozen=True)
class Case:
    """A task.

    Attributes:
        text: What success is.
        make: The task on its scene.
        spread: Deviation of the starts around the task's own.
        contestants: Who is compared.
        iterations: Most of each.
    """

    name: str
    text: str
    make: Callable[[], TaskProblem]
    spread: float
    contestants: tuple[Contestant, ...]
    iterations: int = 400


@dataclass(frozen=True)
class Run:
    """One search.

    Attributes:
        solved: Whether it met the conditions within its iterations.
        steps: Simulator steps up to there.
        adjoint_steps: How many of these were also differentiated.
        loss: At the end.
    """

    case: str
    contestant: str
    seed: int
    solved: bool
    iterations: int
    steps: int
    adjoint_steps: int
    loss: float

    @property
    def cost(self) -> int:
        """Steps, differentiated ones counted threefold."""
        return self.steps + ADJOINT_COST * self.adjoint_steps


def throw() -> TaskProblem:
    """The task of `scenes/throw.usda`: which velocity passes through the target?"""
    sim = Simulator(ROOT / "scenes" / "throw.usda")
    assert sim.path is not None
    return TaskProblem(sim, read_task(sim.path, sim.scene, None))


def balance() -> TaskProblem:
    """The cart-pole of `scenes/cartpole.usda`, 3° off upright, brought upright by forces at eight times."""
    sim = Simulator(ROOT / "scenes" / "cartpole.usda")
    rest = Posture(joints=("/World/Cart/Pole/Hinge",), position=(0.0,), when=running(0.8, 1.0), name="upright")
    push = Knots(name="push", channel="actuator", count=8)
    return TaskProblem(sim, Task(duration=1.0, terms=(rest,), controls=(push,), conditions=(Within(rest, 0.02),)))


CASES = (
    Case(
        "throw",
        "a ball passes within 1 mm of a target after 0.4 s; 3 numbers, 400 steps",
        throw,
        0.5,
        (
            Contestant("first-order, L-BFGS", "lbfgs", {}),
            Contestant("first-order, Adam", "adam", {"rate": 0.1, "decay": 0.99}),
            Contestant("zeroth-order, Adam", "adam", {"rate": 0.1, "decay": 0.99}, dict(deviation=0.1, samples=16)),
            Contestant("CEM", "cem", {"samples": 32, "elites": 8, "deviation": 1.0, "inertia": 0.2}, seeded=True),
        ),
    ),
    Case(
        "cart-pole",
        "a pole 3° off upright stays within 0.02 rad of upright from 0.8 s to 1 s by an "
        "open-loop force; 8 numbers, 500 steps",
        balance,
        0.2,
        (
            Contestant("first-order, L-BFGS", "lbfgs", {}),
            Contestant("first-order, Adam", "adam", {"rate": 0.03, "decay": 0.995}),
            Contestant("zeroth-order, Adam", "adam", {"rate": 0.03, "decay": 0.995}, dict(deviation=0.02, samples=16)),
            Contestant("CEM", "cem", {"samples": 32, "elites": 8, "deviation": 0.3, "inertia": 0.2}, seeded=True),
        ),
    ),
)


def run(case: Case, task: TaskProblem, contestant: Contestant, seed: int) -> Run:
    """One search until success, or until its iterations end."""
    counted = CountedProblem(task)
    noise = np.random.default_rng(seed).standard_normal(len(task.start))
    start = project(task, task.start + case.spread * torch.as_tensor(noise))
    problem: Problem = counted
    if contestant.smoothing is not None:
        problem = SmoothedProblem(counted, kind="zeroth", seed=seed, **contestant.smoothing)
    options = {**contestant.options, **({"seed": seed} if contestant.seeded else {})}

    def solved(x: torch.Tensor) -> bool:
        with torch.no_grad():
            return succeeded(task.judge(task.episode(task.choice(x[None]))))

    result = minimize(
        problem,
        contestant.method,
        start=start,
        callback=lambda seen: solved(seen.x),
        stopping=Stopping(iterations=case.iterations, patience=case.iterations, gradient=0.0),
        **options,
    )
    ended = result.stopped == "interrupted"
    figures = (result.iterations, counted.forward, counted.adjoint, result.loss)
    return Run(case.name, contestant.name, seed, ended, *figures)


def median_steps(runs: Sequence[Run], case: str, contestant: str, *, cost: bool = False) -> float:
    """Median over seeds; infinite where half of them or more failed."""
    mine = [r for r in runs if (r.case, r.contestant) == (case, contestant)]
    return statistics.median(float("inf") if not r.solved else r.cost if cost else r.steps for r in mine)


def to_markdown(runs: Sequence[Run], cases: Sequence[Case]) -> str:
    """The table."""
    lines = []
    for case in cases:
        seeds = len({r.seed for r in runs})
        lines += [f"**{case.name}**: {case.text}; {seeds} seeds.", ""]
        lines += ["| | solved | simulator steps, median | least | most | × first-order | with adjoints |"]
        lines += ["|---|---|---|---|---|---|---|"]
        base = median_steps(runs, case.name, case.contestants[0].name)
        for contestant in case.contestants:
            mine = [r for r in runs if (r.case, r.contestant) == (case.name, contestant.name)]
            steps = median_steps(runs, case.name, contestant.name)
            cost = median_steps(runs, case.name, contestant.name, cost=True)
            ends = sorted(r.steps for r in mine)
            solved = sum(r.solved for r in mine)
            figures = f"{steps:,.0f} | {ends[0]:,} | {ends[-1]:,} | {steps / base:.1f} | {cost:,.0f}"
            if math.isinf(steps):
                figures = f"not reached in {ends[-1]:,} | {ends[0]:,} | {ends[-1]:,} | > {ends[-1] / base:.0f} | –"
            lines.append(f"| {contestant.name} | {solved} of {len(mine)} | {figures} |")
        lines.append("")
    return "\n".join(lines)


def draw(runs: Sequence[Run], cases: Sequence[Case], path: Path) -> None:
    """A dot for every run, a bar at each median."""
    figure, axes = plt.subplots(1, len(cases), figsize=(4.5 * len(cases), 3.2), squeeze=False)
    for axis, case in zip(axes[0], cases, strict=True):
        names = [contestant.name for contestant in case.contestants]
        for i, name in enumerate(names):
            mine = [r for r in runs if (r.case, r.contestant) == (case.name, name)]
            for r in mine:
                axis.plot(i, r.steps, "o" if r.solved else "x", color="tab:blue", alpha=0.6)
            axis.plot([i - 0.25, i + 0.25], [median_steps(runs, case.name, name)] * 2, color="tab:orange", lw=3)
        axis.set(
            yscale="log", title=case.name, xticks=range(len(names)), xticklabels=names, xlim=(-0.6, len(names) - 0.4)
        )
        axis.grid(axis="y", alpha=0.3)
    axes[0][0].set_ylabel("simulator steps to success")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures, prints the table, writes the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", action="append", choices=[case.name for case in CASES], help="default: all")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--output", type=Path, help="folder for all files; default: docs/evidence and docs/images")
    given = parser.parse_args(arguments)
    cases = [case for case in CASES if given.case is None or case.name in given.case]
    runs: list[Run] = []
    for case in cases:
        task = case.make()
        for contestant in case.contestants:
            for seed in range(given.seeds):
                runs.append(run(case, task, contestant, seed))
                print(runs[-1], flush=True)
    data = given.output or ROOT / "docs" / "evidence"
    pictures = given.output or ROOT / "docs" / "images"
    for folder in (data, pictures):
        folder.mkdir(parents=True, exist_ok=True)
    table = to_markdown(runs, cases)
    settings = {case.name: [asdict(contestant) for contestant in case.contestants] for case in cases}
    content = {"settings": settings, "runs": [asdict(r) for r in runs]}
    (data / "steps_to_success.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    (data / "steps_to_success.md").write_text(table, encoding="utf-8")
    draw(runs, cases, pictures / "steps_to_success.png")
    print(table)


if __name__ == "__main__":
    main()
