"""The record of a run: what went in, what came out, and with which versions."""

from __future__ import annotations

import hashlib
import importlib.metadata
import math
import platform
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch

from warpsim.optimize.identification import Identification
from warpsim.optimize.result import Result
from warpsim.precision import PRECISION
from warpsim.task.outcome import Outcome
from warpsim.task.problem import TaskProblem
from warpsim.usd.reader import open_stage

_PACKAGES = ("warpsim", "warp-lang", "torch", "numpy", "usd-core")


def fingerprint(source: str | PathLike[str]) -> str:
    """Of everything a stage is composed of: it changes when any of its files does."""
    digest, stage = hashlib.sha256(), open_stage(source)
    for layer in sorted(stage.GetUsedLayers(), key=lambda layer: layer.identifier):
        if layer.realPath:
            digest.update(Path(layer.realPath).read_bytes())
    return digest.hexdigest()


def versions() -> dict[str, str]:
    """Of what computed the result."""
    found = {"python": platform.python_version(), "machine": platform.platform(), "precision": PRECISION}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed as a package"
    return found


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
        "history": result.rows(),
    }


def identification_record(problem: TaskProblem, report: Identification) -> dict[str, Any]:
    """Standard deviations in USD units, and what the data cannot tell apart."""
    deviations: dict[str, Any] = {}
    if problem.variables is not None:
        size = problem.variables.size

        def flat(x: torch.Tensor) -> torch.Tensor:
            assert problem.variables is not None
            return torch.cat([value.reshape(-1) for value in problem.variables.values(x[:size]).values()])

        spread = report.covariance_of(flat).diagonal().clamp_min(0).sqrt()
        at = 0
        for handle, value in problem.variables.values(report.x[:size]).items():
            part = spread[at : at + value.numel()].reshape(value.shape)
            deviations[handle.path] = part.tolist()
            at += value.numel()
    return {
        "noise": report.noise,
        "deviations": deviations,
        "singular_values": report.singular_values.tolist(),
        "sentences": list(report.sentences),
    }


def plain(value: Any) -> Any:
    """Nested data as JSON can hold it: numbers that are not finite become text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
