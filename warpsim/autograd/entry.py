"""What every public call of a simulator passes on its way in: its turn, ordinary tensors, and torch as it can be used.

A rollout is a call of compiled kernels, one node of torch's graph. Transforms that work from within a function
(`torch.func`, `vmap`) cannot look into it and are refused; `torch.compile` leaves it out and calls it as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import torch
from torch.autograd import forward_ad

from warpsim.core.errors import InputError

P = ParamSpec("P")
T = TypeVar("T")

WHAT_WORKS = (
    "what works: `backward()`, `torch.autograd.grad`, `torch.autograd.functional.jacobian` without vectorize, "
    "`sim.jacobians` for A and B of every step, and `worlds=` to simulate many at once"
)
_NOT_COMPILED = "warpsim's kernels are compiled already: torch.compile calls them as they are, without fullgraph=True"


def in_turn(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """A method of something that has an `_engine`, called by one thread at a time, on ordinary tensors."""
    left_out: list[Callable[..., T]] = []

    @wraps(method)
    def alone(self: Any, *arguments: P.args, **named: P.kwargs) -> T:
        if torch.compiler.is_compiling():
            return _uncompiled(alone, left_out)(self, *arguments, **named)
        refuse_transforms()
        if torch.is_inference_mode_enabled():
            with ordinary_tensors():
                return alone(self, *arguments, **named)
        with self._engine.turn:
            return method(self, *arguments, **named)

    return alone


def not_compiled(function: Callable[P, T]) -> Callable[P, T]:
    """The same function, which `torch.compile` calls as it is, with everything that it calls."""
    left_out: list[Callable[..., T]] = []

    @wraps(function)
    def called(*arguments: P.args, **named: P.kwargs) -> T:
        if torch.compiler.is_compiling():
            return _uncompiled(called, left_out)(*arguments, **named)
        return function(*arguments, **named)

    return called


def _uncompiled(function: Callable[..., T], made: list[Callable[..., T]]) -> Callable[..., T]:
    """The function as `torch.compile` leaves it out; made when first needed, which loads torch's compiler."""
    if not made:
        made.append(torch.compiler.disable(function, reason=_NOT_COMPILED))
    return made[0]


def ordinary_tensors() -> AbstractContextManager[Any]:
    """While open, tensors that are made can be used outside `torch.inference_mode()`, too; gradients stay off in it."""
    if not torch.is_inference_mode_enabled():
        return nullcontext()
    stack = ExitStack()
    stack.enter_context(torch.inference_mode(False))
    stack.enter_context(torch.no_grad())
    return stack


def refuse_transforms() -> None:
    """Raises within `torch.func` and `vmap`."""
    if torch._C._are_functorch_transforms_active():
        raise InputError(f"torch.func and vmap cannot look into a simulation; {WHAT_WORKS}")


def refuse_batched(adjoints: Iterable[torch.Tensor | None]) -> None:
    """Raises if a backward pass was given many adjoints at once."""
    if torch._C._are_functorch_transforms_active() or any(
        a is not None and torch._C._functorch.is_legacy_batchedtensor(a) for a in adjoints
    ):
        raise InputError(
            "the backward pass of a simulation takes one adjoint at a time: call `torch.autograd.grad` in a loop, "
            f"without is_grads_batched and vectorize; {WHAT_WORKS}"
        )


def refuse_tangents(what: str, tensors: Iterable[torch.Tensor]) -> None:
    """Raises if one of the tensors carries a tangent of forward-mode differentiation."""
    if forward_ad._current_level < 0:
        return
    if any(forward_ad.unpack_dual(tensor).tangent is not None for tensor in tensors):
        raise InputError(f"{what} carries a tangent: a simulation is differentiated in reverse mode; {WHAT_WORKS}")


def recorded(tensors: Iterable[torch.Tensor]) -> bool:
    """Whether a call with these tensors belongs in torch's graph."""
    tensors = tuple(tensors)
    refuse_tangents("an input of the simulation", tensors)
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
