"""The families of pairs that share kernels, so that a scene loads only the code its pairs need."""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from warpsim.collision.kinds import KIND_ORDER
from warpsim.collision.narrow_box import narrow_box_kernel
from warpsim.collision.narrow_convex import narrow_convex_kernel
from warpsim.collision.narrow_field import narrow_field_kernel
from warpsim.collision.narrow_primitive import narrow_primitive_kernel
from warpsim.collision.rebuild_box import rebuild_box_kernel
from warpsim.collision.rebuild_convex import rebuild_convex_kernel
from warpsim.collision.rebuild_field import rebuild_field_kernel
from warpsim.collision.rebuild_primitive import rebuild_primitive_kernel
from warpsim.core.errors import UnsupportedError


@dataclass(frozen=True, eq=False)
class PairGroup:
    """Pairs that are searched by one kernel and rebuilt by one other."""

    name: str
    narrow: wp.Kernel
    rebuild: wp.Kernel
    candidates: dict[tuple[str, str], int]
    """Pairs of kinds → most contacts of such a pair."""
    geometry: tuple[str, ...] = ()
    """Fields of `Geometry` that the kernels read."""
    seeded: bool = False
    """Whether the search hands a point or direction to the rebuild."""


PRIMITIVE = PairGroup(
    "primitive",
    narrow_primitive_kernel,
    rebuild_primitive_kernel,
    {
        ("plane", "sphere"): 1,
        ("plane", "capsule"): 2,
        ("plane", "box"): 4,
        ("plane", "cylinder"): 4,
        ("plane", "cone"): 4,
        ("plane", "ellipsoid"): 1,
        ("sphere", "sphere"): 1,
        ("sphere", "capsule"): 1,
        ("capsule", "capsule"): 2,
    },
)

BOX = PairGroup(
    "box",
    narrow_box_kernel,
    rebuild_box_kernel,
    {("sphere", "box"): 1, ("sphere", "cylinder"): 1, ("capsule", "box"): 2, ("box", "box"): 8},
)

_CONVEX_KINDS = ("sphere", "capsule", "ellipsoid", "cylinder", "box", "hull", "cone")


def _convex_pairs() -> dict[tuple[str, str], int]:
    """All ordered pairs of convex kinds that the primitives' closed forms leave out, and hulls on planes.

    Shapes with flat patches touch by four points at most; a cone's face and another's may give four each.
    """
    pairs = {("plane", "hull"): 4}
    for first in _CONVEX_KINDS:
        for second in _CONVEX_KINDS:
            if KIND_ORDER[first] <= KIND_ORDER[second] and (first, second) not in PRIMITIVE.candidates:
                smooth = {"sphere", "ellipsoid"} & {first, second}
                pairs[first, second] = 1 if smooth else 8 if "cone" in (first, second) else 4
    return pairs


CONVEX = PairGroup(
    "convex", narrow_convex_kernel, rebuild_convex_kernel, _convex_pairs(), geometry=("hulls",), seeded=True
)
EXACT = CONVEX
"""Where queries send pairs that also have a closed form whose distance is exact only for shapes that touch."""

FIELD = PairGroup(
    "field",
    narrow_field_kernel,
    rebuild_field_kernel,
    {("plane", "mesh"): 4, ("sphere", "mesh"): 1, ("mesh", "mesh"): 8}
    | {(kind, "mesh"): 8 for kind in _CONVEX_KINDS if kind != "sphere"}
    | {("heightfield", kind): 1 if kind == "sphere" else 8 for kind in (*_CONVEX_KINDS, "mesh")},
    geometry=("hulls", "grids"),
)

GROUPS = (CONVEX, FIELD, BOX, PRIMITIVE)
"""In the order of a table's pairs; those with seeds come first."""
_CLOSED_FORMS_FIRST = (PRIMITIVE, BOX, CONVEX, FIELD)


def group_of(first: str, second: str, exact: bool = False) -> PairGroup:
    """The group that handles an ordered pair of kinds.

    Args:
        first: Kind of the first shape.
        second: Kind of the second.
        exact: Whether the distance must be true also when the shapes are apart.

    Raises:
        UnsupportedError: No group does.
    """
    if exact and (first, second) in EXACT.candidates:
        return EXACT
    for group in _CLOSED_FORMS_FIRST:
        if (first, second) in group.candidates:
            return group
    raise UnsupportedError(
        f"no contact between shapes of kind {first!r} and {second!r}; exclude the pair or change one shape's kind"
    )
