"""The precision in which a policy computes: that of the weights it uses."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from warpsim.autograd.exchange import torch_real

_DEPTH = 3
"""How far from the policy a module may be: in a function that a method's object holds, say."""


def precision_of(policy: Callable[..., Any]) -> torch.dtype:
    """The type of the weights of a module, or of the modules that a function names; else that of the simulator."""
    types = {p.dtype for module in _modules(policy, _DEPTH) for p in module.parameters() if p.is_floating_point()}
    return types.pop() if len(types) == 1 else torch_real


def _modules(value: Any, depth: int) -> Iterator[torch.nn.Module]:
    if isinstance(value, torch.nn.Module):
        yield value
        return
    if depth == 0:
        return
    for part in _parts(value):
        yield from _modules(part, depth - 1)


def _parts(value: Any) -> list[Any]:
    """What a callable works with, as far as it can be seen."""
    if isinstance(value, partial):
        return [value.func, *value.args, *value.keywords.values()]
    if inspect.ismethod(value):
        return [value.__self__, *getattr(value.__self__, "__dict__", {}).values()]
    if inspect.isfunction(value):
        used = inspect.getclosurevars(value)
        return [*used.nonlocals.values(), *used.globals.values()]
    if callable(value) and not isinstance(value, type):
        return list(getattr(value, "__dict__", {}).values())
    return []
