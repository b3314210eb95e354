"""How surely parameters are found: masses, damping and dry friction of a double pendulum, from data of MuJoCo.

    python -m tools.bench.identification [--seeds 10] [--markdown FILE] [--json FILE]

Both links swing beyond 1 rad under random smooth torques. Their angles are measured at each step of 2 ms with noise of
5 mrad. Six parameters are guessed too large or too small by the same factor, a coin decides which, and fitted with
Levenberg–Marquardt as it stands: as plain, as positive and as bounded variables, over three horizons, with ten seeds.
A fit counts as found when its report says that the residuals are at the level of the noise.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import torch

from tools.bench.report import add_files, environment, machine_lines, publish
from warpsim.io.load import load_scene
from warpsim.io.usd import author
from warpsim.io.usd.export import export_scene
from warpsim.optimizers import Identification, RolloutProblem, Variable, Variables, minimize
from warpsim.sim.simulator import Simulator

REALITY = """<mujoco>
  <option timestep="0.002" tolerance="1e-12"/>
  <worldbody>
    <body name="upper" pos="0 0 2"><joint name="shoulder" axis="0 1 0" damping=".08" frictionloss=".15"/>
      <inertial pos="0 0 -.25" mass="1.2" diaginertia=".02 .02 .002"/>
      <body name="fore" pos="0 0 -.5"><joint name="elbow" axis="0 1 0" damping=".04" frictionloss=".06"/>
        <inertial pos="0 0 -.2" mass=".7" diaginertia=".008 .008 .001"/></body></body>
  </worldbody>
  <actuator><motor joint="shoulder"/><motor joint="elbow"/></actuator>
</mujoco>"""
PATHS = (
    "/World/upper.physics:mass",
    "/World/upper/fore.physics:mass",
    "/World/upper/shoulder.newton:damping",
    "/World/upper/fore/elbow.newton:damping",
    "/World/upper/shoulder.newton:friction",
    "/World/upper/fore/elbow.newton:friction",
)
FACTORS, HORIZONS, KINDS, SEEDS = (1.3, 3.0), (250, 500, 1000), ("plain", "positive", "bounded"), 10
STEP, START, NOISE = 0.002, (1.2, -0.5), 0.005  # s, rad, rad


@dataclass(frozen=True)
class Run:
    """One fit.

    Attributes:
        factor: By which the guesses are off.
        steps: Of the horizon.
        kind: Of variables.
        seed: Of torques, noise and guesses.
        level: Noise that the residuals show, over the true one.
        found: Whether the report says that it is at the level of the noise.
        error: Largest error of a parameter, as a share of it.
        worst: Largest error of a parameter in standard deviations of its own, where one is given.
        iterations: Of the search.
        evaluations: Rollouts.
        sentences: What the report says.
    """

    factor: float
    steps: int
    kind: str
    seed: int
    level: float
    found: bool
    error: float
    worst: float
    iterations: int
    evaluations: int
    sentences: tuple[str, ...]


def simulator(folder: Path) -> Simulator:
    """The pendulum as USD, one world."""
    source, target = folder / "pendulum.xml", folder / "pendulum.usda"
    source.write_text(REALITY, encoding="utf-8")
    stage, _ = export_scene(load_scene(source))
    author.save(stage, target)
    return Simulator(target)


def experiment(steps: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Torques (steps, 2), N·m, and the angles (steps + 1, 2), rad, that MuJoCo gives, both beyond 1 rad."""
    rng = np.random.default_rng([steps, seed])
    model = mujoco.MjModel.from_xml_string(REALITY)
    while True:
        size, rate, phase = (rng.uniform(*side, (3, 1, 2)) for side in ((0.5, 1.5), (2.0, 9.0), (0.0, 2 * np.pi)))
        waves = size * np.sin(rate * STEP * np.arange(steps)[:, None] + phase)
        torques = waves.sum(0) * (2.0, 0.6)
        angles = _angles(model, torques)
        if (np.abs(angles).max(0) > 1.0).all():
            return torques, angles


def _angles(model: mujoco.MjModel, torques: np.ndarray) -> np.ndarray:
    data = mujoco.MjData(model)
    data.qpos[:] = START
    rows = [data.qpos.copy()]
    for torque in torques:
        data.ctrl[:] = torque
        mujoco.mj_step(model, data)
        rows.append(data.qpos.copy())
    return np.array(rows)


