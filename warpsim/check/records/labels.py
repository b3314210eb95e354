"""Failure labels: what is wrong with a run, each set by a rule on its record. docs/evidence.md lists them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpsim.check.records.record import RunRecord
from warpsim.solve.newton import AT_ROUNDING, CONVERGED, STATUS_TEXT

EXPLODING = 1e6
"""Growth of the adjoint over the rollout."""
VANISHING = 1e-10
"""Largest gradient norm, relative to the loss."""
DRIFT = 0.05
"""Share of the energy that moves, by which an unforced run may gain."""
DEEP = 0.1
"""Share of the smallest colliding shape's smallest size."""
SATURATED = 0.1
"""Share of the steps."""
IDENTIFIABLE = 1e-6
"""Smallest over largest singular value of the fit's scaled Jacobian."""
HOLDS = 0.5
"""Share of the variations of `warpsim stress` at which a result must hold."""
FINER = "half step"
"""The variation that only makes the simulator more exact, at which a result must hold in any case."""


@dataclass(frozen=True)
class Label:
    """One thing wrong with a run.

    Attributes:
        name: From `LABELS`.
        text: The figures behind it.
    """

    name: str
    text: str


Rule = Callable[[RunRecord], str | None]
"""From a record to the figures behind a label, or None."""


def _non_finite(r: RunRecord) -> str | None:
    if "error" in r.outcome and "not finite" in str(r.outcome["error"]):
        return str(r.outcome["error"])
    for where, value in _numbers(r):
        if not np.isfinite(np.asarray(value, dtype=float)).all():
            return f"{where} is not finite"
    return None


def _numbers(r: RunRecord) -> Iterator[tuple[str, Any]]:
    """What must be finite: states, loss, gradient norms."""
    yield from ((f"trajectory {n}", v) for n, v in r.trajectory.items() if n in r.initial_state)
    yield from ((f"trajectory {n}", kept["largest"]) for n, kept in r.trajectory.get("matters", {}).items())
    if r.outcome.get("loss") is not None:
        yield "the loss", r.outcome["loss"]
    yield from ((f"the gradient by {n}", v) for n, v in r.gradient.get("norms", {}).items())


def _solver_not_converged(r: RunRecord) -> str | None:
    if r.solver_status is None:
        return None
    status = np.asarray(r.solver_status)
    bad = ~np.isin(status, (int(CONVERGED), int(AT_ROUNDING)))
    if not bad.any():
        return None
    step = int(np.argwhere(bad)[0][0])
    return f"{int(bad.sum())} of {bad.size} solves; the first at step {step}: {STATUS_TEXT[int(status[bad][0])]}"


def _exploding_gradient(r: RunRecord) -> str | None:
    norms = np.asarray(r.gradient.get("adjoint_norms", []), dtype=float)
    norms = norms[norms > 0.0]
    if len(norms) < 2 or not norms[0] > EXPLODING * norms[-1]:
        return None
    return f"the adjoint grows by {norms[0] / norms[-1]:.1e} from the end of the rollout to its start"


def _vanishing_gradient(r: RunRecord) -> str | None:
    norms, loss = r.gradient.get("norms"), r.outcome.get("loss")
    if not norms or loss is None or r.outcome.get("success") is True or not math.isfinite(loss):
        return None
    largest = max(norms.values())
    if largest > VANISHING * max(abs(loss), 1e-300):
        return None
    return f"largest gradient norm {largest:.1e} at a loss of {loss:.3g}"


def _chaotic_horizon(r: RunRecord) -> str | None:
    limit = r.gradient.get("valid_seconds")
    if limit is None or limit >= r.horizon["seconds"]:
        return None
    return f"gradients are noise beyond {limit:.3g} s of {r.horizon['seconds']:.3g} s at this precision"


def _mode_switch(r: RunRecord) -> str | None:
    times = np.asarray(r.observations.get("mode_switches", []))
    if not len(times):
        return None
    shown = ", ".join(f"{t:.4g}" for t in times[:5])
    return f"{len(times)} switches, at {shown}{' …' if len(times) > 5 else ''} s"


