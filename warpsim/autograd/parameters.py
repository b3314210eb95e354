"""Parameter tensors: checked, turned into values a rollout owns, their gradients reduced where worlds share them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import warp as wp

from warpsim.autograd.exchange import as_real_tensor, element_shape, to_torch, to_warp, torch_device
from warpsim.core.errors import InputError
from warpsim.core.precision import real
from warpsim.engine.engine import Engine, ParameterValues


@wp.kernel(enable_backward=False)
def _sum_worlds_kernel(values: wp.array2d(dtype=real), total: wp.array(dtype=real)):
    """Adds worlds in their order, whatever the number of threads: the same bits everywhere."""
    i = wp.tid()
    s = real(0.0)
    for w in range(values.shape[0]):
        s += values[w, i]
    total[i] = s


def sum_worlds(values: torch.Tensor) -> torch.Tensor:
    """Sum over axis 0 in world order: the gradient of a value that all worlds share."""
    total = torch.empty_like(values[0])
    flat = to_warp(values.reshape(len(values), -1).contiguous(), real)
    wp.launch(
        _sum_worlds_kernel,
        dim=flat.shape[1],
        inputs=[flat],
        outputs=[to_warp(total.view(-1), real)],
        device=flat.device,
        record_tape=False,
    )
    return total


@dataclass(frozen=True)
class Parameters:
    """Parameter values in force, and the tensors among them that torch may differentiate by.

    Attributes:
        values: All authored values, (W, n, …) each, never written again.
        tensors: Those that a caller gave, contiguous and of `real`: (n, …) shared by all worlds, or (W, n, …).
    """

    values: ParameterValues
    tensors: Mapping[str, torch.Tensor] = field(default_factory=dict)

    def replaced(self, engine: Engine, given: Mapping[str, Any]) -> Parameters:
        """These parameters with some given anew; the values are copied, so that whoever holds them owns them.

        Raises:
            RangeError: A value is one that nothing can be simulated with.
        """
        values, tensors = dict(self.values), dict(self.tensors)
        for name, value in given.items():
            array = engine.check_parameter(name)
            tensor = as_real_tensor(f"parameter {name!r}", value, torch_device(engine.model.device)).contiguous()
            full = (*array.shape, *element_shape(array.dtype))
            if tensor.shape not in (full, full[1:]):
                raise InputError(
                    f"parameter {name!r} has shape {tuple(tensor.shape)}; needed: {full[1:]} for all worlds alike, or "
                    f"{full}, worlds first"
                )
            numbers = tensor.detach().cpu().numpy()
            rows = numbers if tensor.shape == full else numbers[None]
            engine.compiled.check_values(name, rows)
            tensors[name] = tensor
            copied = tensor.detach().expand(full).clone(memory_format=torch.contiguous_format)
            values[name] = to_warp(copied, array.dtype)
        return Parameters(values, tensors)

    def prepare(self, engine: Engine) -> None:
        """Lets the engine carry gradients of those tensors that require them."""
        if torch.is_grad_enabled():
            engine.require_gradients(name for name, tensor in self.tensors.items() if tensor.requires_grad)


def parameter_gradients(engine: Engine, shapes: Mapping[str, torch.Size]) -> dict[str, torch.Tensor]:
    """Gradients of authored parameters after a backward pass, summed over worlds where the value was shared.

    Args:
        engine: Whose physical parameters hold gradients; they are consumed.
        shapes: By name, the shape the caller gave the value in.
    """
    found = {}
    for name, array in engine.parameter_gradients(shapes).items():
        gradient = to_torch(array)
        found[name] = gradient if gradient.shape == shapes[name] else sum_worlds(gradient)
    return found
