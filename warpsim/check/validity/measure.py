"""`measure_validity`: everything about a rollout that decides what its gradient is worth."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from warpsim.check.gradcheck.modes import ModeObserver
from warpsim.check.validity.advice import Facts, advise
from warpsim.check.validity.growth import Growth, measure_growth
from warpsim.check.validity.switches import Switch, find_switches
from warpsim.core.precision import PRECISION
from warpsim.sim.controls import Controls, given_steps
from warpsim.sim.simulator import Simulator
from warpsim.solve.newton import AT_ROUNDING, CONVERGED

_SHOWN = 8


@dataclass(frozen=True)
class Validity:
    """What a rollout's gradient is worth; print it.

    Attributes:
        times: (N + 1,) s.
        switches: Changes of mode of world 0.
        growth: Of perturbations and adjoints.
        failures: Steps whose solve did not converge.
        penetration: (N + 1,) m.
        energy: (N + 1,) J, kinetic and potential.
        advice: One paragraph.
    """

    times: np.ndarray
    switches: list[Switch]
    growth: Growth
    failures: list[int]
    penetration: np.ndarray
    energy: np.ndarray
    advice: str

    @property
    def valid_seconds(self) -> float:
        """s: beyond it gradients are noise at this precision."""
        return self.growth.valid_seconds(PRECISION)

    def record(self) -> dict[str, Any]:
        """For the `gradient` of a run record."""
        finite = math.isfinite(self.valid_seconds)
        return {
            "adjoint_norms": np.exp(np.minimum(self.growth.adjoint, 700.0)),
            "lyapunov": self.growth.lyapunov,
            "valid_seconds": self.valid_seconds if finite else None,
        }

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        g = self.growth
        yield f"{len(self.times) - 1} steps, {self.times[-1]:g} s, {PRECISION}"
        yield f"mode switches: {len(self.switches)}"
        for switch in self.switches[:_SHOWN]:
            yield f"  {switch.time:.4g} s: {switch.text}"
        if len(self.switches) > _SHOWN:
            yield f"  … {len(self.switches) - _SHOWN} more"
        yield (
            f"growth: a perturbation by {_power(g.perturbation[-1])} over the rollout, at most "
            f"{_power(g.perturbation.max())}; the adjoint by {_power(g.adjoint[0] - g.adjoint[-1])}; Lyapunov exponent "
            f"{g.lyapunov:.3g} 1/s"
        )
        for precision in ("float64", "float32"):
            limit = g.valid_seconds(precision)
            text = "at no horizon, as far as this rollout tells" if math.isinf(limit) else f"beyond {limit:.3g} s"
            yield f"gradients are noise in {precision}: {text}"
        first = f", the first at step {self.failures[0]}" if self.failures else ""
        yield f"solves that did not converge: {len(self.failures)}{first}"
        yield f"deepest penetration: {1000 * float(self.penetration.max()):.3g} mm"
        yield f"energy: {self.energy[0]:.6g} J → {self.energy[-1]:.6g} J, at most {self.energy.max():.6g} J"
        yield f"advice: {self.advice}"


def _power(logarithm: float) -> str:
    return f"{math.exp(min(float(logarithm), 700.0)):.2g}"


def measure_validity(
    sim: Simulator, steps: int | None = None, controls: Controls | None = None, **start: Any
) -> Validity:
    """Rolls a simulator out and measures, in world 0, what its gradient is worth.

    Args:
        sim: What is simulated, with the parameters in force.
        steps: N; None: the length of `controls`.
        controls: As in `Simulator.rollout`.
        **start: `start`, `q`, `qd`, as in `Simulator.rollout`.
    """
    count = given_steps(controls, steps)
    actions = sim.all_controls(count, controls)
    outputs: tuple[str, ...] = ("potential_energy", "kinetic_energy")
    outputs += ("solver_status", "penetration") if sim.model.has_constraints else ()
    made = sim.rollout(count, actions, **start, outputs=outputs)
    modes = list(ModeObserver(sim.compiled, tuple(actions)).modes(made, actions))
    transitions = _transitions(sim, made, actions)
    growth = measure_growth(transitions, sim.timestep)
    switches = find_switches(modes, sim.model, sim.timestep)
    energy = made.numpy("potential_energy")[:, 0] + made.numpy("kinetic_energy")[:, 0]
    penetration, failures = np.zeros(count + 1), []
    if "penetration" in made:
        penetration = made.numpy("penetration")[:, 0]
        status = made.numpy("solver_status")[1:, 0]
        failures = np.flatnonzero(~np.isin(status, (int(CONVERGED), int(AT_ROUNDING)))).tolist()
    driven = bool(sim.drive_names) or any(bool((t != 0).any()) for t in actions.values())
    kinetic = float(made.numpy("kinetic_energy")[:, 0].max())
    gain = 0.0 if driven or kinetic == 0.0 else float((energy - energy[0]).max()) / kinetic
    sizes = sim.parameter("shape.size")[0]
    smallest = float(sizes[sizes > 0].min()) if (sizes > 0).any() else math.inf
    facts = Facts(
        seconds=count * sim.timestep,
        steps=count,
        timestep=sim.timestep,
        growth=growth,
        switches=len(switches),
        failures=len(failures),
        depth=float(penetration.max()) / smallest,
        gain=gain,
        softened=sim.scene.options.contact_softening > 0.0 or sim.scene.options.impacts,
    )
    return Validity(made.times, switches, growth, failures, penetration, energy, advise(facts))


def _transitions(sim: Simulator, made: Any, actions: Mapping[str, torch.Tensor]) -> np.ndarray:
    return sim.jacobians(made, actions).A[:, 0].cpu().numpy()