def _energy_drift(r: RunRecord) -> str | None:
    """Runs without any input can only lose energy."""
    if "potential_energy" not in r.observations or _driven(r):
        return None
    kinetic = np.asarray(r.observations["kinetic_energy"])
    energy = kinetic + np.asarray(r.observations["potential_energy"])
    scale = max(float(np.ptp(kinetic)), float(np.abs(kinetic).max()))
    gain = float((energy - energy[:1]).max())
    if not gain > DRIFT * scale > 0.0:
        return None
    return f"an unforced run gains {gain:.3g} J, {100 * gain / scale:.2g} % of the kinetic energy that moves"


def _driven(r: RunRecord) -> bool:
    moving = any(np.any(np.asarray(value) != 0.0) for value in r.actions.values())
    return moving or bool(r.names["drive"])


def _deep_penetration(r: RunRecord) -> str | None:
    if "penetration" not in r.observations:
        return None
    sizes = np.asarray(r.parameters.get("shape.size", []))
    sizes = sizes[sizes > 0.0]
    deepest = float(np.max(r.observations["penetration"]))
    if not len(sizes) or not deepest > DEEP * float(sizes.min()):
        return None
    return f"{1000 * deepest:.3g} mm deep, where the smallest size of a shape is {1000 * float(sizes.min()):.3g} mm"


def _saturated_actuator(r: RunRecord) -> str | None:
    if r.actuator_status is None:
        return None
    shares = (np.asarray(r.actuator_status) != 0).mean(axis=(0, 1))
    worst = int(np.argmax(shares))
    if not shares[worst] > SATURATED:
        return None
    names = [*r.names["actuator"], *r.names["drive"]]
    return f"{names[worst]} is at its limit for {100 * shares[worst]:.3g} % of the steps"


def _late_action(r: RunRecord) -> str | None:
    if not r.latency:
        return None
    late = np.asarray(r.latency) > r.control_period
    if not late.any():
        return None
    return f"{int(late.sum())} of {late.size} controls took longer than their period of {r.control_period:.3g} s"


def _not_identifiable(r: RunRecord) -> str | None:
    values = np.asarray(r.more.get("identification", {}).get("singular_values", []), dtype=float)
    if not len(values) or values.min() > IDENTIFIABLE * values.max():
        return None
    return f"singular values from {values.max():.2g} to {values.min():.2g}: some parameters cannot be told apart"


def simulator_exploit(r: RunRecord) -> str | None:
    """Why a result owes its success to the simulator's settings, from its rows of `warpsim stress`; None: it does not.

    It does if a finer simulation loses it, or if fewer than `HOLDS` of all variations keep it.
    """
    rows = r.more.get("stress", [])
    if not rows or not rows[0]["success"]:
        return None
    lost = [row["name"] for row in rows[1:] if not row["success"]]
    held, count = len(rows) - 1 - len(lost), len(rows) - 1
    if FINER not in lost and held >= HOLDS * count:
        return None
    return f"holds at {held} of {count} variations of the simulator; lost at {', '.join(lost)}"


def _task_not_reached(r: RunRecord) -> str | None:
    if r.outcome.get("success") is not False:
        return None
    return str(r.outcome.get("metric", "the success metric is not met"))


LABELS: dict[str, Rule] = {
    "non-finite": _non_finite,
    "solver not converged": _solver_not_converged,
    "exploding gradient": _exploding_gradient,
    "vanishing gradient": _vanishing_gradient,
    "chaotic horizon": _chaotic_horizon,
    "contact-mode switch": _mode_switch,
    "energy drift": _energy_drift,
    "deep penetration": _deep_penetration,
    "saturated actuator": _saturated_actuator,
    "late action": _late_action,
    "not identifiable": _not_identifiable,
    "simulator exploit": simulator_exploit,
    "task not reached": _task_not_reached,
}
"""Every label and the rule that sets it."""


def label(record: RunRecord) -> list[Label]:
    """All labels whose rules apply."""
    found = [(name, rule(record)) for name, rule in LABELS.items()]
    return [Label(name, text) for name, text in found if text is not None]
