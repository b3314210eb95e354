"""Which shapes may touch: the pair list, made once from a scene's filters."""

from __future__ import annotations

from itertools import product

import numpy as np

from warpsim.collision.kinds import KIND_ORDER
from warpsim.core.errors import unknown_name
from warpsim.scene.description import Scene, Shape
from warpsim.scene.fixed_groups import WORLD, fixed_groups
from warpsim.scene.pieces import colliding_shapes

_FLAT = ("plane", "heightfield")


def _masks_meet(a: Shape, b: Shape) -> bool:
    return bool((a.contact_type & b.contact_affinity) or (b.contact_type & a.contact_affinity))


def override_pairs(scene: Scene) -> dict[frozenset[int], int]:
    """Pairs of shapes given outright, which collide whatever the masks say → the place of what gives them."""
    standing = colliding_shapes(scene)
    pairs = {}
    for place, override in enumerate(scene.contact_overrides):
        for name in (override.a, override.b):
            if name not in standing:
                raise unknown_name("shape", name, standing)
        for a, b in product(standing[override.a], standing[override.b]):
            pairs[frozenset((a, b))] = place
    return pairs


def collision_pairs(scene: Scene) -> np.ndarray:
    """Lists the pairs of shapes that may touch, by MuJoCo's rules.

    Shapes of one body, or of bodies fixed together, never collide; nor do two that cannot move; nor those of a body
    and its parent while `scene.filter_parent` holds (the world is no parent in this sense). Beyond that a pair
    collides where one's type mask meets the other's affinity and it is not excluded. Pairs in `contact_overrides` skip
    the filters. What is said of a shape holds for all its convex pieces.

    Args:
        scene: A validated scene.

    Returns:
        (np, 2) int32 indices into `scene.shapes`. The first of a pair has the kind that comes first in MuJoCo's order
        (plane, sphere, capsule, ellipsoid, cylinder, box, …); pairs are in lexicographic order of scene indices.
    """
    group, group_parent = fixed_groups(scene)
    still = {body.name for body in scene.bodies if body.kinematic} | {WORLD}
    index = {shape.name: i for i, shape in enumerate(scene.shapes)}
    forced = override_pairs(scene)

    def collides(a: Shape, b: Shape) -> bool:
        body_a, body_b = a.body or WORLD, b.body or WORLD
        group_a, group_b = group[body_a], group[body_b]
        if group_a == group_b or (group_a in still and group_b in still):
            return False
        if a.kind in _FLAT and b.kind in _FLAT:
            return False
        if frozenset((index[a.name], index[b.name])) in forced:
            return True
        if not (a.collides and b.collides and _masks_meet(a, b)):
            return False
        named = frozenset((a.piece_of or a.name, b.piece_of or b.name))
        if named in scene.excluded_pairs or frozenset((body_a, body_b)) in scene.excluded_bodies:
            return False
        related = group_parent[group_a] == group_b or group_parent[group_b] == group_a
        return not (scene.filter_parent and related and WORLD not in (group_a, group_b))

    pairs = []
    for i, a in enumerate(scene.shapes):
        for j in range(i + 1, len(scene.shapes)):
            b = scene.shapes[j]
            if collides(a, b):
                pairs.append((j, i) if KIND_ORDER[b.kind] < KIND_ORDER[a.kind] else (i, j))
    return np.array(pairs, np.int32).reshape(-1, 2)
