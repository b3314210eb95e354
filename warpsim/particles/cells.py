"""Which cells hold particles, and which nodes they reach: numbers for the nodes that are in use. Not taped.

A particle belongs to the cell of its lowest node; `table` holds of each cell in use its place and the numbers of the 27
nodes that its particles reach. Particles are listed by slabs of cells along x, so that every second slab can be
scattered at the same time: no two of them reach a common node.
"""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real, vec3
from warpsim.particles.domain import Domain
from warpsim.tape.arena import Arena

SLAB = wp.constant(4)
"""Cells; particles of one slab reach two nodes into the next one."""

ROW = wp.constant(30)
"""Integers of a cell in `table`: its place, then 27 nodes."""

CELLS = wp.constant(0)
NODES = wp.constant(1)
LOST = wp.constant(2)
CROWDED = wp.constant(3)
"""Places of `count`: cells, nodes needed, particles outside, things near more walls than there are places for."""


def slabs(domain: Domain) -> int:
    """Number of slabs, even, so that both colors have as many."""
    count = -(-domain.shape[0] // int(SLAB))
    return count + count % 2


@dataclass
class Scratch:
    """Numbers of all cells and nodes of the grid, (W, nodes of the grid); zero before and after each use."""

    cell: wp.array
    node: wp.array

    @staticmethod
    def make(domain: Domain, worlds: int, device: wp.Device) -> Scratch:
        """For so many worlds."""
        shape = (worlds, domain.nodes)
        return Scratch(wp.zeros(shape, dtype=wp.int32, device=device), wp.zeros(shape, dtype=wp.int32, device=device))


@dataclass
class Cells:
    """What is in use in one step.

    Attributes:
        count: (W, 4); see `CELLS` … `CROWDED`.
        cell: (W, n) cell of each particle.
        table: (W, n, 30).
        place: (W, capacity) place of each node on the grid.
        node_cell: (W, capacity) a cell that reaches each node.
        order: (W, n) particles by slab.
        start: (W, slabs + 1) first of each slab in `order`.
    """

    count: wp.array
    cell: wp.array
    table: wp.array
    place: wp.array
    node_cell: wp.array
    order: wp.array
    start: wp.array

    @staticmethod
    def make(arena: Arena, domain: Domain, worlds: int, particles: int, capacity: int) -> Cells:
        """Allocates."""

        def integers(*shape: int) -> wp.array:
            return arena.array((worlds, *shape), wp.int32, differentiable=False)

        return Cells(
            integers(4),
            integers(particles),
            integers(particles, int(ROW)),
            arena.array((worlds, capacity), wp.vec3i, differentiable=False),
            integers(capacity),
            integers(particles),
            integers(slabs(domain) + 1),
        )


@wp.func
def _base(place: real, nodes: int) -> int:
    """Lowest of the three nodes along one axis that a particle reaches; −1 outside the domain, or for NaN."""
    if place >= real(0.5) and place < real(nodes) - real(1.5):
        return int(place - real(0.5))
    return -1


@wp.func
def _forget(
    shape: wp.vec3i,
    w: int,
    i: int,
    j: int,
    k: int,
    cell_number: wp.array2d(dtype=wp.int32),
    node_number: wp.array2d(dtype=wp.int32),
):
    """Clears the numbers of cell (i, j, k) and of its nodes for the next step."""
    number = natural((i * shape[1] + j) * shape[2] + k)
    cell_number[w, number] = 0
    for corner in range(27):
        node_number[w, number + ((corner // 9) * shape[1] + (corner // 3) % 3) * shape[2] + corner % 3] = 0


@wp.kernel(enable_backward=False)
def _cells_kernel(
    # topology
    lower: vec3,
    per_cell: real,
    shape: wp.vec3i,
    capacity: int,
    # state
    x: wp.array2d(dtype=vec3),
    # scratch
    cell_number: wp.array2d(dtype=wp.int32),
    node_number: wp.array2d(dtype=wp.int32),
    # work written
    count: wp.array2d(dtype=wp.int32),
    cell: wp.array2d(dtype=wp.int32),
    table: wp.array3d(dtype=wp.int32),
    place: wp.array2d(dtype=wp.vec3i),
    node_cell: wp.array2d(dtype=wp.int32),
    order: wp.array2d(dtype=wp.int32),
    start: wp.array2d(dtype=wp.int32),
):
    w = natural(wp.tid())
    cells = int(0)
    nodes = int(0)
    lost = int(0)
    for s in range(start.shape[1]):
        start[w, s] = 0
    for p in range(x.shape[1]):
        at = per_cell * (x[w, p] - lower)
        i = _base(at[0], shape[0])
        j = _base(at[1], shape[1])
        k = _base(at[2], shape[2])
        if i < 0 or j < 0 or k < 0:
            lost += 1
            i = 0
            j = 0
            k = 0
        number = natural((i * shape[1] + j) * shape[2] + k)
        c = cell_number[w, number]
        if c == 0:
            cells += 1
            c = cells
            cell_number[w, number] = c
            table[w, c - 1, 0] = i
            table[w, c - 1, 1] = j
            table[w, c - 1, 2] = k
            for corner in range(27):
                di = corner // 9
                dj = (corner // 3) % 3
                dk = corner % 3
                node = natural(number + (di * shape[1] + dj) * shape[2] + dk)
                m = node_number[w, node]
                if m == 0:
                    nodes += 1
                    m = nodes
                    node_number[w, node] = m
                    if nodes <= capacity:
                        place[w, nodes - 1] = wp.vec3i(i + di, j + dj, k + dk)
                        node_cell[w, nodes - 1] = c - 1
                # beyond the capacity all share the last node: the step is spoiled, and nothing else is
                table[w, c - 1, 3 + corner] = wp.min(m, capacity) - 1
        cell[w, p] = c - 1
        start[w, i // SLAB + 1] = start[w, i // SLAB + 1] + 1
    for s in range(start.shape[1] - 1):
        start[w, s + 1] = start[w, s + 1] + start[w, s]
    for back in range(x.shape[1]):  # from the end, so that each slab's start counts down to its place
        p = x.shape[1] - 1 - back
        s = table[w, cell[w, p], 0] // SLAB + 1
        start[w, s] = start[w, s] - 1
        order[w, start[w, s]] = p
    for s in range(1, start.shape[1]):
        if s + 1 < start.shape[1]:
            start[w, s] = start[w, s + 1]
        else:
            start[w, s] = x.shape[1]
    for c in range(cells):
        _forget(shape, w, table[w, c, 0], table[w, c, 1], table[w, c, 2], cell_number, node_number)
    count[w, CELLS] = cells
    count[w, NODES] = nodes
    count[w, LOST] = lost
    count[w, CROWDED] = 0


def find_cells(domain: Domain, scratch: Scratch, capacity: int, x: wp.array, cells: Cells) -> None:
    """Numbers the cells and nodes in use for particles at x, (W, n) m."""
    wp.launch(
        _cells_kernel,
        dim=x.shape[0],
        inputs=[
            vec3(*domain.lower),
            real(1.0 / domain.spacing),
            wp.vec3i(*domain.shape),
            capacity,
            x,
            scratch.cell,
            scratch.node,
        ],
        outputs=[cells.count, cells.cell, cells.table, cells.place, cells.node_cell, cells.order, cells.start],
        device=x.device,
        record_tape=False,
    )
