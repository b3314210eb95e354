"""Which vertices of a Mesh prim its convex hull is made of: those that a file names, or no more than a file allows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from pxr import Usd

from warpsim.core.errors import SceneError
from warpsim.geometry.quickhull import FlatPointsError, hull_triangles
from warpsim.io.usd.context import Context
from warpsim.io.usd.extensions import lookup
from warpsim.scene import Shape

HULL_VERTICES = "warpsim:hullVertices"
"""int[] on a Mesh: the points whose hull collides."""
_LEAST = 4


def choose_hull_vertices(context: Context, prim: Usd.Prim, shape: Shape) -> None:
    """Sets `hull_vertices` of the mesh of a shape of kind hull, where the prim says something of them.

    Raises:
        SceneError: There are no such points, or too few.
    """
    mesh = context.scene.meshes[str(shape.mesh)]
    named = context.read.array(prim, HULL_VERTICES)
    bound = lookup(context, prim, "hull_vertices")
    if named is not None:
        indices = named.astype(np.int64)
        if (
            len(indices) < _LEAST
            or (indices != named).any()
            or indices.min() < 0
            or indices.max() >= len(mesh.vertices)
        ):
            raise SceneError(
                f"{prim.GetPath()}.{HULL_VERTICES}: give {_LEAST} or more indices of its {len(mesh.vertices)} points"
            )
    elif bound is not None and bound.value >= 0:
        if bound.value < _LEAST:
            raise SceneError(f"{prim.GetPath()}.{bound.attribute} is {bound.value:g}; a hull needs {_LEAST} or more")
        try:
            indices = np.unique(hull_triangles(np.asarray(mesh.vertices, float), int(bound.value)))
        except FlatPointsError:
            return  # refused, with what to do, where the hull is built
        how = f"the hull of {len(indices)} points, the furthest ones first; another engine may choose others"
        context.ledger.used(prim, bound.attribute, how)
    else:
        return
    context.scene.meshes[mesh.name] = replace(mesh, hull_vertices=indices)
