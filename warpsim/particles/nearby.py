"""Which walls are near each particle and node, and how near: distance and normal, once for all that ask.

Candidates are found per cell: distances are 1-Lipschitz, so that one at the middle of a cell bounds those of its
particles and nodes, and most need no look at a wall. Lists are integer decisions and not taped; distances and normals
are.
"""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import mat33, real, vec3, vec6
from warpsim.particles.cells import CELLS, CROWDED, NODES, Cells
from warpsim.particles.domain import Domain
from warpsim.particles.pairs import Pairs, Plane
from warpsim.particles.transfer_native import received
from warpsim.particles.walls import WallMotion, WallSet, wall_distance, wall_velocity
from warpsim.tape.arena import Arena

NODE_WALLS, PARTICLE_WALLS = wp.constant(8), wp.constant(12)
"""Walls that can be near one node or particle at the same time."""
CELL_WALLS = wp.constant(16)
"""Candidates of a cell."""
_PAIRS_PER_NODE, _PAIRS_PER_PARTICLE = 1, 8

_REACH = wp.constant(real(3.0))
"""Cells from a particle; half the width of the density's kernel."""
_NODE_REACH = wp.constant(real(1.5))
"""Cells from a node; half the width of its kernel."""
_CELL_REACH = wp.constant(real(8.5))
"""Cells from the middle of a cell: beyond, no particle or node of it has the wall in reach. A node is at most √3 away,
its centroid 1.5 √3 further, whose plane comes 1.5 √3 nearer than it is."""

LEAST_MASS = wp.constant(real(1e-24))
"""kg; a node with less has no velocity of its own."""


@dataclass
class Nearby:
    """What is near what in one step.

    Attributes:
        frame: (W, walls) rotations of walls.
        cell_wall: (W, cells, `CELL_WALLS`) candidates, −1 after the last.
        cell_distance: (W, cells, `CELL_WALLS`) m, of a cell's middle.
        nodes: Pairs of nodes.
        particles: Pairs of particles.
    """

    frame: wp.array
    cell_wall: wp.array
    cell_distance: wp.array
    nodes: Pairs
    particles: Pairs

    @staticmethod
    def make(arena: Arena, worlds: int, walls: int, particles: int, nodes: int) -> Nearby:
        """Allocates."""
        shape = (worlds, particles, int(CELL_WALLS))
        return Nearby(
            arena.array((worlds, max(1, walls)), mat33),
            arena.array(shape, wp.int32, differentiable=False),
            arena.array(shape, real, differentiable=False),
            Pairs.make(arena, worlds, nodes, _PAIRS_PER_NODE * nodes),
            Pairs.make(arena, worlds, particles, _PAIRS_PER_PARTICLE * particles),
        )


@wp.func
def node_point(lower: vec3, spacing: real, place: wp.vec3i) -> vec3:
    """Where a node is, m."""
    return lower + spacing * vec3(real(place[0]), real(place[1]), real(place[2]))


@wp.func
def centroid(at: vec3, node: received) -> vec3:
    """Mass centroid of the particles that a node sees."""
    return at + vec3(node[8], node[9], node[10]) / node[7]


@wp.func
def _cell_middle(lower: vec3, spacing: real, table: wp.array3d(dtype=wp.int32), w: int, c: int) -> vec3:
    one = real(1.0)
    base = vec3(real(table[w, c, 0]) + one, real(table[w, c, 1]) + one, real(table[w, c, 2]) + one)
    return lower + spacing * base


@wp.kernel(enable_backward=False)
def _candidates_kernel(
    # topology
    lower: vec3,
    spacing: real,
    shapes: int,
    kind: wp.array(dtype=wp.int32),
    # parameters
    timestep: wp.array(dtype=real),
    size: wp.array2d(dtype=vec3),
    # state
    position: wp.array2d(dtype=vec3),
    frame: wp.array2d(dtype=mat33),
    # work read
    table: wp.array3d(dtype=wp.int32),
    # work written
    count: wp.array2d(dtype=wp.int32),
    cell_wall: wp.array3d(dtype=wp.int32),
    cell_distance: wp.array3d(dtype=real),
):
    w, c = wp.tid()
    if c >= count[w, CELLS]:
        return
    middle = _cell_middle(lower, spacing, table, w, c)
    found = int(0)
    for s in range(shapes):
        distance, _normal = wall_distance(kind[s], size[w, s], position[w, s], frame[w, s], middle)
        if distance < _CELL_REACH * spacing:
            if found < CELL_WALLS:
                cell_wall[w, c, found] = s
                cell_distance[w, c, found] = distance
            else:
                wp.atomic_add(count, w, CROWDED, 1)
            found += 1
    if found < CELL_WALLS:
        cell_wall[w, c, found] = -1


