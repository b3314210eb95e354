"""Where everything lies: panels, update matrices, and the lists by which numbers are summed into them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from warpsim.solve.block_ldl.dissection import dissection_order
from warpsim.solve.block_ldl.fronts import Front, find_fronts
from warpsim.solve.block_ldl.pattern import BlockPattern

LANES = 8
"""Rows of panels and update matrices come in groups of so many."""
FRONT_FIELDS = ("first", "pivots", "rows", "panel", "update", "first_row", "first_entry", "first_child")
"""Columns of `BlockPlan.front`; numbers of pivots and of all rows are scalars, `first` is a block position."""


@wp.struct
class BlockPlan:
    """The symbolic factor. Fronts stand in order of execution, blocks are counted by their place in that order."""

    fronts: wp.int32
    blocks: wp.int32
    update_size: wp.int32  # of the update matrices; W, a scratch panel, lies behind them
    order: wp.array(dtype=wp.int32)  # (n,) place → block of the pattern
    front: wp.array2d(dtype=wp.int32)  # (F + 1, 8), `FRONT_FIELDS`
    row: wp.array(dtype=wp.int32)  # places of the update rows, front by front
    child: wp.array(dtype=wp.int32)  # children, front by front
    first_run: wp.array(dtype=wp.int32)  # (F + 1,)
    run: wp.array2d(
        dtype=wp.int32
    )  # (runs, 3): update rows that stay together in the parent: first, place there, length
    entry: wp.array2d(dtype=wp.int32)  # (m, 3): coupling, offset in the panel, 1 if transposed


@dataclass(frozen=True)
class PlanSizes:
    """Reals per world."""

    panels: int
    """Of the factor."""
    work: int
    """Of the scratch."""
    vector: int
    """Of a front's part of a solution."""
    operations: int
    """Additions and multiplications of one factorization."""


def _padded(rows: int) -> int:
    return -(-rows // LANES) * LANES


class _Arena:
    """First-fit allocation in order of execution."""

    def __init__(self) -> None:
        self.used: list[tuple[int, int]] = []
        self.size = 0

    def take(self, size: int) -> int:
        start = 0
        for begin, end in self.used:
            if begin - start >= size:
                break
            start = max(start, end)
        self.used = sorted([*self.used, (start, start + size)])
        self.size = max(self.size, start + size)
        return start

    def free(self, start: int) -> None:
        self.used = [(begin, end) for begin, end in self.used if begin != start]


def _runs(rows: list[int], parent_places: dict[int, int]) -> list[tuple[int, int, int]]:
    """Update rows of a front as runs of blocks that lie next to one another in the parent."""
    runs: list[tuple[int, int, int]] = []
    for i, row in enumerate(rows):
        place = parent_places[row]
        if runs and runs[-1][1] + runs[-1][2] == place:
            runs[-1] = (runs[-1][0], runs[-1][1], runs[-1][2] + 1)
        else:
            runs.append((i, place, 1))
    return runs


class _Layout:
    """Lists of the plan, front by front."""

    def __init__(self, pattern: BlockPattern, fronts: list[Front]) -> None:
        self.fronts = fronts
        self.order = [block for front in fronts for block in front.pivots]
        self.place = {block: i for i, block in enumerate(self.order)}
        self.rows = [sorted(self.place[block] for block in front.rows) for front in fronts]
        self.parent = {child: i for i, front in enumerate(fronts) for child in front.children}
        self.couplings: list[list[tuple[int, int, int]]] = [[] for _ in self.order]
        for index, (i, j) in enumerate(pattern.pairs.tolist()):
            a, b = self.place[i], self.place[j]
            # the entry stands in the column of the earlier block; given as (row i, column j)
            self.couplings[min(a, b)].append((max(a, b), index, int(a < b)))
        self.table: list[list[int]] = []
        self.row: list[int] = []
        self.child: list[int] = []
        self.first_run: list[int] = []
        self.run: list[tuple[int, int, int]] = []
        self.entry: list[tuple[int, int, int]] = []
        self.panels = self.scratch = self.vector = self.operations = 0
        self.arena = _Arena()
        updates: list[int] = []
        for i, front in enumerate(fronts):
            updates.append(self._add(i, front))
            for child in front.children:
                self.arena.free(updates[child])
        self.table.append([len(self.order), 0, 0, self.panels, 0, len(self.row), len(self.entry), len(self.child)])
        self.first_run.append(len(self.run))

    def _add(self, i: int, front: Front) -> int:
        rows = self.rows[i]
        first = self.place[front.pivots[0]]
        pivots, total = 3 * len(front.pivots), 3 * (len(front.pivots) + len(rows))
        lead = _padded(total)
        # rows of the update matrix keep their alignment in the panel: it begins with the panel's group of eight
        update = self.arena.take(max(LANES, (lead - pivots // LANES * LANES) * (total - pivots)))
        self.table.append([first, pivots, total, self.panels, update, len(self.row), len(self.entry), len(self.child)])
        places = {first + p: p for p in range(len(front.pivots))}
        places |= {row: len(front.pivots) + r for r, row in enumerate(rows)}
        for p in range(len(front.pivots)):
            for later, index, transposed in sorted(self.couplings[first + p]):
                self.entry.append((index, 3 * p * lead + 3 * places[later], transposed))
        self.row += rows
        self.child += front.children
        self.first_run.append(len(self.run))
        if rows:
            above = self.fronts[self.parent[i]]
            begin = self.place[above.pivots[0]]
            where = {begin + p: p for p in range(len(above.pivots))}
            where |= {row: len(above.pivots) + r for r, row in enumerate(self.rows[self.parent[i]])}
            self.run += _runs(rows, where)
        self.panels += lead * pivots
        self.scratch = max(self.scratch, lead * pivots)
        self.vector = max(self.vector, lead)
        under = total - pivots
        self.operations += pivots**3 // 3 + pivots * pivots * under + pivots * under * under
        return update


def make_plan(
    pattern: BlockPattern, places: np.ndarray | None = None, device: wp.DeviceLike = None
) -> tuple[BlockPlan, PlanSizes]:
    """Orders and lays out the factor of a pattern.

    Args:
        pattern: Couplings.
        places: (n, 3), m: where the blocks' nodes are, if that is known.
        device: Where the lists live.
    """
    layout = _Layout(pattern, find_fronts(pattern, dissection_order(pattern, places)))

    def integers(values: list, *shape: int) -> wp.array:
        return wp.array(np.array(values, np.int32).reshape(shape), dtype=wp.int32, device=device)

    plan = BlockPlan()
    plan.fronts, plan.blocks, plan.update_size = len(layout.fronts), pattern.count, layout.arena.size
    plan.order = integers(layout.order, -1)
    plan.front = integers(layout.table, -1, len(FRONT_FIELDS))
    plan.row = integers(layout.row, -1)
    plan.child = integers(layout.child, -1)
    plan.first_run = integers(layout.first_run, -1)
    plan.run = integers(layout.run, -1, 3)
    plan.entry = integers(layout.entry, -1, 3)
    sizes = PlanSizes(layout.panels, layout.arena.size + layout.scratch, layout.vector, layout.operations)
    return plan, sizes
