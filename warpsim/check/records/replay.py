"""`replay`: runs a record again and says whether it came out the same, to the last bit."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch

from warpsim.check.records.fingerprint import scene_hash, versions
from warpsim.check.records.record import RunRecord
from warpsim.check.records.run import record_run
from warpsim.core.errors import InputError
from warpsim.io.load import load_scene
from warpsim.scene.convergence import with_stop
from warpsim.sim.simulator import Simulator


@dataclass(frozen=True)
class Replay:
    """A record and what running it again gave.

    Attributes:
        record: The new run.
        identical: Whether all frames of the trajectory have the same bits.
        text: In words: the first difference, if any, and other versions.
    """

    record: RunRecord
    identical: bool
    text: str


def replay(record: RunRecord, scene: str | PathLike[str] | None = None) -> Replay:
    """Runs a record's inputs again.

    Args:
        record: What to run.
        scene: The scene's file, if it is no longer where the record says.
    """
    sim = _simulator(record, scene)
    made = record_run(
        sim,
        controls={name: torch.as_tensor(value) for name, value in record.actions.items()},
        start={name: value for name, value in record.initial_state.items() if name in sim.state_names},
        seed=record.seed,
        latency=record.latency,
        control_period=record.control_period,
        outcome=record.outcome,
        gradient=record.gradient,
        task=record.task,
        more=record.more,
        outputs=tuple(n for n in record.observations if n in sim.output_names),
    )
    same = made.trajectory["sha256"] == record.trajectory["sha256"]
    text = "identical bits" if same else _first_difference(record, made)
    other = [f"{n} {v} → {versions()[n]}" for n, v in record.versions.items() if versions().get(n, v) != v]
    return Replay(made, same, text + (f"; versions differ: {', '.join(other)}" if other else ""))


def _simulator(record: RunRecord, scene: str | PathLike[str] | None) -> Simulator:
    """The simulator of a record, with its parameters in force."""
    source = scene or record.scene["path"]
    if source is None:
        raise InputError("the record's scene did not come from a file; give the file it was saved to")
    if not Path(source).is_file():
        raise InputError(f"the record's scene {str(source)!r} is not there; give its file with --scene")
    stop = record.settings.get("solver_stop")
    if scene_hash(with_stop(load_scene(source), stop)) != record.scene["scene_sha256"]:
        raise InputError(
            f"{source}: the scene is not the one that was recorded (its hash differs); give the file as it was"
        )
    sim = Simulator(
        source,
        worlds=record.settings["worlds"],
        device=record.device,
        controls=record.settings["controls"],
        iterations=stop,
    )
    changed: dict[Any, Any] = {
        name: value
        for name, value in record.parameters.items()
        if not np.array_equal(np.broadcast_to(value, tuple(sim.parameter(name).shape)), sim.parameter(name).cpu())
    }
    sim.set_parameters(changed or None)
    return sim


def _first_difference(a: RunRecord, b: RunRecord) -> str:
    for frame, time in enumerate(a.trajectory["times"]):
        for name in a.initial_state:
            if name in a.trajectory and not np.array_equal(a.trajectory[name][frame], b.trajectory[name][frame]):
                off = np.abs(a.trajectory[name][frame] - b.trajectory[name][frame]).max()
                return f"{name} differs first at {time:.6g} s, by {off:.2e}"
        for name, kept in a.trajectory.get("matters", {}).items():
            if kept["crc32"][frame] != b.trajectory["matters"][name]["crc32"][frame]:
                off = np.abs(kept["mean"][frame] - b.trajectory["matters"][name]["mean"][frame]).max()
                return f"{name} differs first at {time:.6g} s, its mean by {off:.2e}"
    return "differs between the frames that were kept"
