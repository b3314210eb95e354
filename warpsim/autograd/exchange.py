"""Torch tensors and Warp arrays over the same memory, and the CUDA rules that makes safe.

Everything about devices and streams is here:

- Warp launches on torch's current stream while `on_torch_stream` is open, so kernels and torch operations are ordered
  without synchronization; on the CPU both run in the caller's thread and nothing is needed.
- A tensor that Warp is still reading must not be freed and reused by torch's allocator: since both use one stream, the
  allocator's own rule (reuse is ordered on the stream of allocation) covers it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import numpy as np
import torch
import warp as wp

from warpsim.autograd.entry import ordinary_tensors, refuse_batched, refuse_tangents
from warpsim.core.errors import InputError
from warpsim.core.host_path import on_host
from warpsim.core.kernel_lock import KERNELS
from warpsim.core.precision import PRECISION
from warpsim.tape.frames import Block
from warpsim.tape.program import Field

torch_real: torch.dtype = torch.float64 if PRECISION == "float64" else torch.float32
"""The torch type of `real`."""


def torch_device(device: wp.Device) -> torch.device:
    """The torch device on which a Warp device's arrays live."""
    return torch.device(wp.device_to_torch(device))


@contextmanager
def on_torch_stream(device: wp.Device) -> Iterator[None]:
    """While open, Warp launches on torch's current stream of this device, and for this thread alone."""
    with KERNELS:
        if not device.is_cuda:
            yield
            return
        with torch.cuda.device(torch_device(device)):
            stream = wp.stream_from_torch(torch.cuda.current_stream())
            with wp.ScopedStream(stream, sync_enter=False, sync_exit=False):
                yield


def element_shape(dtype: Any) -> tuple[int, ...]:
    """Trailing axes that a Warp element type adds to a tensor: () for a scalar, (6,) for a 6-vector."""
    return tuple(getattr(dtype, "_shape_", ()))


def tensor_shape(field: Field) -> tuple[int, ...]:
    """Shape of one step's value of a field as a tensor."""
    return (*field.shape, *element_shape(field.dtype))


def scalar_dtype(dtype: Any) -> torch.dtype:
    """Torch type of the components of a Warp element type."""
    return wp.dtype_to_torch(getattr(dtype, "_wp_scalar_type_", dtype))


def zeros(field: Field, device: torch.device) -> torch.Tensor:
    """A zero value of a field."""
    return torch.zeros(tensor_shape(field), dtype=scalar_dtype(field.dtype), device=device)


def to_torch(array: wp.array) -> torch.Tensor:
    """A tensor over the array's memory, without a gradient."""
    if array.size == 0:  # Warp keeps no pointer for it
        return torch.empty(
            (*array.shape, *element_shape(array.dtype)),
            dtype=scalar_dtype(array.dtype),
            device=torch_device(array.device),
        )
    return wp.to_torch(array, requires_grad=False)


def to_warp(tensor: torch.Tensor, dtype: Any) -> wp.array:
    """An array over a contiguous tensor's memory, without a gradient.

    Args:
        tensor: Contiguous, of the scalar type of `dtype`; its last axes are the components of `dtype`.
        dtype: Warp element type.
    """
    tensor = tensor.detach()
    if tensor.numel() == 0:
        shape = tensor.shape[: tensor.ndim - len(element_shape(dtype))]
        return wp.empty(tuple(shape), dtype=dtype, device=wp.device_from_torch(tensor.device))
    return wp.from_torch(tensor, dtype=dtype, requires_grad=False)


def block_over(tensor: torch.Tensor, dtype: Any) -> Block:
    """Frames of a tape over a contiguous tensor's memory; arguments as in `to_warp`, axis 0 counts the frames.

    On the CPU this goes through NumPy, in a tenth of the time that Warp takes to make an array.
    """
    if on_host(wp.device_from_torch(tensor.device)):
        return Block.over(tensor.detach().numpy(), dtype)
    return Block(to_warp(tensor, dtype))


def tape_value(tensor: torch.Tensor, dtype: Any) -> Any:
    """The memory of a contiguous tensor as a tape takes it fastest: NumPy's on the CPU, else Warp's."""
    return tensor.detach().numpy() if on_host(wp.device_from_torch(tensor.device)) else to_warp(tensor, dtype)


def tensor_over(block: Block) -> torch.Tensor:
    """A tensor over the frames of a block, without a gradient."""
    return torch.from_numpy(block.host) if block.host is not None else to_torch(block.array)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Marks the backward pass of a node that has no second derivative.

    Torch's own decorator raises when the second derivative is taken by `backward()`; to `torch.autograd.grad`, and so
    to `torch.autograd.functional.hessian`, it answers zero. Here whoever asks for a graph of the gradient is told, and
    whoever asks for many gradients at once.
    """

    @wraps(backward)
    def once(ctx: Any, *adjoints: torch.Tensor | None) -> Any:
        if torch.is_grad_enabled():  # only with create_graph=True
            raise InputError(
                "simulated motion can be differentiated once; create_graph=True asks for second derivatives. Take "
                "differences of gradients, or `sim.jacobians` for Gauss–Newton methods"
            )
        refuse_batched(adjoints)
        with ordinary_tensors():
            return backward(ctx, *adjoints)

    return once


def as_real_tensor(what: str, value: Any, device: torch.device, dtype: torch.dtype = torch_real) -> torch.Tensor:
    """The caller's numbers as a tensor on the simulator's device.

    Nothing is copied when type and device fit. Floating-point tensors of another precision are cast (gradients come
    back in the caller's precision); NumPy arrays and Python numbers are taken over.

    Args:
        what: Named in errors, e.g. "control 'actuator'".
        value: Tensor, array or numbers.
        device: Where the simulator lives.
        dtype: Of the tensor.
    """
    given = isinstance(value, torch.Tensor)
    tensor = value if given else _as_tensor(what, value, device, dtype)
    if tensor.device != device:
        raise InputError(f"{what} is on {tensor.device}, the simulator on {device}; move it with .to({str(device)!r})")
    if given and not tensor.is_floating_point():
        raise InputError(f"{what} has dtype {tensor.dtype}; give floating-point numbers, best {dtype}")
    refuse_tangents(what, (tensor,))
    if tensor.is_inference():  # torch would not let it into a graph
        tensor = tensor.clone()
    return tensor.to(dtype)


def _as_tensor(what: str, value: Any, device: torch.device, dtype: torch.dtype) -> torch.Tensor:
    """What is no tensor as one; by its own rule torch would round Python's numbers to float32."""
    try:
        if np.iscomplexobj(value):
            raise InputError(f"{what} holds complex numbers; give real ones")
        return torch.as_tensor(value, dtype=dtype, device=device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{what} cannot be read as a tensor: {error}") from error
