"""Shapes that collide as a union of convex pieces: one shape that is weighed, seen and named, and pieces that touch.

The pieces are shapes of kind "hull" on the same body, which never collide with each other. Filters, overrides, queries,
sensors and contact forces speak of the one shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

from warpsim.scene.description import Decomposition, Mesh, Scene, Shape


def add_pieces(scene: Scene, shape: Shape, meshes: Sequence[Mesh], settings: Decomposition) -> list[Shape]:
    """Adds the pieces of a shape, which from now on collides through them only.

    Args:
        scene: Gets the pieces, right after the shape, and their meshes.
        shape: Of the scene, of kind mesh; keeps its mass and its looks.
        meshes: One convex mesh per piece, in the shape's frame; a piece has its mesh's name.
        settings: How they were found.
    """
    pieces = []
    for mesh in meshes:
        piece = deepcopy(shape)
        piece.name, piece.kind, piece.mesh = mesh.name, "hull", mesh.name
        piece.mass, piece.visible, piece.piece_of = 0.0, False, shape.name
        pieces.append(piece)
    shape.collides, shape.decomposition = False, settings
    place = next(i for i, other in enumerate(scene.shapes) if other is shape) + 1
    scene.shapes[place:place] = pieces
    scene.meshes.update({mesh.name: mesh for mesh in meshes})
    return pieces


def piece_name(whole: str, place: int) -> str:
    """Name of one piece of a shape."""
    return f"{whole}:piece{place}"


def pieces_of(scene: Scene, name: str) -> list[Shape]:
    """The convex pieces of a shape, in order; none for a shape that collides as it is."""
    return [shape for shape in scene.shapes if shape.piece_of == name]


def colliding_shapes(scene: Scene) -> dict[str, list[int]]:
    """Name of every shape → indices of the shapes that stand for it in contact: its pieces, or itself."""
    found: dict[str, list[int]] = {shape.name: [] for shape in scene.shapes}
    for i, shape in enumerate(scene.shapes):
        if shape.piece_of is not None:
            found[shape.piece_of].append(i)
    for i, shape in enumerate(scene.shapes):
        if shape.decomposition is None:
            found[shape.name].append(i)
    return found