@wp.kernel(enable_backward=False)
def _particle_pairs_kernel(
    # topology
    lower: vec3,
    spacing: real,
    substeps: int,
    kind: wp.array(dtype=wp.int32),
    # parameters
    timestep: wp.array(dtype=real),
    size: wp.array2d(dtype=vec3),
    # state
    position: wp.array2d(dtype=vec3),
    frame: wp.array2d(dtype=mat33),
    twist: wp.array2d(dtype=vec6),
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    # work read
    cell: wp.array2d(dtype=wp.int32),
    table: wp.array3d(dtype=wp.int32),
    cell_wall: wp.array3d(dtype=wp.int32),
    cell_distance: wp.array3d(dtype=real),
    # work written
    count: wp.array2d(dtype=wp.int32),
    first: wp.array2d(dtype=wp.int32),
    owner: wp.array2d(dtype=wp.int32),
    wall: wp.array2d(dtype=wp.int32),
):
    w = natural(wp.tid())
    step = timestep[w] / real(substeps)
    total = int(0)
    for p in range(x.shape[1]):
        first[w, p] = total
        c = cell[w, p]
        at = x[w, p]
        off = wp.length(at - _cell_middle(lower, spacing, table, w, c))
        going = bool(True)
        for k in range(int(CELL_WALLS)):
            if going:
                s = cell_wall[w, c, k]
                if s < 0:
                    going = False
                else:
                    speed = wp.length(v[w, p] - wall_velocity(twist[w, s], position[w, s], at))
                    reach = _REACH * spacing + real(2.0) * step * speed
                    if cell_distance[w, c, k] - off < reach:
                        distance, _n = wall_distance(kind[s], size[w, s], position[w, s], frame[w, s], at)
                        if distance < reach:
                            if total < wall.shape[1] and total - first[w, p] < PARTICLE_WALLS:
                                owner[w, total] = p
                                wall[w, total] = s
                                total += 1
                            else:
                                count[w, CROWDED] = count[w, CROWDED] + 1
    first[w, x.shape[1]] = total


@wp.kernel(enable_backward=False)
def _node_pairs_kernel(
    # topology
    lower: vec3,
    spacing: real,
    kind: wp.array(dtype=wp.int32),
    # parameters
    size: wp.array2d(dtype=vec3),
    # state
    position: wp.array2d(dtype=vec3),
    frame: wp.array2d(dtype=mat33),
    # work read
    table: wp.array3d(dtype=wp.int32),
    place: wp.array2d(dtype=wp.vec3i),
    node_cell: wp.array2d(dtype=wp.int32),
    node_sum: wp.array2d(dtype=received),
    cell_wall: wp.array3d(dtype=wp.int32),
    cell_distance: wp.array3d(dtype=real),
    # work written
    count: wp.array2d(dtype=wp.int32),
    first: wp.array2d(dtype=wp.int32),
    owner: wp.array2d(dtype=wp.int32),
    wall: wp.array2d(dtype=wp.int32),
):
    w = natural(wp.tid())
    total = int(0)
    nodes = wp.min(count[w, NODES], node_sum.shape[1])
    for i in range(nodes):
        first[w, i] = total
        node = node_sum[w, i]
        if node[7] > LEAST_MASS:
            at = node_point(lower, spacing, place[w, i])
            middle = centroid(at, node)
            c = node_cell[w, i]
            off = wp.length(middle - _cell_middle(lower, spacing, table, w, c)) + wp.length(at - middle)
            going = bool(True)
            for k in range(int(CELL_WALLS)):
                if going:
                    s = cell_wall[w, c, k]
                    if s < 0:
                        going = False
                    elif cell_distance[w, c, k] - off < _NODE_REACH * spacing:
                        distance, normal = wall_distance(kind[s], size[w, s], position[w, s], frame[w, s], middle)
                        if distance + wp.dot(normal, at - middle) < _NODE_REACH * spacing:
                            if total < wall.shape[1] and total - first[w, i] < NODE_WALLS:
                                owner[w, total] = i
                                wall[w, total] = s
                                total += 1
                            else:
                                count[w, CROWDED] = count[w, CROWDED] + 1
    first[w, nodes] = total


@wp.func
def _plane_at(kind: int, size: vec3, position: vec3, frame: mat33, middle: vec3, at: vec3) -> Plane:
    """The wall seen from `middle`, continued to `at` as a plane."""
    distance, normal = wall_distance(kind, size, position, frame, middle)
    return Plane(distance + wp.dot(normal, at - middle), normal[0], normal[1], normal[2])


