"""Looking things up by name: handles on bodies, joints, dofs, actuators and drives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpsim.core.errors import unknown_name


@dataclass(frozen=True)
class Handle:
    """A named thing and its place in the arrays that describe its kind."""

    name: str
    index: int


def find(kind: str, name: str, known: Sequence[str]) -> Handle:
    """The handle of a name, or an error that offers the nearest ones."""
    if name not in known:
        raise unknown_name(kind, name, [n for n in known if n])
    return Handle(name, known.index(name))
