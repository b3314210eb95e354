"""The folder that a training leaves: policies, curve, record, and the motion as it was learned."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path

import torch

from warpsim.core.files import write_text
from warpsim.io.scene_files import is_usd
from warpsim.learn.saved_policy import save_policy
from warpsim.sim.network_policy import NetworkPolicy
from warpsim.sim.simulator import Simulator
from warpsim.sim.trajectory import Trajectory
from warpsim.task.bound_training import bind_training
from warpsim.task.plot import loss_plot
from warpsim.task.train import CHECKPOINT, JUDGED, UNSEEN, Trained
from warpsim.view.page import write_page
from warpsim.view.page.scene_content import motions_page
from warpsim.view.raycast.images import write_png

POLICY, LAST, CURVE, RECORD, PAGE = "policy.pt", "last.pt", "curve.png", "record.json", "motion.html"
_SHOWN = ("body_position", "body_rotation")


def trained_files(folder: str | PathLike[str]) -> list[Path]:
    """All files that a training may write."""
    names = (POLICY, LAST, CURVE, RECORD, PAGE, CHECKPOINT, "log.jsonl", "log.csv")
    return [Path(folder) / name for name in names]


def save_trained(done: Trained, folder: str | PathLike[str]) -> list[Path]:
    """Writes the results of a training beside its log.

    Args:
        done: The training.
        folder: Exists.

    Returns:
        What was written; the page last.
    """
    folder = Path(folder)
    period = done.training.period
    scores = {"policy": done.score, "last": done.last_score}
    notes = {name: {"reward": -score.cost, "failed": score.failed} for name, score in scores.items()}
    written = [
        save_policy(done.policy, folder / POLICY, period=period, notes=notes["policy"]),
        save_policy(done.last, folder / LAST, period=period, notes=notes["last"]),
        _save_curve(done, folder / CURVE),
        write_text(folder / RECORD, json.dumps(_record(done, notes), indent=1) + "\n"),
    ]
    return [*written, _save_page(done, folder / PAGE)]


def motion_of(
    policy: NetworkPolicy, sim: Simulator, start: dict[str, torch.Tensor], hold: int, seconds: float
) -> Trajectory:
    """What a policy does, with all that a page shows."""
    with torch.no_grad():
        steps = max(1, round(seconds / sim.timestep / hold)) * hold
        return sim.rollout_policy(policy, steps, start=start, hold=hold, outputs=_SHOWN).every(hold)


def _save_curve(done: Trained, path: Path) -> Path:
    judged = [made for made in done.history if made.score is not None]
    picture = loss_plot(
        [made.number for made in judged],
        [made.score for made in judged if made.score is not None],
        f"{done.training.name or done.sim.scene.name}: cost of evaluations",
    )
    return write_png(path, picture)


def _record(done: Trained, notes: dict[str, dict[str, float]]) -> dict[str, object]:
    last = done.history[-1] if done.history else None
    return {
        "format": "warpsim training 1",
        "scene": str(done.sim.path or done.sim.scene.name),
        "training": done.training.name,
        "seed": done.training.seed,
        "updates": len(done.history),
        "processor_seconds": last.seconds if last else 0.0,
        "dropped": last.dropped if last else 0,
        "unseen_starts": {"worlds": done.sim.worlds, "seconds": JUDGED, "draw": UNSEEN, **notes},
    }


def _save_page(done: Trained, path: Path) -> Path:
    """The first of the unseen starts under the policies on the way and the one that is kept."""
    bound = bind_training(done.sim, done.training, worlds=1)
    sim, start = bound.sim, bound.starts(UNSEEN)
    policies = {f"update {number}": policy for number, policy in done.snapshots.items()} | {"best": done.policy}
    motions = [(name, motion_of(policy, sim, start, bound.hold, JUDGED).motion(0)) for name, policy in policies.items()]
    source = sim.path if sim.path is not None and is_usd(sim.path) else None
    return write_page(path, motions_page(sim.scene, source, motions, title=done.training.name or sim.scene.name))
