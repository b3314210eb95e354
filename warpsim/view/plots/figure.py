"""`draw`: curves of a run as one figure, a panel for each kind."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from os import PathLike, fspath
from pathlib import Path

import numpy as np

from warpsim.core.errors import InputError, WarpsimError
from warpsim.core.files import replacing
from warpsim.view.plots.curves import Curves

try:
    from matplotlib import rc_context
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
except ImportError as error:
    raise WarpsimError("plots need matplotlib, which is not installed: pip install warpsim[plot]") from error

COLORS = ("#2f6fed", "#f08c2e", "#12a594", "#e5484d", "#8e4ec6", "#5c6b82", "#d6409f", "#6a8d2f")
SUFFIXES = (".png", ".svg", ".pdf")
MAXIMUM_CURVES = 24
"""Of one panel: a crowd of curves shows nothing."""
_WIDTH, _HEIGHT = 8.0, 2.3
"""Inches of a panel."""
_INK, _DIM = "#1b2330", "#667085"


class Plot(Figure):
    """A figure that notebooks show whatever backend they use."""

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        self.savefig(out, format="png", dpi=110)
        return out.getvalue()

    def save(self, path: str | PathLike[str]) -> Path:
        """Writes it as .png, .svg or .pdf; the same curves give the same bytes."""
        target = Path(fspath(path))
        if target.suffix.lower() not in SUFFIXES:
            raise InputError(f"{target}: plots are saved as {', '.join(SUFFIXES)}")
        if not target.parent.is_dir():
            raise InputError(f"{target}: there is no folder {str(target.parent)!r}; make it first")
        # Time stamps would make every file another one.
        notes = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
        kind = target.suffix.lower()
        with replacing(target) as temporary, rc_context({"svg.hashsalt": "warpsim"}):
            self.savefig(temporary, format=kind[1:], dpi=150, metadata=notes[kind])
        return target


def draw(curves: Curves, kinds: Sequence[str] | None = None) -> Plot:
    """Draws panels one below another.

    Args:
        curves: What is known of the run.
        kinds: Which panels, of `warpsim.view.plots.curves.KINDS`; None: all that there is something for.
    """
    chosen = curves.chosen(kinds)
    figure = Plot(figsize=(_WIDTH, _HEIGHT * len(chosen) + 0.5), layout="constrained")
    figure.suptitle(curves.title, x=0.01, ha="left", fontsize=12, fontweight="bold", color=_INK)
    for row, kind in enumerate(chosen):
        axes = figure.add_subplot(len(chosen), 1, row + 1)
        axes.set_label(kind)
        axes.set_prop_cycle(color=COLORS)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color("#c3cad4")
        axes.tick_params(colors=_DIM, labelsize=8)
        axes.grid(True, color="#e7eaef", linewidth=0.8)
        axes.set_axisbelow(True)
        _PANELS[kind](axes, curves)
        axes.yaxis.label.set_color(_INK)
        axes.xaxis.label.set_color(_DIM)
    return figure


def _joints(axes: Axes, curves: Curves) -> None:
    units = dict.fromkeys(coordinate.unit for coordinate in curves.joints)
    other = axes.twinx() if len(units) > 1 else None
    for number, coordinate in enumerate(curves.joints[:MAXIMUM_CURVES]):
        aside = other is not None and coordinate.unit != next(iter(units))
        target = other if aside and other is not None else axes
        _worlds(
            target,
            curves.times,
            coordinate.values,
            coordinate.name,
            COLORS[number % len(COLORS)],
            "--" if aside else "-",
        )
    axes.set_ylabel(f"joints, {next(iter(units))}")
    handles = [*axes.get_lines()]
    if other is not None:
        other.set_ylabel(f"dashed: {list(units)[1]}", color=_INK, fontsize=8)
        other.spines[["top"]].set_visible(False)
        other.tick_params(colors=_DIM, labelsize=8)
        handles += other.get_lines()
    _legend(axes, [line for line in handles if not str(line.get_label()).startswith("_")])
    _time(axes)


def _energy(axes: Axes, curves: Curves) -> None:
    for number, (name, values) in enumerate(curves.energies.items()):
        _worlds(axes, curves.times, values, name, COLORS[number % len(COLORS)])
    if len(curves.energies) > 1:
        _worlds(axes, curves.times, np.sum(list(curves.energies.values()), axis=0), "sum", _INK, "--")
    axes.set_ylabel("energy, J")
    _legend(axes)
    _time(axes)


def _contacts(axes: Axes, curves: Curves) -> None:
    """A band for each world or contact: dark where many push, or hard."""
    names = list(curves.contact_times)[:MAXIMUM_CURVES]
    rows = np.array([curves.contact_times[name] for name in names], dtype=float)
    times = curves.times
    step = times[1] - times[0] if len(times) > 1 else 1.0
    edges = np.append(times, times[-1] + step) - 0.5 * step
    shown = np.ma.masked_equal(rows, 0.0)
    mesh = axes.pcolormesh(edges, np.arange(len(names) + 1), shown, cmap="YlOrBr", vmin=0.0, rasterized=True)
    axes.set_yticks(np.arange(len(names)) + 0.5, names, fontsize=7)
    axes.invert_yaxis()
    axes.grid(False)
    axes.figure.colorbar(mesh, ax=axes, label=curves.contact_unit, pad=0.01)
    axes.set_ylabel("in contact")
    _time(axes)


def _solver(axes: Axes, curves: Curves) -> None:
    assert curves.iterations is not None
    counts = np.asarray(curves.iterations, dtype=float)
    axes.fill_between(curves.times, counts.max(axis=1), step="mid", color=COLORS[0], alpha=0.18)
    axes.step(curves.times, counts.max(axis=1), where="mid", color=COLORS[0], linewidth=1.0, label="maximum")
    if counts.shape[1] > 1:
        axes.step(
            curves.times, counts.mean(axis=1), where="mid", color=COLORS[1], linewidth=1.0, label="mean of worlds"
        )
        _legend(axes)
    axes.set_ylim(bottom=0.0)
    axes.set_ylabel("solver iterations")
    _time(axes)


def _loss(axes: Axes, curves: Curves) -> None:
    history = curves.history
    assert history is not None
    axes.plot(history.iterations, history.losses, color=COLORS[1], linewidth=1.0, marker=".", label="loss")
    best = np.minimum.accumulate(np.where(np.isfinite(history.losses), history.losses, np.inf))
    axes.plot(history.iterations, best, color=COLORS[0], linewidth=1.8, label="best so far")
    if np.isfinite(history.gradient_norms).any():
        axes.plot(history.iterations, history.gradient_norms, color=COLORS[2], linewidth=1.0, label="gradient norm")
    shown = np.concatenate([history.losses, history.gradient_norms])
    if (shown[np.isfinite(shown)] > 0.0).all():
        axes.set_yscale("log")
    axes.set_ylabel("loss")
    axes.set_xlabel("iteration", fontsize=8)
    _legend(axes)


def _gradients(axes: Axes, curves: Curves) -> None:
    if curves.adjoints is not None:
        norms = np.asarray(curves.adjoints, dtype=float)
        axes.plot(np.linspace(curves.times[0], curves.times[-1], len(norms)), norms, color=COLORS[2], linewidth=1.2)
        axes.set_ylabel("norm of the adjoint")
        _time(axes)
        if (norms > 0.0).all():
            axes.set_yscale("log")
        return
    names = list(curves.gradients)
    values = [curves.gradients[name] for name in names]
    axes.barh(names, values, color=COLORS[0], height=0.55)
    if all(value > 0.0 for value in values):
        axes.set_xscale("log")
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize=7)
    axes.set_xlabel("norm of the gradient", fontsize=8)


def _worlds(axes: Axes, times: np.ndarray, values: np.ndarray, name: str, color: str, style: str = "-") -> None:
    """One curve per world, named once."""
    for world in range(values.shape[1]):
        label = name if world == 0 else f"_{name}"
        axes.plot(
            times, values[:, world], style, color=color, linewidth=1.3, alpha=1.0 if world == 0 else 0.35, label=label
        )


def _legend(axes: Axes, handles: Sequence[object] | None = None) -> None:
    lines = list(axes.get_lines() if handles is None else handles)
    named = [line for line in lines if not str(line.get_label()).startswith("_")]  # type: ignore[attr-defined]
    axes.legend(
        handles=named, fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.06, 1.0), borderaxespad=0.0
    )


def _time(axes: Axes) -> None:
    axes.set_xlabel("time, s", fontsize=8)
    axes.margins(x=0.0)


_PANELS: dict[str, Callable[[Axes, Curves], None]] = {
    "joints": _joints,
    "energy": _energy,
    "contacts": _contacts,
    "solver": _solver,
    "loss": _loss,
    "gradients": _gradients,
}
