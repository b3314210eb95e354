"""Drawing parameters and initial states of all worlds from distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from warpsim.autograd.exchange import as_real_tensor, element_shape, to_torch, torch_device, torch_real
from warpsim.core.errors import InputError, unknown_name
from warpsim.coupling.compiled import CompiledScene
from warpsim.sim.attributes.attribute import Attribute
from warpsim.sim.initial_state import InitialState
from warpsim.sim.randomization import Randomization
from warpsim.tape.manifold import EUCLIDEAN

_POSITIVE = (".mass", ".density", ".inertia", ".size", ".timestep")
"""Ends of the names of arrays whose values must stay above 0."""


class Draws:
    """Values of a scene's parameters and initial states that differ from world to world."""

    def __init__(self, compiled: CompiledScene, initial: InitialState, defaults: Any) -> None:
        """Remembers what values are drawn about where no base is given.

        Args:
            compiled: Whose worlds they are for.
            initial: Its initial states.
            defaults: The scene's own parameter arrays, (W, n, …) by name.
        """
        self._worlds = compiled.worlds
        self._states = ("q", "qd", "activation", *(n for n in initial.differentiable if "." in n))
        self._initial = initial
        self._defaults = defaults
        self._device = torch_device(compiled.device)

    def named(self, name: str, distribution: Randomization, seed: int) -> torch.Tensor:
        """A parameter array, or a part of the initial state."""
        if name in self._states:
            return self.state(name, distribution, seed)
        if name not in self._defaults:
            raise unknown_name("parameter or part of the initial state", name, (*self._states, *self._defaults))
        return self.array(name, distribution, seed)

    def attribute(self, handle: Attribute, distribution: Randomization, seed: int) -> torch.Tensor:
        """Values (W, …) of a USD attribute, in its own units, float64."""
        what = handle.path
        if "quat" in handle.type_name:
            raise InputError(f"{what} is a rotation, which a distribution would not keep of unit length; turn it in q")
        base = self._base(what, distribution, handle.value, handle.shape).to(torch.float64)
        lower, upper = (torch.as_tensor(b, device=self._device) for b in (handle.lower, handle.upper))
        return self._drawn(what, distribution, seed, base, handle.shape, lower, upper)

    def array(self, name: str, distribution: Randomization, seed: int) -> torch.Tensor:
        """Values (W, n, …) of a parameter array, SI."""
        array = self._defaults[name]
        if name.endswith("rotation"):
            raise InputError(f"{name} are rotations, which a distribution would not keep of unit length")
        shape = (*array.shape[1:], *element_shape(array.dtype))
        base = self._base(name, distribution, to_torch(array)[0].clone(), shape)
        lower = float(np.finfo(np.float64).tiny) if name.endswith(_POSITIVE) else -np.inf
        return self._drawn(name, distribution, seed, base, shape, torch.tensor(lower), torch.tensor(np.inf))

    def state(self, name: str, distribution: Randomization, seed: int) -> torch.Tensor:
        """A field of the initial state of all worlds."""
        base = self._initial.state(**({} if distribution.base is None else {name: distribution.base}))
        if name not in base:
            raise InputError(f"{name} was given, but no actuator of this scene has an activation; leave it out")
        value, field = base[name], self._initial.fields[name]
        if field.manifold is EUCLIDEAN:
            return distribution.values(value, self._numbers(name, distribution, seed, value.shape[1:]))
        if distribution.absolute is None:
            raise InputError(f"{name} is moved along its dofs; give absolute=, in m and rad")
        move = distribution.move(self._numbers(name, distribution, seed, (field.tangent_size,)))
        return field.manifold.shift(value.flatten(1), move).reshape(value.shape)

    def _base(self, what: str, distribution: Randomization, own: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
        if distribution.base is None:
            return own
        base = as_real_tensor(f"the base of {what}", distribution.base, self._device)
        if tuple(base.shape) not in (shape, (self._worlds, *shape)):
            raise InputError(
                f"the base of {what} has shape {tuple(base.shape)}; needed: {shape}, or {self._worlds} of them"
            )
        return base

    def _drawn(
        self,
        what: str,
        distribution: Randomization,
        seed: int,
        base: torch.Tensor,
        shape: tuple[int, ...],
        lower: torch.Tensor,
        upper: torch.Tensor,
    ) -> torch.Tensor:
        self._fits(what, distribution, shape)
        least, largest = distribution.extremes(base.detach())
        if (least < lower).any() or (largest > upper).any():
            raise InputError(
                f"{what} could be anything from {least.min():g} to {largest.max():g}, beyond what it may be; draw it "
                "with a smaller spread, or with relative= or factor=, which keep its sign"
            )
        return distribution.values(base, self._numbers(what, distribution, seed, shape).to(base.dtype))

    def _numbers(self, what: str, distribution: Randomization, seed: int, shape: tuple[int, ...]) -> torch.Tensor:
        self._fits(what, distribution, shape)
        drawn = distribution.numbers(what, seed, self._worlds, tuple(shape))
        return torch.as_tensor(drawn, dtype=torch_real, device=self._device)

    @staticmethod
    def _fits(what: str, distribution: Randomization, shape: tuple[int, ...]) -> None:
        size = np.shape(distribution.spread)
        if size not in ((), tuple(shape)):
            raise InputError(f"the spread of {what} has shape {size}; give one number, or shape {tuple(shape)}")
