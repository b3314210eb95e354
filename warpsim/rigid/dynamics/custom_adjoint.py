"""For passes whose adjoint is written by hand."""

from __future__ import annotations

import inspect
from typing import Any

import warp as wp


def replays_nothing(forward: Any) -> None:
    """An adjoint finds everything where the forward pass has left it, so that is not made again before it.

    Args:
        forward: A Warp function, whose list of arguments the empty replay takes over.
    """

    def replay() -> None:
        """Nothing."""

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    names = [inspect.Parameter(name, kind) for name in forward.input_types]
    replay.__signature__ = inspect.Signature(names)  # type: ignore[attr-defined]
    replay.__annotations__ = dict(forward.input_types)
    wp.func_replay(forward)(replay)
