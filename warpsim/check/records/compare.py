"""`compare`: two runs evaluated by the same rules, and every input in which they differ, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpsim.check.records.labels import label
from warpsim.check.records.record import RunRecord

_INPUTS = (
    "scene",
    "versions",
    "device",
    "settings",
    "seed",
    "horizon",
    "initial_state",
    "parameters",
    "actions",
    "bounds",
    "control_period",
    "task",
)
_MOST = 8


@dataclass(frozen=True)
class Comparison:
    """Two runs side by side; print it.

    Attributes:
        inputs: What went in differently: dotted name → (first, second, largest deviation or None).
        results: What came out: name → (first, second).
        identical: Whether the trajectories have the same bits.
    """

    inputs: dict[str, tuple[str, str, float | None]]
    results: dict[str, tuple[str, str]]
    identical: bool

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield "inputs: the same" if not self.inputs else "inputs that differ:"
        for name, (a, b, off) in self.inputs.items():
            yield f"  {name}: {a} → {b}" + ("" if off is None else f"  (by {off:.3g})")
        yield "trajectories: identical bits" if self.identical else "trajectories: different"
        yield "results:"
        width = max(len(name) for name in self.results)
        for name, (a, b) in self.results.items():
            yield f"  {name:<{width}}  {a}" + ("" if a == b else f"  →  {b}")


def evaluate(record: RunRecord) -> dict[str, str]:
    """The figures by which runs are compared, computed from the record by one rule for all."""
    found: dict[str, Any] = {"steps": record.horizon["steps"], "seconds": record.horizon["seconds"]}
    found |= {name: value for name, value in record.outcome.items() if np.isscalar(value)}
    seen = record.observations
    if "potential_energy" in seen:
        energy = np.asarray(seen["potential_energy"]) + np.asarray(seen["kinetic_energy"])
        found["energy change, J"] = float((energy[-1] - energy[0]).mean())
    if "penetration" in seen:
        found["deepest penetration, mm"] = 1000.0 * float(np.max(seen["penetration"]))
    if "mode_switches" in seen:
        found["mode switches"] = len(seen["mode_switches"])
    if record.actuator_status is not None:
        found["saturated, %"] = 100.0 * float((np.asarray(record.actuator_status) != 0).mean())
    if record.trajectory.get("q") is not None and len(record.trajectory["q"]):
        found["final q"] = np.asarray(record.trajectory["q"])[-1, 0]
    for path, change in record.more.get("attributes", {}).items():
        found[path] = np.asarray(change["after"])
    for name, norm in record.gradient.get("norms", {}).items():
        found[f"gradient norm by {name}"] = norm
    found["labels"] = ", ".join(f.name for f in label(record)) or "none"
    return {name: _text(value) for name, value in found.items()}


def compare(a: RunRecord, b: RunRecord) -> Comparison:
    """What differs between two runs."""
    inputs: dict[str, tuple[str, str, float | None]] = {}
    for section in _INPUTS:
        names = a.names if a.names == b.names else {}
        for name, first, second in _differences(section, getattr(a, section), getattr(b, section), names):
            inputs[name] = (_text(first), _text(second), _deviation(first, second))
    found_a, found_b = evaluate(a), evaluate(b)
    results = {name: (found_a.get(name, "–"), found_b.get(name, "–")) for name in {**found_a, **found_b}}
    return Comparison(inputs, results, a.trajectory["sha256"] == b.trajectory["sha256"])


def _differences(path: str, a: Any, b: Any, names: Mapping[str, list[str]]) -> Iterator[tuple[str, Any, Any]]:
    """Leaves that differ, by dotted name; those of parameters by body, shape or joint."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in {**a, **b}:
            if key not in a or key not in b:
                yield f"{path}.{key}", a.get(key, "–"), b.get(key, "–")
            else:
                yield from _differences(f"{path}.{key}", a[key], b[key], names)
    elif isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        if a.shape == b.shape and a.dtype == b.dtype:
            labels = _labels(path, len(a) if a.ndim else 0, names)
            if labels is None:
                if not np.array_equal(a, b, equal_nan=True):
                    yield path, a, b
                return
            for i, text in enumerate(labels):
                if not np.array_equal(a[i], b[i], equal_nan=True):
                    yield f"{path}[{text}]", a[i], b[i]
        else:
            yield path, a, b
    elif a != b:
        yield path, a, b


def _labels(path: str, count: int, names: Mapping[str, list[str]]) -> list[str] | None:
    if not path.startswith(("parameters.", "bounds.")):
        return None
    kind = path.split(".")[1]
    for known in (kind, "dof" if kind in ("joint", "limit") else kind):
        if len(names.get(known, [])) == count and count:
            return [name or "world" for name in names[known]]
    return None


def _deviation(a: Any, b: Any) -> float | None:
    try:
        return float(np.max(np.abs(np.asarray(a, dtype=float) - np.asarray(b, dtype=float))))
    except (TypeError, ValueError):
        return None


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        flat = value.ravel()
        shown = ", ".join(f"{x:.6g}" for x in flat[:_MOST])
        return f"[{shown}{', …' if len(flat) > _MOST else ''}]" if value.ndim else f"{value.item():.6g}"
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, float | int | np.number):
        return f"{value:.6g}"
    return str(value)
