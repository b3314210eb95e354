"""Whether the solves within steps converged, as a backward pass finds out: if not, their adjoints are not theirs.

Steps are differentiated last first, whatever the schedule, so the last step that did not converge is the one met first;
that is what is reported, and it does not depend on how the rollout was cut.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from warpsim.core.errors import InputError, UnconvergedError, UnconvergedWarning

CHOICES = ("raise", "warn")
"""What a backward pass does about a step that did not converge."""


def check_choice(unconverged: str) -> str:
    """The choice, if it is one."""
    if unconverged not in CHOICES:
        raise InputError(f"unconverged={unconverged!r}; use one of {', '.join(map(repr, CHOICES))}")
    return unconverged


@dataclass
class Unsolved:
    """The solves that did not converge among those a backward pass has come by.

    Attributes:
        count: How many steps of a world.
        step: The last step that has one; −1: none.
        world: The first of its worlds.
        residual: The solve's there.
        worst: The largest residual of all.
    """

    count: int = 0
    step: int = -1
    world: int = -1
    residual: float = 0.0
    worst: float = 0.0

    def note(self, residuals: np.ndarray, first_step: int, first_world: int) -> None:
        """Takes in some steps.

        Args:
            residuals: (steps, worlds), above 0 where a solve did not converge.
            first_step: The first frame's.
            first_world: The first column's.
        """
        if not residuals.any():
            return
        frame, column = max(np.argwhere(residuals > 0.0).tolist(), key=lambda place: (place[0], -place[1]))
        place = Unsolved(
            int(np.count_nonzero(residuals)),
            first_step + frame,
            first_world + column,
            float(residuals[frame, column]),
            float(residuals.max()),
        )
        self.add(place)

    def add(self, other: Unsolved) -> None:
        """Takes in what another part of the same pass has come by."""
        if (other.step, -other.world) > (self.step, -self.world):
            self.step, self.world, self.residual = other.step, other.world, other.residual
        self.count += other.count
        self.worst = max(self.worst, other.worst)

    @property
    def error(self) -> UnconvergedError:
        """Of the last step."""
        return UnconvergedError(
            f"the solver did not converge at step {self.step}, world {self.world} (residual {self.residual:.1e}), so "
            "the gradient through that step would be wrong; the output 'solver_status' shows all such steps. Look "
            "there for bodies of very different mass, contradicting constraints or very stiff contacts, or "
            'shorten the time step; unconverged="warn" returns the gradient with a warning',
            self.step,
            self.world,
            self.residual,
        )

    def settle(self, unconverged: str) -> None:
        """Raises or warns, as chosen, if there was any."""
        if self.step < 0:
            return
        if unconverged == "raise":
            raise self.error
        warnings.warn(
            f"the gradient goes through {self.count} solve(s) that did not converge, where it is wrong: the last at "
            f"step {self.step}, world {self.world} (residual {self.residual:.1e}), the largest residual is "
            f"{self.worst:.1e}",
            UnconvergedWarning,
            stacklevel=2,
        )
