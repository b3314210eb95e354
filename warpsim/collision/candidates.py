"""How many contacts a pair of shapes can have, by kind, for each family of pairs: numbers without the kernels."""

from __future__ import annotations

import numpy as np

from warpsim.collision.kinds import KIND_ORDER
from warpsim.core.errors import UnsupportedError
from warpsim.scene.description import Scene

Candidates = dict[tuple[str, str], int]
"""Ordered pairs of kinds → most contacts of such a pair."""

PRIMITIVE_PAIRS: Candidates = {
    ("plane", "sphere"): 1,
    ("plane", "capsule"): 2,
    ("plane", "box"): 4,
    ("plane", "cylinder"): 4,
    ("plane", "cone"): 4,
    ("plane", "ellipsoid"): 1,
    ("sphere", "sphere"): 1,
    ("sphere", "capsule"): 1,
    ("capsule", "capsule"): 2,
}
BOX_PAIRS: Candidates = {("sphere", "box"): 1, ("sphere", "cylinder"): 1, ("capsule", "box"): 2, ("box", "box"): 8}

_CONVEX_KINDS = ("sphere", "capsule", "ellipsoid", "cylinder", "box", "hull", "cone")


def _convex_pairs() -> Candidates:
    """All ordered pairs of convex kinds that the primitives' closed forms leave out, and hulls on planes.

    Shapes with flat patches touch by four points at most; a cone's face and another's may give four each.
    """
    pairs = {("plane", "hull"): 4}
    for first in _CONVEX_KINDS:
        for second in _CONVEX_KINDS:
            if KIND_ORDER[first] <= KIND_ORDER[second] and (first, second) not in PRIMITIVE_PAIRS:
                smooth = {"sphere", "ellipsoid"} & {first, second}
                pairs[first, second] = 1 if smooth else 8 if "cone" in (first, second) else 4
    return pairs


CONVEX_PAIRS = _convex_pairs()
FIELD_PAIRS: Candidates = (
    {("plane", "mesh"): 4, ("sphere", "mesh"): 1, ("mesh", "mesh"): 8}
    | {(kind, "mesh"): 8 for kind in _CONVEX_KINDS if kind != "sphere"}
    | {("heightfield", kind): 1 if kind == "sphere" else 8 for kind in (*_CONVEX_KINDS, "mesh")}
)
PRISM_CONTACTS = 50
"""Most contacts of a shape with a height field's prisms, as in MuJoCo."""
PRISM_PAIRS: Candidates = {("prisms", kind): PRISM_CONTACTS for kind in _CONVEX_KINDS}
"""Height fields that collide by prisms have a kind of their own here alone."""
CLOSED_FORMS_FIRST = (PRIMITIVE_PAIRS, BOX_PAIRS, CONVEX_PAIRS, PRISM_PAIRS, FIELD_PAIRS)
"""The order in which the families are asked for a pair."""


def family_of(first: str, second: str, exact: bool = False) -> Candidates:
    """The family that handles an ordered pair of kinds.

    Args:
        first: Kind of the first shape.
        second: Kind of the second.
        exact: Whether the distance must be true also when the shapes are apart; some closed forms are exact only for
            shapes that touch.

    Raises:
        UnsupportedError: None does.
    """
    if exact and (first, second) in CONVEX_PAIRS:
        return CONVEX_PAIRS
    for family in CLOSED_FORMS_FIRST:
        if (first, second) in family:
            return family
    raise UnsupportedError(
        f"no contact between shapes of kind {first!r} and {second!r}; exclude the pair or change one shape's kind"
    )


def family_case(scene: Scene, a: int, b: int, exact: bool = False) -> tuple[str, str]:
    """The kinds by which the family of an ordered pair of shapes is found; `exact` as in `family_of`.

    The distance to a height field is that to its smooth surface, however it collides.
    """
    first, second = scene.shapes[a], scene.shapes[b]
    prisms = first.kind == "heightfield" and scene.meshes[first.mesh].prisms is not None and not exact
    return ("prisms" if prisms and second.kind in _CONVEX_KINDS else first.kind), second.kind


def count_candidates(scene: Scene, pairs: np.ndarray) -> int:
    """Contacts that given pairs of a scene's shapes, (n, 2), can have together."""
    cases = [family_case(scene, a, b) for a, b in pairs]
    return sum(family_of(*case)[case] for case in cases)


def default_room(candidates: int, shapes: int) -> int:
    """Contact places of a world at first: all candidates of a small scene, a share of a large one's.

    Args:
        candidates: Contacts that all pairs can have together.
        shapes: Those that are in some pair.
    """
    return min(candidates, max(32, 4 * shapes))
