"""Names of a matter's fields among those of a whole scene: "net.x" is field x of the matter called net."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import warp as wp

from warpsim.matter.matter import Matter
from warpsim.tape.program import Arrays, Field


def scene_name(matter: Matter, field: str) -> str:
    """What a field of a matter is called outside."""
    return f"{matter.name}.{field}"


def scene_fields(matter: Matter, fields: Sequence[Field]) -> tuple[Field, ...]:
    """Fields of a matter as others see them."""
    return tuple(replace(f, name=scene_name(matter, f.name)) for f in fields)


def own_arrays(matter: Matter, kind: str, fields: Sequence[Field], arrays: Mapping[str, wp.array]) -> Arrays:
    """Arrays of a scene that are a matter's, by its own names; those that are not there are left out."""
    names = {f.name: scene_name(matter, f.name) for f in fields}
    found = {own: arrays[name] for own, name in names.items() if name in arrays}
    return Arrays(f"{kind} of {matter.name}", found)
