"""Particles to grid and back with quadratic B-splines, and the adjoints: the hot loops, as native code.

A particle carries `CARRIED` numbers: momentum m v, affine momentum A (rows), m J, m ∇J, m. With r = xᵢ − xₚ a node gets

    m v, m J, m ∇J, m, m c  =  Σ w (m v + A r,  m J + m ∇J·r,  m ∇J,  m,  −m r)        (c: from the node to its centroid)

and back from a node's v, J and m a particle gets, with D = 4/Δx²,

    v, C, J, ∇J, m  =  Σ w (vᵢ,  D vᵢ rᵀ,  Jᵢ,  D Jᵢ r,  mᵢ).

The adjoint of each is the other one's loop, plus a sum with ∂w/∂x. Scattering goes over every second slab of cells at a
time, gathering over ranges of particles; both give the same bits on any number of threads.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real, vec3, vec5
from warpsim.particles.cells import Cells
from warpsim.particles.domain import Domain
from warpsim.tape.divided import launch_divided

carried = wp.types.vector(length=17, dtype=real)
"""Of a particle: m v (3), A (9), m J, m ∇J (3), m; on the way back v, C, J, ∇J and Σ w m."""
received = wp.types.vector(length=11, dtype=real)
"""Of a node: m v (3), m J, m ∇J (3), m, m c (3)."""

DIVIDED_FROM = 4000
"""Particles per world; fewer are not worth a meeting of threads."""

_ROW = "reinterpret_cast<{1}*>(reinterpret_cast<char*>({0}.data) + w * {0}.strides[0])"


def _pointer(name: str, kind: str = "scalar") -> str:
    return f"    {kind}* __restrict__ p_{name} = {_ROW.format(name, kind)};\n"


_OPEN = "    using scalar = decltype(spacing + spacing);\n    const scalar per_cell = scalar(1) / spacing;\n"
_TOPOLOGY = _pointer("x") + _pointer("cell", "const int") + _pointer("table", "const int")

# Weights along each axis, offsets r along each axis, and with GRADIENT the derivatives of the weights.
_WEIGHTS = """
        const int* row = p_table + 30 * p_cell[p];
        scalar weight[3][3], offset[3][3];
        for (int a = 0; a < 3; ++a) {
            const scalar f = (p_x[3 * p + a] - lower[a]) * per_cell - scalar(row[a]);
            weight[a][0] = scalar(0.5) * (scalar(1.5) - f) * (scalar(1.5) - f);
            weight[a][1] = scalar(0.75) - (f - scalar(1)) * (f - scalar(1));
            weight[a][2] = scalar(0.5) * (f - scalar(0.5)) * (f - scalar(0.5));
            for (int k = 0; k < 3; ++k) offset[a][k] = (scalar(k) - f) * spacing;
        }
"""
_SLOPES = """
        scalar slope[3][3];
        for (int a = 0; a < 3; ++a) {
            const scalar f = (p_x[3 * p + a] - lower[a]) * per_cell - scalar(row[a]);
            slope[a][0] = (f - scalar(1.5)) * per_cell;
            slope[a][1] = scalar(-2) * (f - scalar(1)) * per_cell;
            slope[a][2] = (f - scalar(0.5)) * per_cell;
        }
"""
_NODES = """
        for (int corner = 0; corner < 27; ++corner) {
            const int i = corner / 9, j = (corner / 3) % 3, k = corner % 3, node = row[3 + corner];
            const scalar w3 = weight[0][i] * weight[1][j] * weight[2][k];
            const scalar r[3] = {offset[0][i], offset[1][j], offset[2][k]};
"""
_NODE_SLOPES = """
            const scalar dw[3] = {slope[0][i] * weight[1][j] * weight[2][k],
                                  weight[0][i] * slope[1][j] * weight[2][k],
                                  weight[0][i] * weight[1][j] * slope[2][k]};
"""
_SLAB_LOOP = """
    for (int q = p_start[slab]; q < p_start[slab + 1]; ++q) {
        const int p = p_order[q];
"""
_SLABS = _pointer("order", "const int") + _pointer("start", "const int")

_TO_GRID = (
    _OPEN
    + _TOPOLOGY
    + _SLABS
    + _pointer("particle")
    + _pointer("node_sum")
    + _SLAB_LOOP
    + "        const scalar* c = p_particle + 17 * p;\n"
    + _WEIGHTS
    + _NODES
    + """
            scalar* to = p_node_sum + 11 * node;
            for (int a = 0; a < 3; ++a)
                to[a] += w3 * (c[a] + (c[3 + 3 * a] * r[0] + c[4 + 3 * a] * r[1] + c[5 + 3 * a] * r[2]));
            to[3] += w3 * (c[12] + (c[13] * r[0] + c[14] * r[1] + c[15] * r[2]));
            for (int a = 0; a < 3; ++a) to[4 + a] += w3 * c[13 + a];
            to[7] += w3 * c[16];
            for (int a = 0; a < 3; ++a) to[8 + a] -= w3 * c[16] * r[a];
        }
    }
