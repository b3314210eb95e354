"""Choosing USD attributes by what a rollout does, in plain Python: to fit a scene to data, or to a wish."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from warpsim.core.driving import Steps, drive
from warpsim.core.errors import InputError
from warpsim.optimizers.candidates import losses_side_by_side
from warpsim.optimizers.plain_problem import PlainVariables
from warpsim.optimizers.variables import Variables
from warpsim.sim.attributes.attribute import Attribute
from warpsim.sim.controls import given_steps
from warpsim.sim.simulator import Simulator
from warpsim.sim.trajectory import Trajectory


class RolloutProblem:
    """Minimize ½·‖residuals(rollout)‖² over variables; candidates run side by side, one per world.

    Attributes:
        variables: What x means.
        start: (n,), like `lower`, `upper` and `names` as in `Problem`.
    """

    def __init__(
        self,
        sim: Simulator,
        variables: Variables,
        residuals: Callable[[Trajectory], torch.Tensor],
        **rollout: Any,
    ) -> None:
        """Sets the problem up.

        Args:
            sim: One world.
            variables: Of handles from this simulator.
            residuals: A trajectory of W worlds → (W, m), torch.
            **rollout: What else `Simulator.rollout` is given: steps, controls (steps, nu), q, qd, outputs, keep_every …
        """
        if sim.worlds != 1:
            raise InputError(f"the simulator has {sim.worlds} worlds; give one with worlds=1")
        self.variables = variables
        self.start = variables.start()
        self.lower, self.upper = variables.lower, variables.upper
        self.names: Sequence[str] = variables.names
        self._residuals, self._rollout = residuals, rollout
        self._sims = {1: sim}

    def __getstate__(self) -> dict[str, Any]:
        """Pickled with one simulator; those for more worlds are made again."""
        return {**self.__dict__, "_sims": {1: self._sims[1]}}

    def values(self, x: torch.Tensor) -> dict[Attribute, torch.Tensor]:
        """Values of the attributes at x (n,), in USD units."""
        return self.variables.values(x)

    def rollout(self, x: torch.Tensor, **changes: Any) -> Trajectory:
        """The trajectory of candidates x (W, n), differentiable; `changes` replace what the rollout is given."""
        worlds = len(x)
        if worlds not in self._sims:
            self._sims[worlds] = self._sims[1].with_worlds(worlds)
        values: dict[Any, torch.Tensor] = dict(self.variables.values(x))
        return self._sims[worlds].rollout(parameters=values, **{**self._rollout, **changes})

    @property
    def plain(self) -> PlainVariables:
        """As in `HasPlainVariables`."""
        return self.variables.plain

    def shortened(self, share: float) -> RolloutProblem | None:
        """As in `Shortens`: frames after the first part are NaN to the residuals; what they make NaN is left out."""
        every = self._rollout.get("keep_every", 1)
        whole = given_steps(self._rollout.get("controls"), self._rollout.get("steps")) // every
        frames = math.ceil(share * whole)
        if not 1 <= frames < whole:
            return None
        cut = {**self._rollout, "steps": frames * every}
        if cut.get("controls") is not None:
            cut["controls"] = _first_steps(cut["controls"], frames * every)

        def padded(motion: Trajectory) -> torch.Tensor:
            return self._residuals(motion.padded(whole + 1))

        short = RolloutProblem(self._sims[1], self.variables, padded, **cut)
        short._sims = self._sims
        with torch.no_grad():
            known = torch.isfinite(short.residuals(self.start))
        if not known.any():
            return None
        short._residuals = lambda motion: padded(motion)[:, known]
        return short

    def batched_residuals(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`."""
        return drive(self._residuals_of(x))

    def _residuals_of(self, x: torch.Tensor) -> Steps[torch.Tensor]:
        made = self._residuals((yield partial(self.rollout, x)))
        if made.ndim != 2 or len(made) != len(x):
            raise InputError(f"the residuals have shape {tuple(made.shape)}; needed: ({len(x)}, m), worlds first")
        return made

    def residuals(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`."""
        return drive(self._residuals_of(x[None]))[0]

    def losses(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`."""
        return drive(losses_side_by_side(self._losses, x))

    def loss(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`."""
        return drive(self._losses(x[None]))[0]

    def _losses(self, x: torch.Tensor) -> Steps[torch.Tensor]:
        return (yield from self._residuals_of(x)).square().sum(-1) / 2


def _first_steps(controls: Any, steps: int) -> Any:
    """The controls of the first steps, however they were given."""
    if isinstance(controls, Mapping):
        return {name: values[:steps] for name, values in controls.items()}
    return controls[:steps]
