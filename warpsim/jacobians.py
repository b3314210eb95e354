"""State-transition and control Jacobians of single steps, by batched vector-Jacobian products.

One step is copied into as many worlds as the state's tangent space has dimensions; world i gets the i-th unit covector
of the next state as seed. So one backward pass gives all rows of A and B at once, exact to rounding, contacts included.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch

from warpsim.engine import Engine, ParameterValues
from warpsim.initial import InitialState
from warpsim.scene import Scene
from warpsim.tangent import basis, projection
from warpsim.torch_exchange import on_torch_stream, to_torch, to_warp
from warpsim.torch_step import StepSlots

_WORLDS = 256
"""About how many copies are stepped at a time: enough to hide the cost of a call, few enough to stay in the cache."""


class Linearisation(NamedTuple):
    """x′ = f(x, u) to first order, x = (δq, qd, activation) in MuJoCo's tangent space: n = 2·nv + na.

    Attributes:
        A: (…, n, n): ∂x′/∂x.
        B: (…, n, control size): ∂x′/∂u.
    """

    A: torch.Tensor
    B: torch.Tensor


class Lineariser:
    """Linearises steps of a scene; keeps a model with as many worlds as it needs."""

    def __init__(self, scene: Scene, like: Engine, controls: tuple[str, ...]) -> None:
        """Compiles.

        Args:
            scene: What is stepped.
            like: The simulator's engine, for device and default parameters.
            controls: Controls in the order of the columns of B.
        """
        model = like.model
        self._dimension = 2 * model.nv + model.na
        self._steps = max(1, _WORLDS // self._dimension)
        self._like = like
        self._engine = Engine(scene, worlds=self._steps * self._dimension, device=model.device)
        self._slot = StepSlots(self._engine.step_segment(controls, ()))
        self._controls = controls
        self._rest = InitialState(self._engine.model).state()

    def run(
        self, state: Mapping[str, torch.Tensor], controls: Mapping[str, torch.Tensor], values: ParameterValues
    ) -> Linearisation:
        """Linearises steps from given states.

        Args:
            state: `q`, `qd` and, if there are any, `activation`: (steps, W, …) each, unit quaternions.
            controls: By name, (steps, W, …) each; those left out are at their defaults.
            values: Parameters in force, (W, n, …) each.
        """
        lead = state["q"].shape[:2]
        given = {name: tensor.detach().flatten(0, 1) for name, tensor in (*state.items(), *controls.items())}
        total, parts = lead.numel(), []
        for first in range(0, total, self._steps):
            chosen = torch.arange(first, first + self._steps).clamp(
                max=total - 1
            )  # the last part repeats its last step
            with on_torch_stream(self._engine.model.device):
                self._load(values, chosen % lead[1])
                parts.append(self._linearise({name: tensor[chosen] for name, tensor in given.items()}, tuple(state)))
        joined = (torch.cat(blocks)[:total].unflatten(0, lead) for blocks in zip(*parts, strict=True))
        return Linearisation(*joined)

    def _load(self, values: ParameterValues, worlds: torch.Tensor) -> None:
        """Gives each copy the parameters of the world it is a copy of."""
        if values is self._like.defaults:
            self._engine.load(self._engine.defaults)
            return
        rows = worlds.repeat_interleave(self._dimension)
        loaded = dict(self._engine.defaults)
        for name, value in values.items():
            if value is not self._like.defaults[name]:
                loaded[name] = to_warp(to_torch(value)[rows].contiguous(), value.dtype)
        self._engine.load(loaded)

    def _linearise(self, given: dict[str, torch.Tensor], fields: tuple[str, ...]) -> tuple[torch.Tensor, torch.Tensor]:
        n, nv, layout = self._dimension, self._engine.model.nv, self._engine.model.layout
        copies = {name: tensor.repeat_interleave(n, 0) for name, tensor in given.items()}
        self._slot.forward({**self._rest, **copies}, recorded=True)
        (reached,) = self._slot.reached(("q",), ())
        seeds = {name: torch.zeros_like(copies[name]).unflatten(0, (-1, n)) for name in fields}
        seeds["q"][:, :nv] = projection(layout, reached[::n])
        first = nv
        for name in fields[1:]:
            width = seeds[name].shape[-1]
            seeds[name][:, first : first + width] = torch.eye(width, dtype=reached.dtype, device=reached.device)
            first += width
        pulled = self._slot.backward({name: seed.flatten(0, 1) for name, seed in seeds.items()})
        rows = {name: pulled[name].unflatten(0, (-1, n)) for name in (*fields, *self._controls)}
        rows["q"] = rows["q"] @ basis(layout, given["q"])
        a = torch.cat([rows[name] for name in fields], -1)
        b = [rows[name].flatten(2) for name in self._controls]
        return a, torch.cat(b, -1)
