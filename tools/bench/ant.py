"""How fast an ant learns to run: speed after so much processor time of one core, for several seeds.

    python -m tools.bench.ant [--seeds 0 1 2] [--marks 30 60 90 130 240] [--mjcf ant.xml] [--markdown FILE]

Trains what `scenes/ant_run.usda` asks for, or the same on the ant of a MuJoCo file (Brax's or MuJoCo's own), and rolls
out the averaged policy and the best one from 64 starts that nothing has seen. With a MuJoCo file the policy also runs
in plain MuJoCo, from the same starts, with a solver that converges. Neither rollout counts as training.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import torch

from tools.bench.report import add_files, publish
from warpsim.objective import OnBody
from warpsim.sim.network_policy import NetworkPolicy
from warpsim.sim.simulator import Simulator
from warpsim.task.bound_training import BoundTraining, bind_training
from warpsim.task.rewards import Fall, Progress
from warpsim.task.train import UNSEEN, TrainingRun
from warpsim.task.training import Training, read_training

SCENE = Path(__file__).resolve().parents[2] / "scenes" / "ant_run.usda"
POSE = (0.0, 0.0, 0.55, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, -1.0, 0.0, -1.0, 0.0, 1.0)
"""Coordinates in which episodes begin on a MuJoCo file, m and rad: standing, knees bent by 1 rad."""
SECONDS, CRUISE = 10.0, 3.0
"""Of a test; after which it cruises."""


def asked(mjcf: str | None, seed: int) -> tuple[Simulator, Training]:
    """One world of the ant, and what it is to learn."""
    training = replace(read_training(SCENE, Simulator(SCENE).scene), seed=seed)
    if mjcf is None:
        return Simulator(SCENE), training
    torso = OnBody("torso")
    own = [replace(r, subject=torso) if isinstance(r, Progress) else r for r in training.rewards]
    falls = [replace(fall, subject=torso) for fall in training.falls]
    starts = replace(training.starts, pose=POSE)
    return Simulator(mjcf), replace(training, rewards=tuple(own), falls=tuple(falls), starts=starts)


def speeds(x: np.ndarray, period: float) -> dict[str, float]:
    """Mean over the worlds of their speed over all of the time and while cruising, from positions (rows, W)."""
    first = round(CRUISE / period)
    return {
        "mean": float((x[-1] - x[0]).mean() / SECONDS),
        "cruise": float((x[-1] - x[first]).mean() / (SECONDS - CRUISE)),
    }


def tested(bound: BoundTraining, policy: NetworkPolicy) -> dict[str, Any]:
    """Speeds, m/s, and worlds that left their range of heights."""
    steps = round(SECONDS / bound.sim.timestep)
    with torch.no_grad():
        motion = bound.sim.rollout_policy(policy, steps, start=bound.starts(UNSEEN), hold=bound.hold).every(bound.hold)
    found: dict[str, Any] = speeds(motion.q[..., 0].numpy(), bound.training.period)
    fall: Fall = bound.training.falls[0]
    height = motion.q[..., 2]
    assert fall.minimum is not None and fall.maximum is not None
    found["left"] = int(((height < fall.minimum) | (height > fall.maximum)).any(0).sum())
    return found


def in_mujoco(mjcf: str, bound: BoundTraining, policy: NetworkPolicy) -> dict[str, float]:
    """The same starts under the same policy in plain MuJoCo, with as many iterations as its solver needs."""
    model, start = mujoco.MjModel.from_xml_path(mjcf), bound.starts(UNSEEN)
    model.opt.iterations = 100
    worlds = [mujoco.MjData(model) for _ in range(bound.sim.worlds)]
    for k, data in enumerate(worlds):
        data.qpos[:], data.qvel[:] = start["q"][k].numpy(), start["qd"][k].numpy()
    rows = [[data.qpos[0] for data in worlds]]
    for _ in range(round(SECONDS / bound.training.period)):
        q, qd = (torch.from_numpy(np.array([getattr(data, name) for data in worlds])) for name in ("qpos", "qvel"))
        with torch.no_grad():
            controls = policy.answer(policy.observe(q, qd)).numpy()
        for data, control in zip(worlds, controls, strict=True):
            data.ctrl[:] = control
            mujoco.mj_step(model, data, bound.hold)
        rows.append([data.qpos[0] for data in worlds])
    return speeds(np.array(rows), bound.training.period)


def run(mjcf: str | None, seed: int, marks: list[float]) -> list[dict[str, Any]]:
    """One training; a row for each mark."""
    one, training = asked(mjcf, seed)
    bound = bind_training(one, training)
    test = BoundTraining(bind_training(one, training, worlds=64).sim, replace(training, seed=901))
    trainer, rows = TrainingRun(bound).trainer, []
    for mark in sorted(marks):
        used = trainer.history[-1].seconds if trainer.history else 0.0
        trainer.train(seconds=mark - used)
        best = trainer.best_policy()
        assert isinstance(trainer.average, NetworkPolicy) and isinstance(best, NetworkPolicy)
        row: dict[str, Any] = {"seed": seed, "seconds": mark, "updates": len(trainer.history)}
        row |= {"last": tested(test, trainer.average), "best": tested(test, best)}
        if mjcf is not None:
            row["mujoco"] = in_mujoco(mjcf, test, trainer.average)
        print(json.dumps(row), flush=True)
        rows.append(row)
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown, and medians over the seeds."""
    lines = [
        "| processor time | seeds | mean over 10 s, m/s: median (range) | cruise, m/s: median (range) | left, of 64 |"
    ]
    lines.append("|---|---|---|---|---|")
    for mark in sorted({row["seconds"] for row in rows}):
        found = [row["last"] for row in rows if row["seconds"] == mark]
        cells = []
        for name in ("mean", "cruise"):
            values = [row[name] for row in found]
            cells.append(f"{np.median(values):.2f} ({min(values):.2f}–{max(values):.2f})")
        lines.append(
            f"| {mark:g} s | {len(found)} | {cells[0]} | {cells[1]} | {', '.join(str(r['left']) for r in found)} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--marks", type=float, nargs="+", default=[30.0, 60.0, 90.0, 130.0, 240.0])
    parser.add_argument("--mjcf", help="the ant of a MuJoCo file instead of ours")
    add_files(parser)
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # the tensors are too small to share
    rows = [row for seed in arguments.seeds for row in run(arguments.mjcf, seed, arguments.marks)]
    publish(arguments, table(rows), {"rows": rows})


if __name__ == "__main__":
    main()
