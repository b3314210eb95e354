"""Particles to grid and back with quadratic B-splines, and the adjoints: the hot loops, as native code.

A particle carries 17 numbers (`carried`): momentum m v, affine momentum A (rows), m J, m ∇J, m. With
r = xᵢ − xₚ a node gets

    m v, m J, m ∇J, m, m c  =  Σ w (m v + A r,  m J + m ∇J·r,  m ∇J,  m,  −m r)       (c: from node to mass centroid)

and back from a node's v, J and m a particle gets, with D = 4/Δx²,

    v, C, J, ∇J, m  =  Σ w (vᵢ,  D vᵢ rᵀ,  Jᵢ,  D Jᵢ r,  mᵢ).

The adjoint of each is the other one's loop, plus a sum with ∂w/∂x. Scattering goes over every second slab of cells at a
time, gathering over ranges of particles; both give the same bits on any number of threads.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real, vec3
from warpsim.particles.cells import Cells
from warpsim.particles.domain import Domain
from warpsim.particles.transfer_native import (
    Integers,
    Particles,
    Sums,
    Table,
    Values,
    gather,
    gather_adjoint_slab,
    received,
    scatter_adjoint,
    scatter_slab,
)
from warpsim.tape.divided import launch_divided

DIVIDED_FROM = 4000
"""Particles per world; fewer are not worth a meeting of threads."""


@wp.kernel(enable_backward=False)
def _scatter_kernel(
    first: int,
    color: int,
    tasks: int,
    lower: vec3,
    spacing: real,
    x: wp.array2d(dtype=vec3),
    cell: Integers,
    table: Table,
    order: Integers,
    start: Integers,
    particle: Particles,
    node_sum: Sums,
):
    i = first + wp.tid()
    scatter_slab(i // tasks, 2 * (i % tasks) + color, lower, spacing, x, cell, table, order, start, particle, node_sum)


@wp.kernel(enable_backward=False)
def _scatter_adjoint_kernel(
    first: int,
    lower: vec3,
    spacing: real,
    x: wp.array2d(dtype=vec3),
    cell: Integers,
    table: Table,
    particle: Particles,
    by_node: Sums,
    by_particle: Particles,
    by_x: wp.array2d(dtype=vec3),
):
    i = first + wp.tid()
    n = x.shape[1]
    scatter_adjoint(i // n, i % n, lower, spacing, x, cell, table, particle, by_node, by_particle, by_x)


@wp.kernel(enable_backward=False)
def _gather_kernel(
    first: int,
    lower: vec3,
    spacing: real,
    x: wp.array2d(dtype=vec3),
    cell: Integers,
    table: Table,
    node_value: Values,
    particle: Particles,
):
    i = first + wp.tid()
    n = x.shape[1]
    gather(i // n, i % n, lower, spacing, x, cell, table, node_value, particle)


@wp.kernel(enable_backward=False)
def _gather_adjoint_kernel(
    first: int,
    color: int,
    tasks: int,
    lower: vec3,
    spacing: real,
    x: wp.array2d(dtype=vec3),
    cell: Integers,
    table: Table,
    order: Integers,
    start: Integers,
    node_value: Values,
    by_particle: Particles,
    by_node: Values,
    by_x: wp.array2d(dtype=vec3),
):
    i = first + wp.tid()
    gather_adjoint_slab(
        i // tasks,
        2 * (i % tasks) + color,
        lower,
        spacing,
        x,
        cell,
        table,
        order,
        start,
        node_value,
        by_particle,
        by_node,
        by_x,
    )


@wp.kernel(enable_backward=False)
def _clear_kernel(count: wp.array2d(dtype=wp.int32), node_sum: wp.array2d(dtype=received)):
    w, i = wp.tid()
    if i < wp.min(count[w, 1], node_sum.shape[1]):
        node_sum[w, i] = received()


def to_grid(
    domain: Domain, cells: Cells, x: wp.array, particle: wp.array, node_sum: wp.array, tape: wp.Tape | None
) -> None:
    """Sums over particles at the nodes in use.

    Args:
        domain: The grid.
        cells: Found for these x.
        x: (W, n) m.
        particle: (W, n) `carried`.
        node_sum: (W, capacity) `received`; written where a node is in use.
        tape: Where to record the adjoint.
    """
    grid = [vec3(*domain.lower), real(domain.spacing), x, cells.cell, cells.table]
    wp.launch(
        _clear_kernel,
        dim=node_sum.shape,
        inputs=[cells.count],
        outputs=[node_sum],
        device=x.device,
        record_tape=False,
    )
    _over_slabs(_scatter_kernel, x, cells, [*grid, cells.order, cells.start, particle], [node_sum])
    if tape is None:
        return

    def adjoint() -> None:
        given = [*grid, particle, node_sum.grad]
        _over_particles(_scatter_adjoint_kernel, x, given, [particle.grad, x.grad])

    tape.record_func(adjoint, arrays=[x, particle, node_sum])


def to_particles(
    domain: Domain, cells: Cells, x: wp.array, node_value: wp.array, particle: wp.array, tape: wp.Tape | None
) -> None:
    """What particles get from the nodes in use.

    Args:
        domain: The grid.
        cells: Found for these x.
        x: (W, n) m.
        node_value: (W, capacity) v, J and m.
        particle: (W, n) `carried`; written.
        tape: Where to record the adjoint.
    """
    grid = [vec3(*domain.lower), real(domain.spacing), x, cells.cell, cells.table]
    _over_particles(_gather_kernel, x, [*grid, node_value], [particle])
    if tape is None:
        return

    def adjoint() -> None:
        given = [*grid, cells.order, cells.start, node_value, particle.grad]
        _over_slabs(_gather_adjoint_kernel, x, cells, given, [node_value.grad, x.grad])

    tape.record_func(adjoint, arrays=[x, node_value, particle])


def _over_particles(kernel: wp.Kernel, x: wp.array, inputs: list, outputs: list) -> None:
    worlds, particles = x.shape
    smallest = 256 if particles >= DIVIDED_FROM else worlds * particles
    launch_divided(kernel, worlds * particles, inputs, outputs, device=x.device, smallest=smallest)


def _over_slabs(kernel: wp.Kernel, x: wp.array, cells: Cells, inputs: list, outputs: list) -> None:
    worlds, particles = x.shape
    tasks = (cells.start.shape[1] - 1) // 2
    smallest = 1 if particles >= DIVIDED_FROM else worlds * tasks
    for color in (0, 1):
        launch_divided(kernel, worlds * tasks, [color, tasks, *inputs], outputs, device=x.device, smallest=smallest)
