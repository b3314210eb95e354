"""Tasks: what may vary on a stage and what is wanted of it, as prims of our own schemas (docs/tasks.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pxr import Sdf, Usd

from warpsim.core.errors import InputError, unknown_name
from warpsim.io.usd.author.attributes import fit_value
from warpsim.io.usd.author.stages import define
from warpsim.io.usd.schema.definitions import PREFIX, definitions


def task(parent: Usd.Prim, name: str = "Task", **properties: Any) -> Usd.Prim:
    """A WarpsimTask prim; `task_part` fills it.

    Args:
        parent: Prim it goes under.
        name: Of the prim.
        **properties: By the schema's names, e.g. `duration=0.4, iterations=50`.
    """
    return task_part(parent, "Task", name, **properties)


def task_part(parent: Usd.Prim, kind: str, name: str, **properties: Any) -> Usd.Prim:
    """A part of a task: a variable, a control, a term or a condition.

    Args:
        parent: The task.
        kind: Type without the prefix, e.g. "Variable", "Knots", "Reach", "StayAbove".
        name: Of the prim.
        **properties: By the schema's names, in stage units and degrees. Relationships take a prim, a path, or several.

    Raises:
        UnknownNameError: No such type or property.
        InputError: A value that does not fit its type.
    """
    known = definitions()
    if PREFIX + kind not in known:
        raise unknown_name("kind of task prim", kind, [stem.removeprefix(PREFIX) for stem in known])
    prim = define(parent, name, PREFIX + kind)
    for key, value in properties.items():
        if key not in known[PREFIX + kind]:
            raise unknown_name(f"property of {PREFIX}{kind}", key, known[PREFIX + kind])
        item = known[PREFIX + kind][key]
        if item.kind is None:
            prim.CreateRelationship(key, custom=False).SetTargets(_paths(value))
            continue
        if item.allowed and value not in item.allowed:
            raise InputError(f"{prim.GetPath()}.{key}: {value!r}; use one of {', '.join(item.allowed)}")
        variability = Sdf.VariabilityUniform if item.uniform else Sdf.VariabilityVarying
        prim.CreateAttribute(key, item.kind, False, variability).Set(fit_value(item.kind, value))
    return prim


def _paths(value: Any) -> list[Sdf.Path]:
    """Targets of a relationship: prims, attributes, or paths."""
    items = [value] if isinstance(value, str | Sdf.Path | Usd.Object) or not isinstance(value, Iterable) else value
    return [item.GetPath() if isinstance(item, Usd.Object) else Sdf.Path(str(item)) for item in items]
