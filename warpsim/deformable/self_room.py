"""Room for the pairs of self-contact, their search and their solves."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import warp as wp

from warpsim.core.precision import mat33, real, vec3
from warpsim.deformable.cells import Cells
from warpsim.deformable.features import Features
from warpsim.deformable.matrix import Pattern
from warpsim.deformable.self_contact import SelfContacts
from warpsim.deformable.types import vec4

PAIRS_PER_VERTEX = 24
"""Room for pairs, over the number of vertices: two layers that lie on each other have about eight."""


def make_cells(features: int, worlds: int, device: wp.Device) -> Cells:
    """Room for a grid over so many features."""
    out, limit = Cells(), max(4 * features, 64)
    out.limit = limit
    out.low = wp.zeros(worlds, dtype=vec3, device=device)
    out.size = wp.zeros(worlds, dtype=real, device=device)
    out.along = wp.zeros((worlds, 3), dtype=wp.int32, device=device)
    out.first = wp.zeros((worlds, limit + 1), dtype=wp.int32, device=device)
    out.item = wp.zeros((worlds, features), dtype=wp.int32, device=device)
    out.center = wp.zeros((worlds, features), dtype=vec3, device=device)
    out.radius = wp.zeros((worlds, features), dtype=real, device=device)
    return out


def make_self_contacts(
    features: Features, pattern: Pattern, rest: wp.array, law: Mapping[str, wp.array]
) -> SelfContacts:
    """Self-contact of a matter.

    Args:
        features: What touches what.
        pattern: Rows of the matrix.
        rest: (W, n) m.
        law: (W,) of each name in `SELF_LAW`.
    """
    (worlds, count), device = rest.shape, rest.device
    out = SelfContacts()
    out.count, out.room = len(features.face), PAIRS_PER_VERTEX * count
    lists = {name: getattr(features, name) for name in ("vertex", "face", "owner", "edge", "star")}
    lists["star_first"] = features.first
    for name, values in {**lists, "node": pattern.node, "carried": pattern.carried}.items():
        setattr(out, name, wp.array(values.astype(np.int32), dtype=wp.int32, device=device))
    out.rest = rest
    for name, array in law.items():
        setattr(out, name, array)
    out.faces = make_cells(len(features.face), worlds, device)
    out.edges = make_cells(len(features.edge), worlds, device)

    def room(number: int, dtype: type) -> wp.array:
        return wp.zeros((worlds, number), dtype=dtype, device=device)

    out.pairs, out.active = (wp.zeros(worlds, dtype=wp.int32, device=device) for _ in range(2))
    out.kind, out.share, out.block = room(out.room, wp.int32), room(out.room, vec4), room(out.room, mat33)
    out.corner = wp.zeros((worlds, out.room, 4), dtype=wp.int32, device=device)
    out.weight = room(out.room, real)
    out.normal, out.bias, out.stiff = room(out.room, vec3), room(out.room, vec3), room(count, real)
    for name in ("solution", "residual", "direction", "image"):
        setattr(out, name, room(max(pattern.size, 1), vec3))
    return out
