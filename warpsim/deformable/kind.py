"""`DeformableKind`: cloth, soft bodies and cables as a kind of matter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from warpsim.core.registry import provided
from warpsim.deformable.usd_reader import read_deformable
from warpsim.deformable.usd_writer import write_deformable
from warpsim.io.usd.ledger_scan import applied_apis
from warpsim.scene.matters import BUILT_IN, MatterDescription, MatterKind
from warpsim.view.items.item import Look
from warpsim.view.page.content import CurveDrawable, SurfaceDrawable


class DeformableKind(MatterKind):
    """Prims with one of the deformable simulation schemas."""

    name = "deformable"

    def claims(self, prim: Any) -> bool:
        """Any prim with one of the schemas; the reader says what is wrong with a prim that cannot have it."""
        return not BUILT_IN[self.name].isdisjoint(applied_apis(prim))

    def read(self, prim: Any, context: Any) -> MatterDescription:
        """SI numbers, points in the world."""
        return read_deformable(prim, context, self.name)

    def write(self, description: MatterDescription, stage: Any, made: Mapping[tuple[str, str], Any]) -> bool:
        """Geometry, material and attachments under the default prim."""
        return write_deformable(description, stage, made)

    def compile(self, description: MatterDescription, context: Any) -> Any:
        """Kernels and arrays."""
        return provided("deformable.compile")(description, context)

    def drawables(self, description: MatterDescription) -> list[Any]:
        """Its surface, or its curves."""
        data, path = description.data, description.path or f"/{description.name}"
        if data["form"] == "curve":
            width = 2.0 * float(description.parameters["radius"])
            return [CurveDrawable(path, data["counts"], data["color"], width)]
        return [SurfaceDrawable(path, data["faces"], data["color"], Look())]

    def points(self, description: MatterDescription, states: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Its points, frame by frame."""
        return {description.path or f"/{description.name}": states["x"]}

    def places(self, description: MatterDescription) -> dict[str, tuple[str, int]]:
        """Points that child prims name, and the center of mass."""
        named = {name: ("x", point) for name, point in description.data["places"].items()}
        return {"Center": ("center", 0), **named}
