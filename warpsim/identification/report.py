"""Reports of a fit: parameters with intervals, errors on held-out recordings, curves, notes."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from warpsim.core.files import MARK
from warpsim.identification.grid import predicted
from warpsim.identification.held_out import fold_errors
from warpsim.identification.prediction import Predictor
from warpsim.sim.trajectory import Trajectory

_WIDTH, _HEIGHT, _EDGE = 270, 150, 22
_MEASURED, _PREDICTED = "#d9730d", "#1f5fd0"
_STYLE = f"""body{{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:72em;padding:0 1.5em;color:#222}}
h2{{margin-top:2em;border-bottom:1px solid #ddd;padding-bottom:.2em}}table{{border-collapse:collapse}}
td,th{{padding:.2em .9em;border-bottom:1px solid #e4e4e4;text-align:right;white-space:nowrap;
font-variant-numeric:tabular-nums}}th{{white-space:normal;vertical-align:bottom}}
td:first-child,th:first-child{{text-align:left;padding-left:0}}.note{{color:#a40}}.small{{color:#666;font-size:12px}}
iframe{{width:100%;height:30em;border:1px solid #ddd;border-radius:6px}}
.plots{{display:grid;grid-template-columns:repeat(auto-fill,minmax({_WIDTH}px,1fr));gap:1em}}
figure{{margin:0}}.check{{text-align:center}}.check svg{{background:#fafafa}}
figcaption{{font-size:12px;text-align:center}}svg text{{font-size:10px;fill:#666}}
.dot{{color:{_MEASURED}}}.line{{color:{_PREDICTED}}}"""


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
    def of(predictor: Predictor, motion: Trajectory, place: int, name: str, late: Mapping[str, torch.Tensor]) -> Curves:
        """Of a rollout of one world."""
        grid, lines, which = predictor.grid, [], torch.tensor([place])
        for channel in predictor.channels:
            shown = predictor.shown(motion, channel, which, late)[0]
            made = torch.cat([predicted(motion, channel.name)[:1, 0], shown]).numpy()
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
        apart = predictor.compare(motion, which, grid.samples, late)[0]
        sizes = torch.linalg.vector_norm(apart, dim=-1).numpy()
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


def _interval(value: float, half: float, digits: int = 6) -> str:
    return f"{value - half:.{digits}g} … {value + half:.{digits}g}" if math.isfinite(half) else "not determined"


def html_report(fit: Any, curves: Sequence[Curves]) -> str:
    """A page without scripts: tables, the motions in a frame, and measured against predicted curves."""
    cells = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{value:.5g}</td><td>{_interval(value, half, 5)}</td>"
        f"<td>{_interval(value, repeat, 5)}</td><td>{f'± {naive:.2g}' if math.isfinite(naive) else ''}</td></tr>"
        for name, value, half, repeat, naive in _parameter_lines(fit)
    )
    sentences = "".join(f"<li>{html.escape(s)}</li>" for s in fit.uncertainty.sentences)
    notes = "".join(f"<li class=note>{html.escape(note)}</li>" for note in fit.notes)
    checked = f"<h2>Gradient of the loss</h2>{_check_picture(fit.loss_check)}" if fit.loss_check is not None else ""
    return (
        f"<!doctype html><!-- {MARK.decode()} --><meta charset=utf-8><title>Identification</title>"
        f"<style>{_STYLE}</style><h1>Identification</h1>"
        f"<p>{len(fit.train)} recordings fitted, {len(fit.held_out)} held out; {fit.rollouts:.0f} rollouts of a "
        f"recording, {fit.seconds:.1f} s of processor time. {_contacts(fit)}</p>"
        "<table><tr><th>parameter<th>value<th>95 % interval of the true value, by recording"
        "<th>95 % of other such data sets' values<th>samples as independent</tr>"
        f"{cells}</table><ul>{sentences}</ul>"
        f"<h2>Mean errors</h2>{_errors_table(fit)}"
        "<p class=small>Positions in m, rotations and angles in rad; folds: mean ± standard deviation.</p>"
        "<h2>Measured (ghosts) and predicted</h2><iframe src=motion.html loading=lazy title=motions></iframe>"
        "<p class=small><a href=motion.html>On a page of its own.</a></p>"
        f"{checked}<h2>Measured (<span class=dot>dots</span>) and predicted (<span class=line>lines</span>)</h2>"
        f"{''.join(map(_recording, curves))}<h2>Notes on the data</h2><ul>{notes or '<li>none</li>'}</ul>"
    )


def _errors_table(fit: Any) -> str:
    parts = list(next(iter(fit.errors.values())).mean)
    judged = "".join(
        f"<tr><td>{html.escape(what)}</td>" + "".join(f"<td>{e.mean[p]:.4g}</td>" for p in parts) + "</tr>"
        for what, e in fit.errors.items()
    )
    judged += "".join(
        f"<tr><td>{html.escape(what)}</td>" + "".join(f"<td>{_spread(*found[p])}</td>" for p in parts) + "</tr>"
        for what, found in fold_errors(fit.cross_validation).items()
    )
    return f"<table><tr><th><th>{'<th>'.join(map(html.escape, parts))}</tr>{judged}</table>"


def _recording(curves: Curves) -> str:
    plots = [_plot(title, curves.times, measured, made) for title, measured, made in curves.lines]
    plots.append(
        _plot("residual, standard deviations", curves.times[1:], np.full(len(curves.sizes), np.nan), curves.sizes)
    )
    return f"<h3>{html.escape(curves.name)}</h3><div class=plots>{''.join(plots)}</div>"


def _plot(title: str, times: np.ndarray, measured: np.ndarray, made: np.ndarray) -> str:
    both = np.concatenate([measured, made])
    both = both[np.isfinite(both)]
    low, high = (float(both.min()), float(both.max())) if len(both) else (0.0, 1.0)
    span = (high - low) or 1.0
    at_x = _EDGE + (times - times[0]) / ((times[-1] - times[0]) or 1.0) * (_WIDTH - 2 * _EDGE)

    def at_y(values: np.ndarray) -> np.ndarray:
        return _HEIGHT - _EDGE - (values - low) / span * (_HEIGHT - 2 * _EDGE)

    dots = "".join(
        f"<circle cx='{x:.1f}' cy='{y:.1f}' r='1.8' fill='{_MEASURED}' fill-opacity='.55'/>"
        for x, y in zip(at_x, at_y(measured), strict=True)
        if np.isfinite(y)
    )
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(at_x, at_y(made), strict=True) if np.isfinite(y))
    right, down = _WIDTH - _EDGE, _HEIGHT - _EDGE
    frame = f"<path d='M{_EDGE} {_EDGE}V{down}H{right}' fill='none' stroke='#bbb'/>"
    return (
        f"<figure><svg viewBox='0 0 {_WIDTH} {_HEIGHT}' width='100%'>{frame}{dots}"
        f"<polyline points='{line}' fill='none' stroke='{_PREDICTED}' stroke-width='1.5'/>"
        f"<text x={_EDGE} y={_EDGE - 6}>{high:.3g}</text><text x={_EDGE} y={down + 12}>{low:.3g}</text>"
        f"<text x={right} y={down + 12} text-anchor=end>{times[-1] - times[0]:.3g} s</text></svg>"
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
        picture = f"<line x1=10 y1=140 x2=140 y2=10 stroke='#ccc'/>{dots}"
        said = f"<figcaption>step {step:g}: cosine {cosine:.3f}</figcaption>"
        figures.append(f"<figure class=check><svg width=150 height=150>{picture}</svg>{said}</figure>")
    return (
        "<p>Derivatives of every recording's loss: exact (right) against differences (up).</p>"
        f"<div class=plots>{''.join(figures)}</div><p>{html.escape(check.advice)}</p>"
    )
