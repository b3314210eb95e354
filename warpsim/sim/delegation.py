"""Methods of a simulator's parts as the simulator's own."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from warpsim.autograd.entry import in_turn

C = TypeVar("C")
P = ParamSpec("P")
T = TypeVar("T")


def delegated(part: str, method: Callable[Concatenate[C, P], T]) -> Callable[Concatenate[Any, P], T]:
    """The method of one of the owner's parts, called in the turn of the owner's engine.

    Args:
        part: Attribute of the owner that holds the part.
        method: Of the part's class.
    """

    @wraps(method)
    def passed_on(self: Any, *arguments: P.args, **named: P.kwargs) -> T:
        return method(getattr(self, part), *arguments, **named)

    return in_turn(passed_on)