"""
)

_TO_GRID_ADJOINT = (
    _OPEN
    + _TOPOLOGY
    + _pointer("particle")
    + _pointer("by_node")
    + _pointer("by_particle")
    + _pointer("by_x")
    + "    {\n        const scalar* c = p_particle + 17 * p;\n"
    + _WEIGHTS
    + _SLOPES
    + "        scalar g[17] = {0}, gx[3] = {0};\n"
    + _NODES
    + _NODE_SLOPES
    + """
            const scalar* n = p_by_node + 11 * node;
            scalar total = 0;
            for (int a = 0; a < 3; ++a) {
                total += n[a] * (c[a] + (c[3 + 3 * a] * r[0] + c[4 + 3 * a] * r[1] + c[5 + 3 * a] * r[2]));
                g[a] += w3 * n[a];
                for (int b = 0; b < 3; ++b) g[3 + 3 * a + b] += w3 * n[a] * r[b];
            }
            total += n[3] * (c[12] + (c[13] * r[0] + c[14] * r[1] + c[15] * r[2]));
            g[12] += w3 * n[3];
            scalar mass = n[7];
            for (int a = 0; a < 3; ++a) {
                total += n[4 + a] * c[13 + a];
                g[13 + a] += w3 * (n[3] * r[a] + n[4 + a]);
                mass -= n[8 + a] * r[a];
            }
            total += mass * c[16];
            g[16] += w3 * mass;
            for (int a = 0; a < 3; ++a)
                gx[a] += dw[a] * total - w3 * (n[0] * c[3 + a] + n[1] * c[6 + a] + n[2] * c[9 + a] + n[3] * c[13 + a]
                                               - n[8 + a] * c[16]);
        }
        for (int a = 0; a < 17; ++a) p_by_particle[17 * p + a] += g[a];
        for (int a = 0; a < 3; ++a) p_by_x[3 * p + a] += gx[a];
    }
"""
)

_TO_PARTICLES = (
    _OPEN
    + _TOPOLOGY
    + _pointer("node_value")
    + _pointer("particle")
    + "    {\n        const scalar d = scalar(4) * per_cell * per_cell;\n"
    + _WEIGHTS
    + "        scalar g[17] = {0};\n"
    + _NODES
    + """
            const scalar* n = p_node_value + 5 * node;
            for (int a = 0; a < 3; ++a) {
                const scalar v = w3 * n[a];
                g[a] += v;
                for (int b = 0; b < 3; ++b) g[3 + 3 * a + b] += v * r[b];
            }
            const scalar ratio = w3 * n[3];
            g[12] += ratio;
            for (int b = 0; b < 3; ++b) g[13 + b] += ratio * r[b];
            g[16] += w3 * n[4];
        }
        for (int a = 3; a < 12; ++a) g[a] *= d;
        for (int a = 13; a < 16; ++a) g[a] *= d;
        for (int a = 0; a < 17; ++a) p_particle[17 * p + a] = g[a];
    }
"""
)

_TO_PARTICLES_ADJOINT = (
    _OPEN
    + _TOPOLOGY
    + _SLABS
    + _pointer("node_value")
    + _pointer("by_particle")
    + _pointer("by_node")
    + _pointer("by_x")
    + "    const scalar d = scalar(4) * per_cell * per_cell;\n"
    + _SLAB_LOOP
    + "        const scalar* c = p_by_particle + 17 * p;\n"
    + _WEIGHTS
    + _SLOPES
    + "        scalar gx[3] = {0};\n"
    + _NODES
    + _NODE_SLOPES
    + """
            const scalar* n = p_node_value + 5 * node;
            scalar* to = p_by_node + 5 * node;
            scalar total = 0;
            for (int a = 0; a < 3; ++a) {
                const scalar value = c[a] + d * (c[3 + 3 * a] * r[0] + c[4 + 3 * a] * r[1] + c[5 + 3 * a] * r[2]);
                to[a] += w3 * value;
                total += n[a] * value;
            }
            const scalar ratio = c[12] + d * (c[13] * r[0] + c[14] * r[1] + c[15] * r[2]);
            to[3] += w3 * ratio;
            to[4] += w3 * c[16];
            total += n[3] * ratio + n[4] * c[16];
            for (int a = 0; a < 3; ++a)
                gx[a] += dw[a] * total
                         - w3 * d * (n[0] * c[3 + a] + n[1] * c[6 + a] + n[2] * c[9 + a] + n[3] * c[13 + a]);
        }
        for (int a = 0; a < 3; ++a) p_by_x[3 * p + a] += gx[a];
    }
