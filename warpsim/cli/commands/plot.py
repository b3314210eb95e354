"""`warpsim plot`: curves of a run record as a figure."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from warpsim.check.records import RunRecord, read_record
from warpsim.cli.commands.outputs import check_outputs
from warpsim.core.errors import InputError
from warpsim.core.registry import provided
from warpsim.view.plots.curves import Coordinate, Curves, History

_Q_SIZES = {1: 1, 3: 4, 6: 7}
"""Dofs of a joint → its coordinates."""
_SUFFIXES = (".png", ".svg", ".pdf")


def run(arguments: argparse.Namespace) -> int:
    """Reads, draws, writes."""
    source = Path(arguments.record)
    output = Path(arguments.output) if arguments.output else Path(source.with_suffix(".png").name)
    if output.suffix.lower() not in _SUFFIXES:
        raise InputError(f"{output}: plots are saved as {', '.join(_SUFFIXES)}")
    check_outputs([output], [arguments.record], force=arguments.force)
    curves = record_curves(read_record(source))
    print(f"wrote {provided('plot')(curves, arguments.what).save(output)}")
    return 0


def record_curves(record: RunRecord) -> Curves:
    """What a record knows, of all worlds."""
    observed, moved = record.observations, record.trajectory
    energies = {
        name: _worlds(observed[f"{name}_energy"]) for name in ("kinetic", "potential") if f"{name}_energy" in observed
    }
    counts = _worlds(observed["contact_count"]) if "contact_count" in observed else np.zeros((0, 0))
    solver = observed.get("solver_iterations")
    return Curves(
        str(record.scene.get("name") or "run"),
        np.asarray(moved["times"], dtype=float) if "times" in moved else np.zeros(0),
        joints=_joints(record),
        energies=energies,
        contact_times={f"world {world}": counts[:, world] for world in range(counts.shape[1])} if counts.any() else {},
        iterations=None if solver is None else _worlds(solver),
        history=_history(record.more),
        gradients={name: float(norm) for name, norm in record.gradient.get("norms", {}).items()},
        adjoints=_adjoints(record.gradient),
    )


def _worlds(values: Any) -> np.ndarray:
    """(frames, worlds)."""
    rows = np.asarray(values, dtype=float)
    return rows.reshape(len(rows), -1)


def _joints(record: RunRecord) -> list[Coordinate]:
    """Joints of one coordinate; records do not tell hinges from slides."""
    if "q" not in record.trajectory:
        return []
    q = np.asarray(record.trajectory["q"], dtype=float)
    found, column = [], 0
    for joint in record.names["joint"]:
        dofs = sum(dof == joint or dof.startswith(f"{joint}:r") or dof in _linear(joint) for dof in record.names["dof"])
        if dofs == 1:
            found.append(Coordinate(joint.rpartition("/")[2], q[:, :, column], "rad, m"))
        column += _Q_SIZES[dofs]
    return found


def _linear(joint: str) -> tuple[str, ...]:
    return tuple(f"{joint}:{axis}" for axis in "xyz")


def _history(more: dict[str, Any]) -> History | None:
    """The search that made a record."""
    rows = more.get("result", {}).get("history") if isinstance(more.get("result"), dict) else None
    if not rows:
        return None

    def column(name: str) -> np.ndarray:
        return np.array([np.nan if row.get(name) is None else float(row[name]) for row in rows])

    return History(column("iteration"), column("loss"), column("gradient_norm"))


def _adjoints(gradient: dict[str, Any]) -> np.ndarray | None:
    norms = gradient.get("adjoint_norms")
    return None if norms is None else np.asarray(norms, dtype=float).reshape(-1)
