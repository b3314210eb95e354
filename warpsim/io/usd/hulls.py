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
HULL_FACES = "warpsim:hullFaces"
"""int[] on a Mesh: the flat parts of its hull, for each the number of points and then the points."""
HULL_NORMALS = "warpsim:hullNormals"
"""double[] on a Mesh: the outward normals of these parts in the prim's frame, three numbers each."""
_LEAST = 4
_EVEN = 1e-9
"""Share by which the scales of three axes may differ and still be one."""


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


def choose_hull_faces(context: Context, prim: Usd.Prim, shape: Shape) -> None:
    """Sets `hull_faces` and `hull_normals` of the mesh of a shape of kind hull, where the prim names them.

    A prim that is mirrored, sheared or scaled other than uniformly has the faces of its hull as it is then; of others
    the shape has the axes, and so the normals.
    """
    faces, normals = context.read.array(prim, HULL_FACES), context.read.array(prim, HULL_NORMALS)
    frame = context.frame(prim)
    uneven = frame.mirrored or frame.sheared or np.ptp(frame.scale) > _EVEN * frame.scale.max()
    if faces is None or normals is None or uneven:
        return
    mesh = context.scene.meshes[str(shape.mesh)]
    if len(normals) % 3:
        raise SceneError(f"{prim.GetPath()}.{HULL_NORMALS}: give three numbers for each part of {HULL_FACES}")
    named = replace(mesh, hull_faces=faces.astype(np.int64), hull_normals=normals.reshape(-1, 3))
    context.scene.meshes[mesh.name] = named
