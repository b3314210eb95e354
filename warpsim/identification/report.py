"""Reports of a fit: parameters with intervals, errors on held-out recordings, curves, notes."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from warpsim.core.files import MARK
from warpsim.identification.grid import predicted
from warpsim.identification.held_out import fold_errors
from warpsim.identification.prediction import Predictor
from warpsim.sim.trajectory import Trajectory

_WIDTH, _HEIGHT, _EDGE = 320, 150, 28
_STYLE = """body{font:14px system-ui,sans-serif;margin:2em auto;max-width:70em;color:#222}
table{border-collapse:collapse}td,th{padding:.2em .8em;border-bottom:1px solid #ddd;text-align:right}
td:first-child,th:first-child{text-align:left}svg{margin:.4em}.note{color:#a40}figure{display:inline-block;margin:0}
figcaption{font-size:12px;text-align:center}"""


@dataclass(frozen=True)
class Curves:
    """One recording beside its prediction.

    Attributes:
        name: Of the recording.
        times: (samples,) s.
        lines: (title, measured (samples,), predicted (samples,)): one per number of a compared channel; NaN where
            masked.
        sizes: (samples − 1,) length of the residuals, in standard deviations.
    """

    name: str
    times: np.ndarray
    lines: tuple[tuple[str, np.ndarray, np.ndarray], ...]
    sizes: np.ndarray

    @staticmethod
    def of(predictor: Predictor, motion: Trajectory, place: int, name: str) -> Curves:
        """Of a rollout of one world."""
        grid, lines, parts = predictor.grid, [], []
        for channel in predictor.channels:
            made = predicted(motion, channel.name)[:, 0].numpy()
            mask = grid.mask[channel.name][place].numpy() > 0
            measured = np.where(
                mask[:, None], grid.measured[channel.name][place].numpy().reshape(len(mask), -1), np.nan
            )
            made = made.reshape(len(made), -1)
            if channel.kind == "rotation" or made.shape[1] > channel.size:  # q and −q are one rotation
                sign = np.sign(np.nansum(measured * made, -1, keepdims=True)) if channel.kind == "rotation" else 1.0
                measured = measured * sign
            titles = [f"{channel.name}[{i}]" for i in range(made.shape[1])]
            lines += [(t, m, p) for t, m, p in zip(titles, measured.T, made.T, strict=True)]
            parts.append(torch.tensor(predictor.compare(motion, torch.tensor([place]), len(made))[0].numpy()))
        sizes = torch.linalg.vector_norm(parts[0], dim=-1).numpy()
        return Curves(name, float(grid.interval[place]) * np.arange(grid.samples), tuple(lines), sizes)


def markdown_report(fit: Any) -> str:
    """A fit in Markdown.

    Args:
        fit: An `IdentifiedScene`.
    """
    lines = ["# Identification", "", f"{len(fit.train)} recordings fitted, {len(fit.held_out)} held out; "]
    lines[-1] += f"{fit.rollouts:.0f} rollouts of a recording, {fit.seconds:.1f} s of processor time."
    lines += [_contacts(fit), "", "## Parameters", ""]
    lines += [
        "| parameter | value | 95 % interval (by recording) | another such data set's value | samples as independent |",
        "|---|---|---|---|---|",
    ]
    for name, value, half, repeat, naive in _parameter_lines(fit):
        told = f"{_interval(value, half)} | {_interval(value, repeat)} | ± {naive:.2g}"
        lines.append(f"| {name} | {value:.6g} | {told} |")
    lines += ["", *(f"- {sentence}" for sentence in fit.uncertainty.sentences), "", "## Mean errors", ""]
    parts = list(next(iter(fit.errors.values())).mean)
    lines += ["| | " + " | ".join(parts) + " |", "|---|" + "---|" * len(parts)]
    for what, errors in fit.errors.items():
        lines.append(f"| {what} | " + " | ".join(f"{errors.mean[part]:.4g}" for part in parts) + " |")
    for what, found in fold_errors(fit.cross_validation).items():
        lines.append(f"| {what} | " + " | ".join(_spread(*found[part]) for part in parts) + " |")
    lines += ["", "Positions in m, rotations and angles in rad; folds: mean ± standard deviation."]
    if fit.loss_check is not None:
        lines += ["", "## Gradient of the loss", "", "```", str(fit.loss_check), "```"]
    if fit.notes:
        lines += ["", "## Notes on the data", "", *(f"- {note}" for note in fit.notes)]
    return "\n".join(lines) + "\n"


def _contacts(fit: Any) -> str:
    softening = fit.contacts.softening
    return f"Contacts are softened by {1000 * softening:g} mm." if softening else "Contacts are the scene's own."


def _parameter_lines(fit: Any) -> list[tuple[str, float, float, float, float]]:
    sure = fit.uncertainty
    widths = (sure.half_width, sure.repeat_half_width, sure.naive_half_width)
    return list(zip(fit.names, fit.values, *widths, strict=True))


def _spread(mean: float, deviation: float) -> str:
    return f"{mean:.4g} ± {deviation:.2g}"


def _interval(value: float, half: float) -> str:
    return f"{value - half:.6g} … {value + half:.6g}" if math.isfinite(half) else "not determined"


def html_report(fit: Any, curves: Sequence[Curves]) -> str:
    """A page without scripts: tables, and measured against predicted curves."""
    cells = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{value:.6g}</td><td>{_interval(value, half)}</td>"
        f"<td>{_interval(value, repeat)}</td><td>± {naive:.2g}</td></tr>"
        for name, value, half, repeat, naive in _parameter_lines(fit)
    )
    parts = list(next(iter(fit.errors.values())).mean)
    judged = "".join(
        f"<tr><td>{html.escape(what)}</td>" + "".join(f"<td>{e.mean[p]:.4g}</td>" for p in parts) + "</tr>"
        for what, e in fit.errors.items()
    )
    judged += "".join(
        f"<tr><td>{html.escape(what)}</td>" + "".join(f"<td>{_spread(*found[p])}</td>" for p in parts) + "</tr>"
        for what, found in fold_errors(fit.cross_validation).items()
    )
    sentences = "".join(f"<li>{html.escape(s)}</li>" for s in fit.uncertainty.sentences)
    notes = "".join(f"<li class=note>{html.escape(note)}</li>" for note in fit.notes)
    checked = f"<h2>Gradient of the loss</h2>{_check_picture(fit.loss_check)}" if fit.loss_check is not None else ""
    return (
        f"<!doctype html><!-- {MARK.decode()} --><meta charset=utf-8><title>Identification</title>"
        f"<style>{_STYLE}</style><h1>Identification</h1>"
        f"<p>{len(fit.train)} recordings fitted, {len(fit.held_out)} held out. {_contacts(fit)}</p>"
        f"<table><tr><th>parameter<th>value<th>95 % interval, by recording"
        f"<th>another such data set's value<th>samples as independent</tr>"
        f"{cells}</table>"
        f"<ul>{sentences}</ul><h2>Mean errors</h2>"
        f"<table><tr><th><th>{'<th>'.join(map(html.escape, parts))}</tr>{judged}</table>"
        f"{checked}<h2>Measured (dots) and predicted (lines)</h2>{''.join(map(_recording, curves))}"
        f"<h2>Notes on the data</h2><ul>{notes or '<li>none</li>'}</ul>"
    )


def _recording(curves: Curves) -> str:
    plots = [_plot(title, curves.times, measured, made) for title, measured, made in curves.lines]
    plots.append(
        _plot("residual, standard deviations", curves.times[1:], np.full(len(curves.sizes), np.nan), curves.sizes)
    )
    return f"<h3>{html.escape(curves.name)}</h3>{''.join(plots)}"


def _plot(title: str, times: np.ndarray, measured: np.ndarray, made: np.ndarray) -> str:
    both = np.concatenate([measured, made])
    both = both[np.isfinite(both)]
    low, high = (float(both.min()), float(both.max())) if len(both) else (0.0, 1.0)
    span = (high - low) or 1.0
    at_x = _EDGE + (times - times[0]) / ((times[-1] - times[0]) or 1.0) * (_WIDTH - 2 * _EDGE)

    def at_y(values: np.ndarray) -> np.ndarray:
        return _HEIGHT - _EDGE - (values - low) / span * (_HEIGHT - 2 * _EDGE)

    dots = "".join(
        f"<circle cx='{x:.1f}' cy='{y:.1f}' r='1.5' fill='#888'/>"
        for x, y in zip(at_x, at_y(measured), strict=True)
        if np.isfinite(y)
    )
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(at_x, at_y(made), strict=True) if np.isfinite(y))
    return (
        f"<figure><svg width={_WIDTH} height={_HEIGHT} style='background:#fafafa'>{dots}"
        f"<polyline points='{line}' fill='none' stroke='#06c'/><text x=2 y=12 font-size=10>{high:.4g}</text>"
        f"<text x=2 y={_HEIGHT - 4} font-size=10>{low:.4g}</text></svg>"
        f"<figcaption>{html.escape(title)}</figcaption></figure>"
    )


def _check_picture(check: Any) -> str:
    """Derivatives against differences, one point per recording and direction, one picture per step."""
    figures = []
    exact = check.exact.flatten().numpy()
    for step, cosine, found in zip(check.steps, check.cosine, check.differences, strict=True):
        other = found.flatten().numpy()
        size = max(float(np.nanmax(np.abs(np.concatenate([exact, other])))), 1e-300)
        places = zip(75 + 65 * exact / size, 75 - 65 * other / size, strict=True)
        dots = "".join(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='1.5' fill='#06c'/>" for x, y in places if np.isfinite(y))
        figures.append(
            f"<figure><svg width=150 height=150 style='background:#fafafa'><line x1=10 y1=140 x2=140 y2=10 "
            f"stroke='#ccc'/>{dots}</svg><figcaption>step {step:g}: cosine {cosine:.3f}</figcaption></figure>"
        )
    return f"<p>Exact (right) against differences (up).</p>{''.join(figures)}<p>{html.escape(check.advice)}</p>"
