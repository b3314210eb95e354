"""The loops of the transfers and of their adjoints as native code on raw pointers; `transfer` has the equations.

Not taped.
Native, because the compiler then knows what does not overlap and keeps a particle's sums in registers.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real, vec3, vec5

carried = wp.types.vector(length=17, dtype=real)
"""Of a particle: m v (3), A (9), m J, m ∇J (3), m; on the way back v, C, J, ∇J and Σ w m."""
received = wp.types.vector(length=11, dtype=real)
"""Of a node: m v (3), m J, m ∇J (3), m, m c (3)."""

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

Integers = wp.array2d(dtype=wp.int32)
Table = wp.array3d(dtype=wp.int32)
Points = wp.array2d(dtype=vec3)
Particles = wp.array2d(dtype=carried)
Sums = wp.array2d(dtype=received)
Values = wp.array2d(dtype=vec5)


@wp.func_native(_TO_GRID)
def scatter_slab(
    w: int,
    slab: int,
    lower: vec3,
    spacing: real,
    x: Points,
    cell: Integers,
    table: Table,
    order: Integers,
    start: Integers,
    particle: Particles,
    node_sum: Sums,
):
    """Adds one slab's particles to their nodes."""


@wp.func_native(_TO_GRID_ADJOINT)
def scatter_adjoint(
    w: int,
    p: int,
    lower: vec3,
    spacing: real,
    x: Points,
    cell: Integers,
    table: Table,
    particle: Particles,
    by_node: Sums,
    by_particle: Particles,
    by_x: Points,
):
    """Adjoint of `scatter_slab` for one particle."""


@wp.func_native(_TO_PARTICLES)
def gather(
    w: int,
    p: int,
    lower: vec3,
    spacing: real,
    x: Points,
    cell: Integers,
    table: Table,
    node_value: Values,
    particle: Particles,
):
    """What one particle gets from its nodes."""


@wp.func_native(_TO_PARTICLES_ADJOINT)
def gather_adjoint_slab(
    w: int,
    slab: int,
    lower: vec3,
    spacing: real,
    x: Points,
    cell: Integers,
    table: Table,
    order: Integers,
    start: Integers,
    node_value: Values,
    by_particle: Particles,
    by_node: Values,
    by_x: Points,
):
    """Adjoint of `gather` for one slab's particles."""
