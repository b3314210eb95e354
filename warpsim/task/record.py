"""The run record of a task's result: its rollout as any other, and what the search adds to it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import torch

from warpsim.check.records import RunRecord, record_run
from warpsim.check.records.fingerprint import stage_hash
from warpsim.optimizers.identification import Identification
from warpsim.optimizers.multi_start import StartsReport
from warpsim.optimizers.result import Result
from warpsim.sim.simulator import Simulator
from warpsim.task.outcome import Outcome
from warpsim.task.problem import TaskProblem
from warpsim.task.task import SearchSpec


def rollout_record(problem: TaskProblem, found: Outcome, sim: Simulator | None = None, **more: Any) -> RunRecord:
    """The record of a task's file as it stands.

    Args:
        problem: The task on its file.
        found: Its outcome.
        sim: A simulator of the file, of one world, that may be changed; None: one is made.
        more: As in `record_run`.
    """
    sim = problem.sim.with_worlds(1) if sim is None else sim
    if problem.task.duration_range:
        sim.set_parameters({"world.timestep": problem.timestep(problem.authored())})
    missed = [verdict.text for verdict in found.verdicts if not verdict.met]
    success = {} if found.solved is None else {"success": found.solved}
    return record_run(
        sim,
        problem.steps,
        dict(found.inputs) or None,
        motion=found.recorded,
        outcome={"loss": found.loss, **success, **({"metric": "; ".join(missed)} if missed else {})},
        gradient={"norms": {path: float(np.linalg.norm(g)) for path, g in found.gradients.items()}},
        **more,
    )


def search_inputs(problem: TaskProblem, source: Path, search: SearchSpec) -> dict[str, Any]:
    """What a search was given: what two runs must share to be the same."""
    return {
        "name": problem.task.name,
        "source": str(source),
        "source_sha256": stage_hash(source),
        "search": dataclasses.asdict(search),
    }


def outcome_record(outcome: Outcome) -> dict[str, Any]:
    """An outcome as plain data."""
    return {
        "loss": outcome.loss,
        "terms": outcome.terms,
        "duration": outcome.duration,
        "solved": outcome.solved,
        "success": [{"met": v.met, "text": v.text, "value": v.value, "bound": v.bound} for v in outcome.verdicts],
        "gradients": {path: value.tolist() for path, value in outcome.gradients.items()},
    }


def change_record(problem: TaskProblem, x: torch.Tensor) -> dict[str, Any]:
    """Attributes before and after, as their types store them, with units."""
    if problem.variables is None:
        return {}
    rounded = problem.variables.rounded(x[: problem.variables.size])
    return {
        handle.path: {
            "before": handle.numbers.tolist(),
            "after": np.asarray(value.cpu()).tolist(),
            "unit": handle.unit,
            "type": handle.type_name,
        }
        for handle, value in rounded.items()
    }


def control_record(problem: TaskProblem, x: torch.Tensor) -> dict[str, Any]:
    """Values of controls by name, row by row, SI."""
    choice = problem.choice(x[None].detach())
    return {
        bound.control.name: {"targets": list(bound.targets), "channel": bound.channel, "values": values[0].tolist()}
        for bound, values in zip(problem.controls, choice.controls, strict=True)
    }


def result_record(result: Result) -> dict[str, Any]:
    """A search as plain data."""
    return {
        "stopped": result.stopped,
        "message": result.message,
        "iterations": result.iterations,
        "evaluations": result.evaluations,
        "seconds": result.seconds,
        "history": result.entries(),
    }


def starts_record(report: StartsReport) -> list[dict[str, Any]]:
    """What each start reached: losses where it began, where exploring led, and where it was finished, or why not."""
    return [
        {
            "x": x,
            "before": before,
            "after": after,
            "finished": report.finished.get(k),
            **({"skipped": report.skipped[k]} if k in report.skipped else {}),
        }
        for k, (x, before, after) in enumerate(
            zip(report.explored.tolist(), report.before.tolist(), report.after.tolist(), strict=True)
        )
    ]


def identification_record(problem: TaskProblem, report: Identification) -> dict[str, Any]:
    """Standard deviations in USD units, and what the data cannot tell apart."""
    deviations: dict[str, Any] = {}
    if problem.variables is not None:
        size = problem.variables.size

        def flat(x: torch.Tensor) -> torch.Tensor:
            assert problem.variables is not None
            return torch.cat([value.reshape(-1) for value in problem.variables.values(x[:size]).values()])

        spread = report.covariance_of(flat).diagonal().clamp_min(0).sqrt()
        # What a bound has flattened is no surer for it; at the start nothing is flat.
        feeds = torch.autograd.functional.jacobian(flat, problem.start) != 0
        spread = torch.where(feeds[:, ~report.determined].any(-1), torch.inf, spread)
        at = 0
        for handle, value in problem.variables.values(report.x[:size]).items():
            part = spread[at : at + value.numel()].reshape(value.shape)
            deviations[handle.path] = part.tolist()
            at += value.numel()
    return {
        "noise": report.noise,
        "stated_noise": report.stated_noise,
        "at_noise_level": report.at_noise_level,
        "determined": dict(zip(report.names, report.determined.tolist(), strict=True)),
        "deviations": deviations,
        "singular_values": report.singular_values.tolist(),
        "sentences": list(report.sentences),
    }
