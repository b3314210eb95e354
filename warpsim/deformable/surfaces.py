"""Distance fields of the meshes and hulls that a deformable touches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import warp as wp

from warpsim.collision.geometry import build_geometry
from warpsim.deformable.contact import Surfaces
from warpsim.matter.matter import CompileContext
from warpsim.scene.description import MESH_KINDS


def surfaces_of(context: CompileContext, shapes: Sequence[str]) -> Surfaces:
    """Fields of those shapes that have one.

    Args:
        context: Where the scene is.
        shapes: Names, in the order of the obstacles.

    Raises:
        SceneError: A mesh has no inside; names it.
    """
    index = [context.shape(name) for name in shapes]
    wanted = [i for i in index if context.scene.shapes[i].kind in MESH_KINDS]
    geometry = build_geometry(context.scene, context.device, shapes=wanted)
    out = Surfaces()
    out.index = wp.array(np.array(index, np.int32), dtype=wp.int32, device=context.device)
    out.hulls, out.grids = geometry.hulls, geometry.grids
    return out
