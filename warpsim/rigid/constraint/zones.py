"""In which piece of its cost each constraint row is at the solver's solution: what a step decides beside its contacts.

The step is smooth as long as no row changes its zone; a change is a mode switch (a contact opens, a foot slips).
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real
from warpsim.rigid.model.model import Model
from warpsim.rigid.work.constraint_work import ConstraintScratch
from warpsim.solve.rows import DRY_FRICTION, ELLIPTIC, UNILATERAL, Rows

OPEN = wp.constant(1)  # a unilateral row or a cone that does not push
PUSHING = wp.constant(2)  # a unilateral row that pushes, an equality
STICKING = wp.constant(3)  # inside the friction cone, or dry friction that holds
SLIDING = wp.constant(4)  # on the cone, or dry friction that slips forward
SLIDING_BACK = wp.constant(5)  # dry friction that slips backward
ZONE_TEXT = {1: "open", 2: "pushing", 3: "sticking", 4: "sliding", 5: "sliding back"}


@wp.func
def cone_zone(rows: Rows, y: wp.array2d(dtype=real), w: int, first: int, last: int) -> int:
    """Zone of the rows of an elliptic cone."""
    mu = rows.scale[w, first]
    normal = mu * y[w, first]
    tangent2 = real(0.0)
    for r in range(first + 1, last):
        u = rows.scale[w, r] * y[w, r]
        tangent2 += u * u
    if normal >= real(0.0) and normal * normal >= mu * mu * tangent2:
        return OPEN
    if normal <= real(0.0) and mu * mu * normal * normal >= tangent2:
        return STICKING
    return SLIDING


@wp.func
def row_zone(kind: int, y: real, weight: real, scale: real) -> int:
    """Zone of a row of its own."""
    if kind == UNILATERAL and y >= real(0.0):
        return OPEN
    if kind == DRY_FRICTION:
        if y >= scale / weight:
            return SLIDING
        if y <= -scale / weight:
            return SLIDING_BACK
        return STICKING
    return PUSHING


@wp.kernel(enable_backward=False)
def _zone_kernel(
    rows: Rows,
    y: wp.array2d(dtype=real),
    # out
    used: wp.array2d(dtype=wp.int32),
    column: wp.array2d(dtype=wp.int32),
    zone: wp.array2d(dtype=wp.int32),
):
    w = natural(wp.tid())
    for i in range(4):
        used[w, i] = rows.used[w, i]
    for i in range(column.shape[1]):
        column[w, i] = wp.where(i < rows.used[w, 2], rows.column[w, i], -1)
    for r in range(zone.shape[1]):
        zone[w, r] = 0
    for g in range(rows.used[w, 0]):
        first = rows.first_row[w, g]
        last = rows.first_row[w, g + 1]
        if rows.kind[w, g] == ELLIPTIC:
            zone[w, first] = cone_zone(rows, y, w, first, last)
        else:
            for r in range(first, last):
                zone[w, r] = row_zone(rows.kind[w, g], y[w, r], rows.weight[w, r], rows.scale[w, r])


class Zones:
    """Places for the zones of one solve.

    Attributes:
        used: (W, 4) int32: groups, rows, columns, entries.
        column: (W, C) int32: dofs of all groups, one after another; −1 beyond what is used.
        zone: (W, R) int32: a code of `ZONE_TEXT` per row; a cone has it at its first row; 0 elsewhere.
    """

    def __init__(self, m: Model, scratch: ConstraintScratch) -> None:
        rows = scratch.rows

        def like(array: wp.array) -> wp.array:
            return wp.zeros(array.shape, dtype=wp.int32, device=m.device)

        self.used, self.column, self.zone = like(rows.used), like(rows.column), like(rows.weight)

    def read(self, m: Model, scratch: ConstraintScratch) -> None:
        """Fills the places from the solver's scratch, right after its solve. Not taped."""
        wp.launch(
            _zone_kernel,
            dim=m.worlds,
            inputs=[scratch.rows, scratch.vectors.y],
            outputs=[self.used, self.column, self.zone],
            device=m.device,
            record_tape=False,
        )
