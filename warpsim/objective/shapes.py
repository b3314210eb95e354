"""Colliders by the name of a body or of a collider."""

from __future__ import annotations

from warpsim.core.errors import InputError, unknown_name
from warpsim.scene import Scene


def shapes_of(scene: Scene, name: str) -> tuple[str, ...]:
    """Names of a body's colliders, or the collider of that name; convex pieces go by the name of their whole.

    Raises:
        UnknownNameError: Nothing is called that.
        InputError: The body has no collider.
    """
    shapes = {shape.name: shape for shape in scene.shapes}
    if name in shapes:
        return (name,)
    bodies = [body.name for body in scene.bodies]
    if name not in bodies:
        raise unknown_name("body or collider", name, [*bodies, *shapes])
    found = tuple(shape.name for shape in scene.shapes if shape.body == name and shape.piece_of is None)
    if not found:
        raise InputError(f"{name} has no collider")
    return found