def problem(sim: Simulator, factor: float, steps: int, kind: str, seed: int) -> RolloutProblem:
    """The fit: residuals are in units of the noise's standard deviation."""
    torques, angles = experiment(steps, seed)
    rng = np.random.default_rng([steps, seed, 1])
    data = torch.tensor(angles + NOISE * rng.normal(size=angles.shape))[1:, None]
    variables = []
    for path, off in zip(PATHS, factor ** rng.choice((-1.0, 1.0), size=len(PATHS)), strict=True):
        attribute = sim.attribute(path)
        true = float(attribute.numbers)
        options: dict[str, dict[str, Any]] = {
            "plain": {"scale": true * off},
            "positive": {"positive": True},
            "bounded": {"lower": true / 10, "upper": true * 10},
        }
        variables.append(Variable(attribute, start=true * off, **options[kind]))
    return RolloutProblem(
        sim,
        Variables(variables),
        lambda motion: ((motion.q[1:] - data) / NOISE).transpose(0, 1).flatten(1),
        controls=torch.tensor(torques),
        q=list(START),
    )


def fit(sim: Simulator, factor: float, steps: int, kind: str, seed: int) -> Run:
    """Fits one of them."""
    made = problem(sim, factor, steps, kind, seed)
    result = minimize(made, "levenberg_marquardt", noise=1.0, iterations=100)
    report = result.report
    assert isinstance(report, Identification)

    def relative(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([value / float(attribute.numbers) for attribute, value in made.values(x).items()])

    errors = (relative(result.x) - 1).abs()
    deviations = report.covariance_of(relative).diagonal().sqrt()
    return Run(
        factor=factor,
        steps=steps,
        kind=kind,
        seed=seed,
        level=report.noise,
        found=bool(report.at_noise_level),
        error=float(errors.max()),
        worst=float((errors / deviations).max()),
        iterations=result.iterations,
        evaluations=result.evaluations,
        sentences=report.sentences,
    )


def cases(seeds: int) -> Iterator[tuple[float, int, str, int]]:
    """All of them."""
    return product(FACTORS, HORIZONS, KINDS, range(seeds))


def honest(run: Run) -> bool:
    """Whether a fit that is not at the noise level says so, and one that is does not."""
    return run.found != any("times the stated noise" in sentence for sentence in run.sentences)


def to_markdown(runs: list[Run], here: dict[str, Any]) -> str:
    """A line per setting, and one on each fit that did not get there."""
    found, right = sum(run.found for run in runs), sum(honest(run) for run in runs)
    lines = [
        *machine_lines(here),
        "",
        f"{found} of {len(runs)} fits end at the level of the noise; {right} say rightly whether they do. Seed by "
        "seed: the noise that the residuals show, over the true one (**bold**: above what chance explains), and "
        "iterations.",
        "",
        "| guesses off by | steps | variables | at the noise level | worst error of a parameter "
        "| in its own deviations, at most | noise / iterations, seed by seed |",
        "|---" * 7 + "|",
    ]
    settings = dict.fromkeys((run.factor, run.steps, run.kind) for run in runs)
    for setting in settings:
        group = [run for run in runs if (run.factor, run.steps, run.kind) == setting]
        good = [run for run in group if run.found]
        seeds = ", ".join(f"{_level(run)} / {run.iterations}" for run in group)
        lines.append(
            f"| {setting[0]:g}× | {setting[1]} | {setting[2]} | {len(good)} of {len(group)} "
            f"| {100 * max((run.error for run in good), default=np.nan):.1f} % "
            f"| {max((run.worst for run in good), default=np.nan):.1f} | {seeds} |"
        )
    for run in runs:
        if not run.found:
            lines += ["", f"{run.factor:g}×, {run.steps}, {run.kind}, seed {run.seed}: {' '.join(run.sentences)}"]
    return "\n".join(lines) + "\n"


def _level(run: Run) -> str:
    return f"{run.level:.2f}" if run.found else f"**{run.level:.3g}**"


def main() -> int:
    """Parses the command line, fits and writes the report."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.identification", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    add_files(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sim = simulator(Path(folder))
        runs = []
        for case in cases(options.seeds):
            runs.append(fit(sim, *case))
            print(*case, f"{runs[-1].level:.3f}", runs[-1].iterations, file=sys.stderr, flush=True)
    here = environment("tools.bench.identification")
    publish(options, to_markdown(runs, here), {"environment": here, "runs": [asdict(run) for run in runs]})
    return 0


if __name__ == "__main__":
    sys.exit(main())
