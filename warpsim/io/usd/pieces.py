"""Mesh prims with `physics:approximation = "convexDecomposition"` → a shape and its convex pieces."""

from __future__ import annotations

from dataclasses import replace

from pxr import Usd

from warpsim.core.errors import SceneError
from warpsim.geometry.decomposition import decompose
from warpsim.geometry.mesh_audit import audit_mesh
from warpsim.io.usd.context import Context
from warpsim.io.usd.extensions import lookup
from warpsim.io.usd.meshes import authored_mesh, placed
from warpsim.scene import Decomposition, Mesh, Shape
from warpsim.scene.pieces import add_pieces, piece_name

_SETTINGS = {"tolerance": "piece_tolerance", "max_pieces": "piece_count", "max_vertices": "piece_vertices"}
_LEAST_VERTICES = 4


def take_apart(context: Context, prim: Usd.Prim, shape: Shape) -> None:
    """Adds the convex pieces of a mesh shape, which is in the scene and complete but for them.

    They are found in the mesh's own coordinates and then placed as it is. So all instances of a mesh share them in the
    cache, and they stay the same ones when its scale changes.

    Raises:
        SceneError: The mesh encloses no volume; names the prim.
    """
    settings = _settings(context, prim)
    audit_mesh(context.scene.meshes[str(shape.mesh)])
    mesh, pose = authored_mesh(context, prim), context.frame(prim).pose
    found = decompose(mesh.vertices, mesh.faces, settings, name=mesh.name)
    meshes = [
        placed(context, prim, pose, Mesh(piece_name(shape.name, i), vertices, faces))
        for i, (vertices, faces) in enumerate(zip(found.vertices, found.faces, strict=True))
    ]
    pieces = add_pieces(context.scene, shape, meshes, settings)
    context.ledger.used(
        prim,
        "physics:approximation",
        f"{len(pieces)} convex pieces, which stick out of the mesh by up to {100 * found.depth:.2g} % of its longest "
        f"edge; volume {100 * found.excess:+.2g} %",
    )


def _settings(context: Context, prim: Usd.Prim) -> Decomposition:
    settings, default = Decomposition(), Decomposition()
    for field, concept in _SETTINGS.items():
        given = lookup(context, prim, concept)
        if given is not None and not (field == "max_vertices" and given.value < 0):  # Newton's "no bound"
            settings = replace(settings, **{field: type(getattr(default, field))(given.value)})
    if not 0.0 < settings.tolerance < 1.0:
        raise SceneError(
            f"{prim.GetPath()}.warpsim:convexTolerance is {settings.tolerance:g}; give a share of the mesh's longest "
            f"edge, as {default.tolerance:g}"
        )
    if settings.max_pieces < 1 or settings.max_vertices < _LEAST_VERTICES:
        raise SceneError(
            f"{prim.GetPath()}: at most {settings.max_pieces} convex pieces of {settings.max_vertices} vertices; "
            f"allow 1 piece and {_LEAST_VERTICES} vertices or more"
        )
    return settings
