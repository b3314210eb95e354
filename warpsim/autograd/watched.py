"""Tensors that a caller gave once and that count for long: a change in place must not be taken for a new value."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import torch

from warpsim.tape.parameters import StaleInputError

Watched = Mapping[Hashable, tuple[torch.Tensor, int]]
"""Tensor and its version when it was given, by what it was given for."""


def watch(given: Mapping[Any, Any]) -> dict[Hashable, tuple[torch.Tensor, int]]:
    """Those values that torch differentiates by; an optimizer changes them in place. The others are plain copies."""
    return {
        key: (value, value._version)
        for key, value in given.items()
        if isinstance(value, torch.Tensor) and value.requires_grad
    }


def check_unchanged(watched: Watched, call: str, keys: Iterable[Hashable] | None = None) -> None:
    """Raises if one of the tensors was changed in place.

    Args:
        watched: From `watch`.
        call: What they were given to, and must be given to again.
        keys: Which of them; None: all.
    """
    for key in watched if keys is None else keys:
        if key in watched and watched[key][0]._version != watched[key][1]:
            name = getattr(key, "path", key)
            raise StaleInputError(
                f"{name!r} was changed in place (by an optimizer, perhaps) after it was given to {call}, which copied "
                f"its values; give it to {call} again, or to each rollout"
            )