"""
)

_Integers = wp.array2d(dtype=wp.int32)
_Table = wp.array3d(dtype=wp.int32)
_Points = wp.array2d(dtype=vec3)
_Particles = wp.array2d(dtype=carried)
_Sums = wp.array2d(dtype=received)
_Values = wp.array2d(dtype=vec5)


@wp.func_native(_TO_GRID)
def _scatter_slab(
    w: int, slab: int, lower: vec3, spacing: real, x: _Points, cell: _Integers, table: _Table, order: _Integers,
    start: _Integers, particle: _Particles, node_sum: _Sums,
):  # fmt: skip
    """Adds one slab's particles to their nodes."""


@wp.func_native(_TO_GRID_ADJOINT)
def _scatter_adjoint(
    w: int, p: int, lower: vec3, spacing: real, x: _Points, cell: _Integers, table: _Table, particle: _Particles,
    by_node: _Sums, by_particle: _Particles, by_x: _Points,
):  # fmt: skip
    """Adjoint of `_scatter_slab` for one particle."""


@wp.func_native(_TO_PARTICLES)
def _gather(
    w: int, p: int, lower: vec3, spacing: real, x: _Points, cell: _Integers, table: _Table, node_value: _Values,
    particle: _Particles,
):  # fmt: skip
    """What one particle gets from its nodes."""


@wp.func_native(_TO_PARTICLES_ADJOINT)
def _gather_adjoint_slab(
    w: int, slab: int, lower: vec3, spacing: real, x: _Points, cell: _Integers, table: _Table, order: _Integers,
    start: _Integers, node_value: _Values, by_particle: _Particles, by_node: _Values, by_x: _Points,
):  # fmt: skip
    """Adjoint of `_gather` for one slab's particles."""


@wp.kernel(enable_backward=False)
def _scatter_kernel(
    first: int, color: int, tasks: int, lower: vec3, spacing: real, x: _Points, cell: _Integers, table: _Table,
    order: _Integers, start: _Integers, particle: _Particles, node_sum: _Sums,
):  # fmt: skip
    i = first + wp.tid()
    _scatter_slab(
        i // tasks, 2 * (i % tasks) + color, lower, spacing, x, cell, table, order, start, particle, node_sum
    )


@wp.kernel(enable_backward=False)
def _scatter_adjoint_kernel(
    first: int, lower: vec3, spacing: real, x: _Points, cell: _Integers, table: _Table, particle: _Particles,
    by_node: _Sums, by_particle: _Particles, by_x: _Points,
):  # fmt: skip
    i = first + wp.tid()
    n = x.shape[1]
    _scatter_adjoint(i // n, i % n, lower, spacing, x, cell, table, particle, by_node, by_particle, by_x)


@wp.kernel(enable_backward=False)
def _gather_kernel(
    first: int, lower: vec3, spacing: real, x: _Points, cell: _Integers, table: _Table, node_value: _Values,
    particle: _Particles,
):  # fmt: skip
    i = first + wp.tid()
    n = x.shape[1]
    _gather(i // n, i % n, lower, spacing, x, cell, table, node_value, particle)


@wp.kernel(enable_backward=False)
def _gather_adjoint_kernel(
    first: int, color: int, tasks: int, lower: vec3, spacing: real, x: _Points, cell: _Integers, table: _Table,
    order: _Integers, start: _Integers, node_value: _Values, by_particle: _Particles, by_node: _Values, by_x: _Points,
):  # fmt: skip
    i = first + wp.tid()
    _gather_adjoint_slab(
        i // tasks, 2 * (i % tasks) + color, lower, spacing, x, cell, table, order, start, node_value, by_particle,
        by_node, by_x,
    )  # fmt: skip


@wp.kernel(enable_backward=False)
def _clear_kernel(count: _Integers, node_sum: _Sums):
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
        launch_divided(
            kernel, worlds * tasks, [color, tasks, *inputs], outputs, device=x.device, smallest=smallest
        )
