"""Which fields of a rollout its caller wants kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from warpsim.core.errors import unknown_name
from warpsim.tape.program import Field

Selection = bool | Sequence[str] | Mapping[str, Any]
"""All fields, none, those named, or those for which the caller gives an array (frames, worlds, …) to be filled."""


def names(selection: Selection) -> list[str]:
    """The fields a caller wants kept, as he said it."""
    return [str(selection)] if isinstance(selection, bool) else list(selection)


def select(kind: str, selection: Selection, fields: Iterable[Field]) -> list[Field]:
    """The fields a caller wants kept.

    Args:
        kind: "state" or "output", for errors.
        selection: What he said.
        fields: All there are.
    """
    fields = list(fields)
    if isinstance(selection, bool):
        return fields if selection else []
    known = [field.name for field in fields]
    for name in selection:
        if name not in known:
            raise unknown_name(kind, name, known)
    return [field for field in fields if field.name in selection]
