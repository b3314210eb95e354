"""The families of pairs that share kernels, so that a scene loads only the code its pairs need."""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from warpsim.collision.candidates import (
    BOX_PAIRS,
    CONVEX_PAIRS,
    FIELD_PAIRS,
    PRIMITIVE_PAIRS,
    PRISM_PAIRS,
    Candidates,
    family_of,
)
from warpsim.collision.narrow_box import narrow_box_kernel
from warpsim.collision.narrow_convex import narrow_convex_kernel
from warpsim.collision.narrow_field import narrow_field_kernel
from warpsim.collision.narrow_primitive import narrow_primitive_kernel
from warpsim.collision.narrow_prism import narrow_prism_kernel
from warpsim.collision.rebuild_box import rebuild_box_kernel
from warpsim.collision.rebuild_convex import rebuild_convex_kernel
from warpsim.collision.rebuild_field import rebuild_field_kernel
from warpsim.collision.rebuild_primitive import rebuild_primitive_kernel


@dataclass(frozen=True, eq=False)
class PairGroup:
    """Pairs that are searched by one kernel and rebuilt by one other."""

    name: str
    narrow: wp.Kernel
    rebuild: wp.Kernel
    candidates: Candidates
    """Pairs of kinds → most contacts of such a pair."""
    geometry: tuple[str, ...] = ()
    """Fields of `Geometry` that both kernels read."""
    bounds: tuple[str, ...] = ()
    """Fields of `Geometry` that the search alone reads."""
    seeded: bool = False
    """Whether the search is an iteration: it takes room, and hands a point or direction to the rebuild."""


PRIMITIVE = PairGroup("primitive", narrow_primitive_kernel, rebuild_primitive_kernel, PRIMITIVE_PAIRS)
BOX = PairGroup("box", narrow_box_kernel, rebuild_box_kernel, BOX_PAIRS)
CONVEX = PairGroup(
    "convex",
    narrow_convex_kernel,
    rebuild_convex_kernel,
    CONVEX_PAIRS,
    geometry=("hulls",),
    bounds=("boxes",),
    seeded=True,
)
FIELD = PairGroup("field", narrow_field_kernel, rebuild_field_kernel, FIELD_PAIRS, geometry=("hulls", "grids"))

PRISM = PairGroup("prism", narrow_prism_kernel, rebuild_convex_kernel, PRISM_PAIRS, geometry=("hulls",), seeded=True)

GROUPS = (CONVEX, PRISM, FIELD, BOX, PRIMITIVE)
"""In the order of a table's pairs; those with seeds come first."""


def group_of(first: str, second: str, exact: bool = False) -> PairGroup:
    """The group that handles an ordered pair of kinds; arguments and errors as those of `family_of`."""
    family = family_of(first, second, exact)
    return next(group for group in GROUPS if group.candidates is family)
