"""The constraint rows of one step, as the untaped solver sees them: groups of rows that share columns.

A group is one constraint (a limit, an equality, a contact). Its rows are J entries over a short list of dofs. The
space is scratch: rows are rebuilt at every step and shared by all slots of the tape.
"""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real

EQUALITY = wp.constant(0)
UNILATERAL = wp.constant(1)  # limits, frictionless contacts, edges of a friction pyramid
DRY_FRICTION = wp.constant(2)
ELLIPTIC = wp.constant(3)


@wp.struct
class Rows:
    """Growing lists per world; `used` says how far each is filled."""

    used: wp.array2d(dtype=wp.int32)  # (W, 4): groups, rows, columns, entries
    overflow: wp.array(dtype=wp.int32)  # (W,) 1: there were more contacts than places
    kind: wp.array2d(dtype=wp.int32)  # (W, G) EQUALITY … ELLIPTIC
    first_row: wp.array2d(dtype=wp.int32)  # (W, G + 1)
    first_column: wp.array2d(dtype=wp.int32)  # (W, G + 1)
    first_entry: wp.array2d(dtype=wp.int32)  # (W, G + 1); a group's entries lie column by column
    weight: wp.array2d(dtype=real)  # (W, R) D = 1/R
    reference: wp.array2d(dtype=real)  # (W, R) aref
    scale: wp.array2d(dtype=real)  # (W, R) elliptic: μ, friction …; dry friction: its force
    column: wp.array2d(dtype=wp.int32)  # (W, C) dof
    entry: wp.array2d(dtype=real)  # (W, E) J
    mode: wp.array2d(dtype=wp.int32)  # (W, G) which rows of a group the last Hessian held, see `hessian`


@dataclass(frozen=True)
class RowCapacity:
    """Most that a step can need."""

    groups: int = 0
    rows: int = 0
    columns: int = 0
    entries: int = 0

    def plus(self, count: int, rows: int, columns: int) -> RowCapacity:
        """With `count` more groups of `rows` rows over `columns` dofs each."""
        return RowCapacity(
            self.groups + count,
            self.rows + count * rows,
            self.columns + count * columns,
            self.entries + count * rows * columns,
        )


def allocate_rows(worlds: int, capacity: RowCapacity, device: wp.Device) -> Rows:
    """Space for the rows of one step."""
    rows = Rows()
    sizes = {
        "used": 4,
        "kind": capacity.groups,
        "mode": capacity.groups,
        "first_row": capacity.groups + 1,
        "first_column": capacity.groups + 1,
        "first_entry": capacity.groups + 1,
        "column": capacity.columns,
    }
    for name, size in sizes.items():
        setattr(rows, name, wp.zeros((worlds, size), dtype=wp.int32, device=device))
    for name, size in (("weight", capacity.rows), ("reference", capacity.rows), ("scale", capacity.rows)):
        setattr(rows, name, wp.zeros((worlds, size), dtype=real, device=device))
    rows.entry = wp.zeros((worlds, capacity.entries), dtype=real, device=device)
    rows.overflow = wp.zeros(worlds, dtype=wp.int32, device=device)
    return rows


@wp.func
def close_group(rows: Rows, w: int, kind: int, dim: int, columns: int):
    """Ends the group that was just written at the lists' ends: `dim` rows (1 to 6, or 10) over `columns` dofs."""
    g = rows.used[w, 0]
    rows.kind[w, g] = kind
    rows.first_row[w, g] = rows.used[w, 1]
    rows.first_column[w, g] = rows.used[w, 2]
    rows.first_entry[w, g] = rows.used[w, 3]
    rows.used[w, 0] = g + 1
    rows.used[w, 1] = rows.used[w, 1] + dim
    rows.used[w, 2] = rows.used[w, 2] + columns
    rows.used[w, 3] = rows.used[w, 3] + dim * columns
    rows.first_row[w, g + 1] = rows.used[w, 1]
    rows.first_column[w, g + 1] = rows.used[w, 2]
    rows.first_entry[w, g + 1] = rows.used[w, 3]


@wp.func
def close_single(rows: Rows, w: int, kind: int, columns: int, weight: real, reference: real, scale: real):
    """Ends a group of one row over `columns` dofs; one that no dof can move is left out."""
    if columns > 0:
        r = rows.used[w, 1]
        rows.weight[w, r] = weight
        rows.reference[w, r] = reference
        rows.scale[w, r] = scale
        close_group(rows, w, kind, 1, columns)


@wp.func
def add_single(rows: Rows, w: int, kind: int, dof: int, entry: real, weight: real, reference: real, scale: real):
    """A group of one row on one dof."""
    rows.column[w, rows.used[w, 2]] = dof
    rows.entry[w, rows.used[w, 3]] = entry
    close_single(rows, w, kind, 1, weight, reference, scale)


@wp.kernel(enable_backward=False)
def _clear_kernel(rows: Rows):
    w = natural(wp.tid())
    rows.overflow[w] = 0
    for i in range(4):
        rows.used[w, i] = 0


def clear_rows(worlds: int, rows: Rows, device: wp.Device) -> None:
    """Empties the lists."""
    wp.launch(_clear_kernel, dim=worlds, inputs=[rows], device=device, record_tape=False)
