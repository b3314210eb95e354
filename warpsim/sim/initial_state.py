"""States as tensors: the scene's own, given ones, perturbed ones, and those of some worlds put among others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from warpsim.autograd.exchange import as_real_tensor, scalar_dtype, tensor_shape, torch_device
from warpsim.core.errors import InputError, unknown_name
from warpsim.core.precision import numpy_real
from warpsim.coupling.compiled import CompiledScene
from warpsim.sim.start import Start

StateTensors = dict[str, torch.Tensor]
"""All state fields of a scene, (W, …) each."""


class InitialState:
    """Makes the states from which a simulator starts.

    Attributes:
        fields: Of the state, by name.
        dtypes: Warp element type of each state field.
        differentiable: Fields that carry gradients; the others (a solver's warm start) are only handed from step to
            step.
    """

    def __init__(self, compiled: CompiledScene) -> None:
        fields = compiled.state
        self._worlds = compiled.worlds
        self._device = torch_device(compiled.device)
        self.fields = {f.name: f for f in fields}
        self.dtypes = {f.name: f.dtype for f in fields}
        self.differentiable = tuple(f.name for f in fields if f.differentiable)
        self._shapes = {f.name: tensor_shape(f) for f in fields}
        self._scene = compiled.initial

    def state(self, base: Mapping[str, torch.Tensor] | None = None, **given: Any) -> StateTensors:
        """A state: fields that are given (not None), else those of `base`, else the scene's, else zero.

        Args:
            base: All state fields, maybe among others; when a field is given, those that carry no gradient start from
                zero instead.
            **given: By field: (n, …) for all worlds alike, or (W, n, …).
        """
        given = {name: value for name, value in given.items() if value is not None}
        state = {}
        for name, shape in self._shapes.items():
            if name in given:
                state[name] = self._read(name, given[name], shape)
            elif base is not None and (name in self.differentiable or not given):
                state[name] = base[name]
            else:
                state[name] = self._default(name, shape)
        for name in given:
            if name == "activation" and name not in self._shapes:
                raise InputError(f"{name} was given, but no actuator of this scene has an activation; leave it out")
            if name not in self._shapes:
                raise unknown_name("field of the state", name, self.differentiable)
        return state

    def begin(self, start: Start, otherwise: Mapping[str, Any] | None = None) -> StateTensors:
        """The state that a motion starts from.

        Args:
            start: What the caller wants; a field that carries no gradient is refused.
            otherwise: Fields that count where `start` gives neither them nor a state.
        """
        for name in start.fields:
            if name not in self.differentiable and name != "activation":
                raise unknown_name("field of the state", name, self.differentiable)
        given = start.fields if start.state is not None else {**(otherwise or {}), **start.fields}
        made = self.state(base=start.state, **given)
        return self.perturb(made, start) if start.noisy else made

    def perturb(self, state: StateTensors, start: Start) -> StateTensors:
        """A state moved along normal numbers of the start's standard deviations, from one generator per world."""
        if "q" not in self.fields:
            raise InputError("no body of this scene can move: there is nothing that noise could perturb")
        seed = 0 if start.seed is None else start.seed  # a noisy start has one
        nv, manifold = self.fields["q"].tangent_size, self.fields["q"].manifold
        draws = np.stack([np.random.default_rng([seed, w]).normal(size=(2, nv)) for w in range(self._worlds)])
        noise = torch.as_tensor(draws.astype(numpy_real), device=self._device)
        moved = manifold.shift(state["q"], start.position_noise * noise[:, 0])
        return {**state, "q": moved, "qd": state["qd"] + start.velocity_noise * noise[:, 1]}

    def check_finite(self, state: StateTensors, worlds: Any) -> None:
        """Refuses what no motion can start from.

        Args:
            state: All fields.
            worlds: Which of its worlds count, as in `merge`; None: all.

        Raises:
            InputError: Names the field and the first world.
        """
        for name in self.differentiable:
            sound = torch.isfinite(state[name].detach()).reshape(self._worlds, -1).all(1)
            if worlds is not None:
                sound = self.merge(worlds, {name: sound}, {name: torch.ones_like(sound)})[name]
            if not bool(sound.all()):
                raise InputError(f"{name} of world {int((~sound).nonzero()[0])} is not finite; nothing was reset")

    def merge(self, worlds: Any, fresh: StateTensors, old: StateTensors) -> StateTensors:
        """`fresh` in the given worlds (a mask or indices), `old` in the others."""
        count = self._worlds
        chosen = torch.as_tensor(worlds, device=self._device)
        if chosen.dtype != torch.bool:
            if chosen.ndim != 1 or (chosen.numel() and not (0 <= int(chosen.min()) and int(chosen.max()) < count)):
                raise InputError(f"worlds={worlds!r}; give a mask of {count} or indices within 0 … {count - 1}")
            chosen = torch.zeros(count, dtype=torch.bool, device=self._device).index_fill(0, chosen.long(), True)
        if chosen.shape != (count,):
            raise InputError(f"the mask of worlds has shape {tuple(chosen.shape)}; needed: ({count},)")
        return {
            name: torch.where(chosen.reshape(-1, *[1] * (value.ndim - 1)), value, old[name])
            for name, value in fresh.items()
        }

    def _read(self, name: str, value: Any, shape: tuple[int, ...]) -> torch.Tensor:
        tensor = as_real_tensor(name, value, self._device)
        if tensor.shape not in (shape, shape[1:]):
            raise InputError(
                f"{name} has shape {tuple(tensor.shape)}; needed: {shape} (worlds first) or {shape[1:]} for all worlds "
                "alike"
            )
        # a copy: the state must not change with the caller's tensor
        return tensor.expand(shape).clone(memory_format=torch.contiguous_format)

    def _default(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        if name not in self._scene:
            return torch.zeros(shape, dtype=scalar_dtype(self.dtypes[name]), device=self._device)
        value = torch.as_tensor(self._scene[name].astype(numpy_real), device=self._device)
        return value.expand(shape).contiguous()
