"""Which inputs a rollout varies, and how one tensor or a mapping of tensors becomes them.

One rule: a tensor (steps, worlds, size) is the concatenation of the selected controls in the order selected, each with
its own axes flattened; a mapping gives each control by name with its own axes. The world axis may be left out where all
worlds are given the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from warpsim.autograd.exchange import as_real_tensor, torch_device
from warpsim.core.errors import InputError, whole_number
from warpsim.coupling.compiled import CompiledScene
from warpsim.sim.control_names import ControlNames

Controls = torch.Tensor | Mapping[str, Any]
"""One tensor for all selected controls, or tensors by control name."""


class ControlLayout(ControlNames):
    """The selected controls of a simulator, and tensors that hold them."""

    def __init__(self, compiled: CompiledScene, names: Sequence[str]) -> None:
        super().__init__(compiled, names)
        self._device = torch_device(compiled.device)

    def split(self, controls: Controls, steps: int | None) -> dict[str, torch.Tensor]:
        """Tensors by control, (steps, worlds, *shape) each and contiguous; differentiable.

        Args:
            controls: As the caller gave them.
            steps: Number of steps; None for one step without that axis.
        """
        lead = () if steps is None else (steps,)
        if isinstance(controls, Mapping):
            for name in controls:
                self.slice(name)
            return {
                name: self._complete(f"control {name!r}", value, lead, self.shapes[name]).contiguous()
                for name, value in controls.items()
            }
        whole = self._complete("controls", controls, lead, (self.size,))
        if len(self.names) == 1:  # read in place where the caller's layout allows
            return {self.names[0]: whole.reshape(*lead, self.worlds, *self.shapes[self.names[0]]).contiguous()}
        return {
            name: whole[..., self.slice(name)].reshape(*lead, self.worlds, *self.shapes[name]).contiguous()
            for name in self.names
        }

    def whole(self, controls: Any) -> torch.Tensor:
        """One step's control as one tensor, (W, size)."""
        return self._complete("the policy's control", controls, (), (self.size,))

    def _complete(self, what: str, value: Any, lead: tuple[int, ...], shape: tuple[int, ...]) -> torch.Tensor:
        """Checks a shape and puts the world axis in where it is missing."""
        tensor = as_real_tensor(what, value, self._device)
        full = (*lead, self.worlds, *shape)
        if tensor.shape == full:
            return tensor
        if tensor.shape == (*lead, *shape):
            return tensor.unsqueeze(len(lead)).expand(full)
        axes = "(steps, worlds, …)" if lead else "(worlds, …)"
        raise InputError(
            f"{what} has shape {tuple(tensor.shape)}; needed: {full} = {axes}, or {(*lead, *shape)} for all worlds "
            "alike"
        )


def given_steps(controls: Controls | None, steps: int | None) -> int:
    """The number of steps, from the argument or from the controls' first axis."""
    if steps is not None:
        if isinstance(steps, (torch.Tensor, Mapping)):
            raise InputError("steps was given the controls; write controls=…")
        return whole_number("steps", steps)
    if controls is None:
        raise InputError("how long? give steps= or controls=")
    first = next(iter(controls.values()), None) if isinstance(controls, Mapping) else controls
    shape = getattr(first, "shape", None) if first is not None else ()
    if shape is None:  # nested lists
        shape = as_real_tensor("controls", first, torch.device("cpu")).shape
    if not shape:
        raise InputError("the controls have no step axis; give steps=, or tensors whose first axis is the step")
    return whole_number("the number of steps in controls", int(shape[0]))
