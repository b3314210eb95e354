"""What our schemas define, read from the file USD loads: names, types, fallbacks and allowed tokens of properties.

Read from the file and not asked of USD's registry, which knows nothing of schemas that were registered after the first
stage was opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pxr import Sdf

from warpsim.io.usd.schema import FOLDER

PREFIX = "Warpsim"


@dataclass(frozen=True)
class Property:
    """An attribute or relationship of a schema.

    Attributes:
        name: Its name.
        kind: Its type; None for a relationship.
        fallback: Its value where none is authored; None: it has none.
        allowed: Tokens it may be; empty: any.
        uniform: Whether it may not have time samples.
    """

    name: str
    kind: Sdf.ValueTypeName | None
    fallback: Any
    allowed: tuple[str, ...]
    uniform: bool


@cache
def definitions() -> Mapping[str, Mapping[str, Property]]:
    """Type → its properties by name, of all types that prims can have."""
    layer = Sdf.Layer.FindOrOpen(str(FOLDER / "generatedSchema.usda"))
    return {
        prim.name: {spec.name: _property(spec) for spec in prim.properties} for prim in layer.rootPrims if prim.typeName
    }


def _property(spec: Sdf.PropertySpec) -> Property:
    if isinstance(spec, Sdf.RelationshipSpec):
        return Property(spec.name, None, None, (), True)
    allowed = tuple(str(token) for token in spec.allowedTokens or ())
    return Property(spec.name, spec.typeName, spec.default, allowed, spec.variability == Sdf.VariabilityUniform)