@wp.kernel
def _particle_planes_kernel(
    # topology
    kind: wp.array(dtype=wp.int32),
    # parameters
    size: wp.array2d(dtype=vec3),
    # state
    position: wp.array2d(dtype=vec3),
    frame: wp.array2d(dtype=mat33),
    x: wp.array2d(dtype=vec3),
    # work read
    first: wp.array2d(dtype=wp.int32),
    owner: wp.array2d(dtype=wp.int32),
    wall: wp.array2d(dtype=wp.int32),
    # work written
    plane: wp.array2d(dtype=Plane),
):
    w = natural(wp.tid())
    # One thread per world: there is room for many more pairs than there are, and many add to one wall's adjoint.
    for j in range(first[w, x.shape[1]]):
        s = wall[w, j]
        at = x[w, owner[w, j]]
        plane[w, j] = _plane_at(kind[s], size[w, s], position[w, s], frame[w, s], at, at)


@wp.kernel
def _node_planes_kernel(
    # topology
    lower: vec3,
    spacing: real,
    kind: wp.array(dtype=wp.int32),
    # parameters
    size: wp.array2d(dtype=vec3),
    # state
    position: wp.array2d(dtype=vec3),
    frame: wp.array2d(dtype=mat33),
    # work read
    count: wp.array2d(dtype=wp.int32),
    place: wp.array2d(dtype=wp.vec3i),
    node_sum: wp.array2d(dtype=received),
    first: wp.array2d(dtype=wp.int32),
    owner: wp.array2d(dtype=wp.int32),
    wall: wp.array2d(dtype=wp.int32),
    # work written
    plane: wp.array2d(dtype=Plane),
):
    w = natural(wp.tid())
    for j in range(first[w, wp.min(count[w, NODES], node_sum.shape[1])]):
        s = wall[w, j]
        i = owner[w, j]
        at = node_point(lower, spacing, place[w, i])
        middle = centroid(at, node_sum[w, i])
        plane[w, j] = _plane_at(kind[s], size[w, s], position[w, s], frame[w, s], middle, at)


def find_candidates(
    domain: Domain, walls: WallSet, motion: WallMotion, timestep: wp.array, cells: Cells, near: Nearby
) -> None:
    """Walls that may be near what is in each cell, or reached from it."""
    wp.launch(
        _candidates_kernel,
        dim=near.cell_wall.shape[:2],
        inputs=[vec3(*domain.lower), real(domain.spacing), walls.shapes, walls.kind, timestep, walls.size]
        + [motion.position, near.frame, cells.table],
        outputs=[cells.count, near.cell_wall, near.cell_distance],
        device=near.frame.device,
        record_tape=False,
    )


def near_nodes(
    domain: Domain, walls: WallSet, motion: WallMotion, cells: Cells, node_sum: wp.array, near: Nearby
) -> None:
    """Pairs of nodes and walls, with their planes."""
    worlds, pairs = node_sum.shape[0], near.nodes
    grid = [vec3(*domain.lower), real(domain.spacing), walls.kind, walls.size, motion.position, near.frame]
    wp.launch(
        _node_pairs_kernel,
        dim=worlds,
        inputs=[*grid, cells.table, cells.place, cells.node_cell, node_sum, near.cell_wall, near.cell_distance],
        outputs=[cells.count, pairs.first, pairs.owner, pairs.wall],
        device=node_sum.device,
        record_tape=False,
    )
    wp.launch(
        _node_planes_kernel,
        dim=worlds,
        inputs=[*grid, cells.count, cells.place, node_sum, pairs.first, pairs.owner, pairs.wall],
        outputs=[pairs.plane],
        device=node_sum.device,
    )


def near_particles(
    domain: Domain,
    walls: WallSet,
    motion: WallMotion,
    timestep: wp.array,
    substeps: int,
    x: wp.array,
    v: wp.array,
    cells: Cells,
    near: Nearby,
) -> None:
    """Pairs of particles and walls, with their planes."""
    worlds, pairs = x.shape[0], near.particles
    walled = [walls.size, motion.position, near.frame]
    wp.launch(
        _particle_pairs_kernel,
        dim=worlds,
        inputs=[vec3(*domain.lower), real(domain.spacing), substeps, walls.kind, timestep, *walled, motion.twist]
        + [x, v, cells.cell, cells.table, near.cell_wall, near.cell_distance],
        outputs=[cells.count, pairs.first, pairs.owner, pairs.wall],
        device=x.device,
        record_tape=False,
    )
    wp.launch(
        _particle_planes_kernel,
        dim=worlds,
        inputs=[walls.kind, *walled, x, pairs.first, pairs.owner, pairs.wall],
        outputs=[pairs.plane],
        device=x.device,
    )
