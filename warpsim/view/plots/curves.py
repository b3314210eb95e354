"""`Curves`: what of a run can be plotted, as plain arrays; needs no matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from warpsim.core.errors import InputError, unknown_name

KINDS = ("joints", "energy", "contacts", "solver", "loss", "gradients")
"""Panels of a figure, in their order."""


@dataclass(frozen=True, eq=False)
class Coordinate:
    """One joint's coordinate over time."""

    name: str
    values: np.ndarray
    """(frames, worlds)."""
    unit: str
    """"rad" or "m"; "rad, m" where the kind of the joint is not known."""


@dataclass(frozen=True, eq=False)
class History:
    """How a search went."""

    iterations: np.ndarray
    losses: np.ndarray
    gradient_norms: np.ndarray
    """(n,) each; NaN where one is not known."""


@dataclass(frozen=True, eq=False)
class Curves:
    """Of one run; what is empty or None was not observed."""

    title: str
    times: np.ndarray
    """(frames,) s."""
    joints: Sequence[Coordinate] = ()
    energies: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Name → (frames, worlds) J."""
    contact_times: Mapping[str, np.ndarray] = field(default_factory=dict)
    """World, or place of a contact → (frames,) number of contacts, or force in N."""
    contact_unit: str = "contacts"
    iterations: np.ndarray | None = None
    """(frames, worlds) of the constraint solver."""
    history: History | None = None
    gradients: Mapping[str, float] = field(default_factory=dict)
    """Input → norm of the gradient by it."""
    adjoints: np.ndarray | None = None
    """(n,) norms of the state's adjoint along the rollout."""

    def known(self) -> tuple[str, ...]:
        """Panels that there is something for."""
        there = {
            "joints": bool(self.joints),
            "energy": bool(self.energies),
            "contacts": bool(self.contact_times),
            "solver": self.iterations is not None,
            "loss": self.history is not None,
            "gradients": bool(self.gradients) or self.adjoints is not None,
        }
        return tuple(kind for kind in KINDS if there[kind])

    def chosen(self, kinds: Sequence[str] | None) -> tuple[str, ...]:
        """The panels to draw.

        Args:
            kinds: Of `KINDS`; None: all that there is something for.

        Raises:
            InputError: Nothing is known for one of them, or for any.
        """
        known = self.known()
        for kind in kinds or ():
            if kind not in KINDS:
                raise unknown_name("plot", kind, KINDS)
            if kind not in known:
                raise InputError(f"{self.title}: nothing to plot as {kind!r}: {_HINTS[kind]}")
        found = known if kinds is None else tuple(kinds)
        if not found:
            raise InputError(f"{self.title}: nothing to plot; ask for outputs, e.g. outputs=('kinetic_energy',)")
        return found


_HINTS = {
    "joints": "no hinge or slide was observed",
    "energy": "ask for the outputs 'potential_energy' and 'kinetic_energy'",
    "contacts": "ask for the output 'contact_count', or for 'contact_points' and 'contact_point_forces'",
    "solver": "ask for the output 'solver_iterations'",
    "loss": "only records of a search (record.json of `warpsim optimize`) have a loss over iterations",
    "gradients": "only records of runs that were differentiated have gradients",
}
