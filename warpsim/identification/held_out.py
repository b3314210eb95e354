"""Errors in the channels' own units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import torch

from warpsim.identification.gauss_newton import Setting
from warpsim.identification.prediction import Predictor


@dataclass(frozen=True)
class Errors:
    """Distances between prediction and measurement, over samples after the first.

    Attributes:
        mean: By part of a channel: mean length of the error, e.g. "q position" m, "q rotation" rad.
        by_recording: Likewise, (R,).
        by_sample: Likewise, (samples − 1,).
    """

    mean: dict[str, float]
    by_recording: dict[str, torch.Tensor]
    by_sample: dict[str, torch.Tensor]


def error_parts(predictor: Predictor) -> dict[str, list[int]]:
    """Part → its places among a sample's residuals; a free joint's position and rotation are two."""
    parts: dict[str, list[int]] = {}
    at = 0
    for channel in predictor.channels:
        if channel.name != "q":
            parts[channel.name] = list(range(at, at + channel.size))
        else:
            layout = predictor.layout
            for name, kind, dof in zip(layout.joint_names, layout.joint_kinds, layout.joint_dof.tolist(), strict=True):
                title = f"q {name}"
                if kind == "free":
                    parts[f"{title} position"] = list(range(at + dof, at + dof + 3))
                    parts[f"{title} rotation"] = list(range(at + dof + 3, at + dof + 6))
                else:
                    parts[title] = list(range(at + dof, at + dof + (3 if kind == "ball" else 1)))
        at += channel.size
    return parts


def measure_errors(predictor: Predictor, chosen: torch.Tensor, x: torch.Tensor, setting: Setting) -> Errors:
    """Errors of some recordings at x, from the starts that are in force."""
    own = torch.zeros(len(chosen), sum(p.size for p in predictor.nuisance), dtype=torch.float64)
    with torch.no_grad():
        made = predictor.residuals(x.expand(len(chosen), -1), own, chosen, setting.samples, setting.contacts)
    noise = torch.cat([channel.noise.expand(channel.size) for channel in predictor.channels])
    masks = [
        predictor.counted(channel, chosen, setting.samples)[..., None].expand(-1, -1, channel.size)
        for channel in predictor.channels
    ]
    made, known = made * noise, torch.cat(masks, -1)
    mean, by_recording, by_sample = {}, {}, {}
    for name, places in error_parts(predictor).items():
        size = torch.linalg.vector_norm(made[..., places], dim=-1)
        counted = known[..., places[0]]
        mean[name] = float(size.sum() / counted.sum().clamp_min(1))
        by_recording[name] = size.sum(-1) / counted.sum(-1).clamp_min(1)
        by_sample[name] = size.sum(0) / counted.sum(0).clamp_min(1)
    return Errors(mean, by_recording, by_sample)


def fold_errors(folds: Sequence[dict[str, Errors]]) -> dict[str, dict[str, tuple[float, float]]]:
    """By what was judged and part: mean over the folds, and their standard deviation."""
    if not folds:
        return {}
    return {
        f"{len(folds)} folds, {what}": {
            part: (fmean(f[what].mean[part] for f in folds), stdev(f[what].mean[part] for f in folds))
            for part in errors.mean
        }
        for what, errors in folds[0].items()
    }
