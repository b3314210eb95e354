"""The parameters in force in a simulator: set, read, drawn, and replaced for one call."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import warp as wp

from warpsim.autograd.exchange import to_torch
from warpsim.engine.engine import Engine
from warpsim.sim.attributes.attribute import Attribute
from warpsim.sim.draws import Draws
from warpsim.sim.initial_state import InitialState
from warpsim.sim.parameter_input import InForce, ParameterInput
from warpsim.sim.randomization import Randomization


class ParametersInForce:
    """What all steps and rollouts of a simulator use, unless a call is given values of its own.

    Attributes:
        input: Turns what callers give into parameters.
        current: What is in force.
    """

    def __init__(self, engine: Engine, path: Path | None, initial: InitialState) -> None:
        """The scene's own.

        Args:
            engine: What they are for.
            path: The file the scene was read from; None: none.
            initial: Initial states, some of which attributes feed.
        """
        self._engine = engine
        self._initial = initial
        self.input = ParameterInput(engine, path)
        self.current: InForce = self.input.own()
        self._taken: InForce | None = None

    @property
    def timestep(self) -> float:
        """Seconds per step, of world 0."""
        return timestep_of(self.current)

    @property
    def changed(self) -> frozenset[str]:
        """Names of the parameter arrays whose values in force are not the scene's own."""
        defaults = self._engine.defaults
        return frozenset(n for n, value in self.current.parameters.values.items() if value is not defaults[n])

    def attribute(self, path: str) -> Attribute:
        """A handle on a USD attribute that reaches physics, e.g. "/World/Ball.physics:velocity".

        Its value is in the stage's own units. It is a key of `parameters=`, where gradients come back in these units.

        Raises:
            InputError: There is no such attribute, or it cannot matter; says why.
        """
        return self.input.attributes.handle(path)

    def replaced(self, given: Mapping[str | Attribute, Any] | None) -> InForce:
        """What is in force, with some values given anew for one call."""
        return self.input.replaced(self.current, given)

    def parameter(self, name: str, given: Mapping[str | Attribute, Any] | None = None) -> torch.Tensor:
        """A copy of a parameter array's values, (W, n, …), SI; `parameter(name)[0]` starts a shared one.

        Args:
            name: Of the array.
            given: As the `parameters=` of a rollout: the values that rollout has, in torch's graph where they depend on
                a tensor that requires a gradient. None: the values in force.
        """
        self._engine.check_parameter(name)
        used = self.replaced(given).parameters
        copied = to_torch(wp.clone(used.values[name]))
        return used.tensors[name].expand_as(copied) if name in used.tensors else copied

    def set_parameters(self, parameters: Mapping[str | Attribute, Any] | None) -> None:
        """Puts values in force for all steps and rollouts that follow; None: the scene's own.

        What attributes give the initial state counts from the next reset or rollout on.

        Args:
            parameters: Arrays by name, (n, …) for all worlds alike or (W, n, …), SI; and USD attributes by handle or
                "/prim.attribute", of the attribute's shape or (W, …), in USD units. Tensors that require a gradient
                get one from every later step and rollout.
        """
        self.current = self.input.replaced(self.input.own(), parameters)

    def take_from(self, other: ParametersInForce) -> None:
        """Puts the values in force in world 0 of another simulator of the same scene in force in all worlds here."""
        if other.current is self._taken:
            return
        values = other.current.parameters.values
        self.set_parameters({name: to_torch(values[name])[0] for name in other.changed})
        self._taken = other.current

    def draw(self, distributions: Mapping[str | Attribute, Randomization], *, seed: int) -> dict[str | Attribute, Any]:
        """Values that differ from world to world, for `parameters=` and `start=`.

        World k's numbers depend on the seed, the name and k alone. Values carry gradients to their base values.

        Args:
            distributions: By parameter array, USD attribute (handle or "/prim.attribute"), or part of the initial
                state: "q" (moved along its dofs), "qd", "activation", "matter.field". A base that is not given is the
                scene's own value, whatever is in force.
            seed: Another one gives other numbers.

        Returns:
            Under the same keys, values of all worlds, (W, …) each.
        """
        draws = Draws(self._engine.compiled, self._initial, self._engine.defaults)
        return {
            key: draws.attribute(self.attribute(key) if isinstance(key, str) else key, given, seed)
            if isinstance(key, Attribute) or key.startswith("/")
            else draws.named(key, given, seed)
            for key, given in distributions.items()
        }


def timestep_of(used: InForce) -> float:
    """Seconds per step, of world 0."""
    return float(used.parameters.values["world.timestep"].numpy()[0])
