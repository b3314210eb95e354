"""A `Scene` and the poses of its bodies → items to draw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from warpsim.core.numpy_quaternions import quat_to_matrix
from warpsim.scene import Scene, Shape
from warpsim.scene.description import MESH_KINDS
from warpsim.view.items.item import BOX, CAPSULE, ENDLESS, MESH, PLANE, SPHERE, TAPERED, Item
from warpsim.view.items.stand_ins import bodies_without_looks
from warpsim.view.items.triangles import Triangles, make_triangles


class SceneReader:
    """Collects a scene's visible shapes, and colliders of bodies that show too little, at any pose of its bodies.

    A reader of colliders finds all of these, hidden or not, and nothing else.
    """

    def __init__(self, scene: Scene, *, colliders: bool = False) -> None:
        visible = [shape for shape in scene.shapes if shape.visible]
        hidden = [shape for shape in scene.shapes if not shape.visible and _collides(shape)]
        used = {shape.mesh for shape in (*visible, *hidden)}
        self._meshes: dict[str, Triangles] = {
            name: make_triangles(mesh.vertices, mesh.faces) for name, mesh in scene.meshes.items() if name in used
        }
        bare = bodies_without_looks(self._corners(visible), self._corners(hidden))
        stand_ins = {shape.name for shape in hidden if shape.body in bare}
        if colliders:
            self._shapes = [shape for shape in scene.shapes if _collides(shape)]
        else:
            self._shapes = [shape for shape in scene.shapes if shape.visible or shape.name in stand_ins]

    def _corners(self, shapes: Iterable[Shape]) -> list[tuple[str, np.ndarray]]:
        """Body and corners in its frame of each shape that belongs to one."""
        owned = [(shape.body, shape) for shape in shapes if shape.body is not None]
        return [(body, self._item(shape, {body: np.eye(4)}).corners()) for body, shape in owned]

    def items(self, bodies: Mapping[str, np.ndarray]) -> list[Item]:
        """Items in the scene's order.

        Args:
            bodies: Body name → (4, 4) body frame → world, m.
        """
        return [self._item(shape, bodies) for shape in self._shapes]

    def _item(self, shape: Shape, bodies: Mapping[str, np.ndarray]) -> Item:
        kind, size, scale = _form(shape)
        to_world = pose_matrix(shape.position, shape.rotation)
        to_world[:3, :3] *= scale
        if shape.body is not None:
            to_world = bodies[shape.body] @ to_world
        mesh = self._meshes[shape.mesh] if kind == MESH and shape.mesh is not None else None
        return Item(shape.name, kind, size, to_world, np.array(shape.color), shape.body, mesh)


def _collides(shape: Shape) -> bool:
    """Whether it collides itself or, taken apart, through its pieces, which are not drawn."""
    return (shape.collides and shape.piece_of is None) or shape.decomposition is not None


def pose_matrix(position: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    """(4, 4) of a position and a quaternion (w, x, y, z)."""
    matrix = np.eye(4)
    matrix[:3, :3] = quat_to_matrix(np.asarray(rotation, dtype=float))
    matrix[:3, 3] = position
    return matrix


def _form(shape: Shape) -> tuple[int, np.ndarray, np.ndarray]:
    """Kind, size and scale of the item."""
    a, b, c = (float(x) for x in shape.size)
    one, none = np.ones(3), np.zeros(3)
    if shape.kind == "ellipsoid":
        return SPHERE, np.array([1.0, 0.0, 0.0]), np.array([a, b, c])
    if shape.kind in MESH_KINDS:
        return MESH, none, np.array([a, b, c])
    kind, size = {
        "plane": (PLANE, (ENDLESS, ENDLESS, 0.0)),
        "sphere": (SPHERE, (a, 0.0, 0.0)),
        "box": (BOX, (a, b, c)),
        "capsule": (CAPSULE, (a, b, 0.0)),
        "cylinder": (TAPERED, (a, a, b)),
        "cone": (TAPERED, (a, 0.0, b)),
    }[shape.kind]
    return kind, np.array(size), one
