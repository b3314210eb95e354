"""The loops of the transfers and of their adjoints as native code on raw pointers; `transfer` has the equations.

Not taped.
Native, because the compiler then knows what does not overlap and keeps a particle's sums in registers.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real, vec3, vec5

carried = wp.types.vector(length=17, dtype=real)
"""Of a particle: m v (3), A (9), m J, m ∇J (3), m; on the way back v, C, J, ∇J and Σ w m."""
received = wp.types.vector(length=12, dtype=real)
"""Of a node: m v (3), m J, m ∇J (3), m, m c (3), and one that is not used: whole vectors of the processor."""

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

# What a particle gives to a node at offset r: base + r · by, 12 numbers each, the last one unused. Loops
# over them have fixed lengths and no order of summation across them, so that the compiler makes vectors of them.
_EXPANDED = """
        scalar base[12] = {0}, by[3][12] = {{0}};
        for (int a = 0; a < 3; ++a) {
            base[a] = c[a];
            base[4 + a] = c[13 + a];
            for (int b = 0; b < 3; ++b) by[b][a] = c[3 + 3 * a + b];
            by[a][3] = c[13 + a];
            by[a][8 + a] = -c[16];
        }
        base[3] = c[12];
        base[7] = c[16];
"""

_TO_GRID = (
    _OPEN
    + _TOPOLOGY
    + _SLABS
    + _pointer("particle")
    + _pointer("node_sum")
    + _SLAB_LOOP
    + "        const scalar* c = p_particle + 17 * p;\n"
    + _WEIGHTS
    + _EXPANDED
    + """
        for (int i = 0; i < 3; ++i) for (int j = 0; j < 3; ++j) {
            const scalar w2 = weight[0][i] * weight[1][j];
            scalar part[12];
            for (int a = 0; a < 12; ++a)
                part[a] = base[a] + (offset[0][i] * by[0][a] + offset[1][j] * by[1][a]);
            for (int k = 0; k < 3; ++k) {
                scalar* to = p_node_sum + 12 * row[3 + 9 * i + 3 * j + k];
                const scalar w3 = w2 * weight[2][k], r = offset[2][k];
                for (int a = 0; a < 12; ++a) to[a] += w3 * (part[a] + r * by[2][a]);
            }
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
            const scalar* n = p_by_node + 12 * node;
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

# Sums over nodes are separable: first along z, with and without offset and slope of the weight, then along x and y.
_TO_PARTICLES = (
    _OPEN
    + _TOPOLOGY
    + _pointer("node_value")
    + _pointer("particle")
    + "    {\n        const scalar d = scalar(4) * per_cell * per_cell;\n"
    + _WEIGHTS
    + """
        scalar total[4] = {0}, moment[3][4] = {{0}}, mass = 0;
        for (int i = 0; i < 3; ++i) for (int j = 0; j < 3; ++j) {
            const scalar w2 = weight[0][i] * weight[1][j], wx = w2 * offset[0][i], wy = w2 * offset[1][j];
            scalar sum[4] = {0}, high[4] = {0}, heavy = 0;
            for (int k = 0; k < 3; ++k) {
                const scalar* n = p_node_value + 5 * row[3 + 9 * i + 3 * j + k];
                const scalar w = weight[2][k], wr = w * offset[2][k];
                for (int a = 0; a < 4; ++a) {
                    sum[a] += w * n[a];
                    high[a] += wr * n[a];
                }
                heavy += w * n[4];
            }
            for (int a = 0; a < 4; ++a) {
                total[a] += w2 * sum[a];
                moment[0][a] += wx * sum[a];
                moment[1][a] += wy * sum[a];
                moment[2][a] += w2 * high[a];
            }
            mass += w2 * heavy;
        }
        scalar* g = p_particle + 17 * p;
        for (int a = 0; a < 3; ++a) {
            g[a] = total[a];
            for (int b = 0; b < 3; ++b) g[3 + 3 * a + b] = d * moment[b][a];
            g[13 + a] = d * moment[a][3];
        }
        g[12] = total[3];
        g[16] = mass;
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
    + """
        const scalar base[4] = {c[0], c[1], c[2], c[12]}, heavy = c[16];
        scalar by[3][4], total[4] = {0}, turned[3][4] = {{0}}, mass[3] = {0};
        for (int b = 0; b < 3; ++b) {
            for (int a = 0; a < 3; ++a) by[b][a] = d * c[3 + 3 * a + b];
            by[b][3] = d * c[13 + b];
        }
        for (int i = 0; i < 3; ++i) for (int j = 0; j < 3; ++j) {
            const scalar w2 = weight[0][i] * weight[1][j];
            scalar part[4], sum[4] = {0}, flat[4] = {0}, steep[4] = {0}, m0 = 0, m1 = 0;
            for (int a = 0; a < 4; ++a)
                part[a] = base[a] + (offset[0][i] * by[0][a] + offset[1][j] * by[1][a]);
            for (int k = 0; k < 3; ++k) {
                const int node = row[3 + 9 * i + 3 * j + k];
                const scalar* n = p_node_value + 5 * node;
                scalar* to = p_by_node + 5 * node;
                const scalar w = weight[2][k], w3 = w2 * w, s = slope[2][k], r = offset[2][k];
                for (int a = 0; a < 4; ++a) {
                    const scalar value = part[a] + r * by[2][a], product = value * n[a];
                    to[a] += w3 * value;
                    sum[a] += w * n[a];
                    flat[a] += w * product;
                    steep[a] += s * product;
                }
                to[4] += w3 * heavy;
                m0 += w * n[4];
                m1 += s * n[4];
            }
            const scalar sx = slope[0][i] * weight[1][j], sy = weight[0][i] * slope[1][j];
            for (int a = 0; a < 4; ++a) {
                total[a] += w2 * sum[a];
                turned[0][a] += sx * flat[a];
                turned[1][a] += sy * flat[a];
                turned[2][a] += w2 * steep[a];
            }
            mass[0] += sx * m0;
            mass[1] += sy * m0;
            mass[2] += w2 * m1;
        }
        for (int a = 0; a < 3; ++a) {
            scalar gx = mass[a] * heavy;
            for (int b = 0; b < 4; ++b) gx += turned[a][b] - total[b] * by[a][b];
            p_by_x[3 * p + a] += gx;
        }
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
